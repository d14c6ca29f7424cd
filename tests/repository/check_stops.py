#!/usr/bin/env python3
"""engine/doc/received_put.md is true, as far as names go: each function of a row stands in the file of that row, and
whoever follows a put opens fewer than 20 files."""

import re

import repository as repo

PAGE = "engine/doc/received_put.md"
MOST_STOPS = 19
ROW = re.compile(r"^\| \[[^\]]*\]\(\.\./([^)]*)\) \| (.*) \| (all|whole|others) \|$", re.M)


def main():
    problems, count = [], 0
    for part in repo.read(PAGE).split("\n## ")[1:]:
        title, rows = part.split("\n", 1)[0], ROW.findall(part)
        count += len(rows)
        if len(rows) != part.count("\n| ["):
            problems.append(f"{PAGE}: {title}: a row has another form")
        for path, what, _ in rows:
            code = repo.without_comments(repo.read("engine/" + path))
            problems += [f"{PAGE}: {title}: {name} is not in {path}" for name in re.findall(r"`(\w+)`", what)
                         if not re.search(rf"\b{name}\b", code)]
        for which in ("whole", "others"):
            stops = sum(puts in ("all", which) for _, _, puts in rows)
            if not 0 < stops <= MOST_STOPS:
                problems.append(f"{PAGE}: {title}: {which} have {stops} stops, at most {MOST_STOPS} are allowed")
    repo.finish(problems, f"{count} stops")


if __name__ == "__main__":
    main()
