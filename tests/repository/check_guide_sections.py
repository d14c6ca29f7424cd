#!/usr/bin/env python3
"""Every section of the uTofu guide has a conformance test, or a reason why it has none.

tests/conformance/utofu/sections.txt has the sections, numbered and named as in the guide. A section is tested if a test
carries its number (Section3_7_1_1__put_of_every_size), or, where its title is a name of the API, if a test or program
uses that name. One that has neither says why, or where else it is tested, on a line of its own below it, behind "- ". A
section that only holds others needs nothing. With --table FILE it writes the table.
"""

import argparse
import pathlib
import re

import repository as repo

DIRECTORY = "tests/conformance/utofu"
# Where names of the API may be used as well.
OTHERS = ("tests/utofu/programs", "tests/process", "tests/unit")
TEST = re.compile(r"\b\w*TEST\w*\((?:\d+, )?\s*\w+,\s*Section(\d+(?:_\d+)*)__(\w+)\)")
API_NAME = re.compile(r"\b(utofu_\w+|UTOFU_\w+)")


def read_sections(text):
    """Numbers in order; their titles; their reasons."""
    titles, reasons, last = {}, {}, None
    for line in text.splitlines():
        if line.startswith("- "):
            reasons[last] = line[2:]
        elif line and not line.startswith("#"):
            last, titles[last] = line.split(" ", 1)[0], line.split(" ", 1)[1]
    return titles, reasons


def tests_of(sources):
    """Section number -> its tests, in words. @return that, and how many tests there are"""
    tests, count = {}, 0
    for path, text in sources.items():
        for number, words in TEST.findall(text):
            name = pathlib.Path(path).name
            tests.setdefault(number.replace("_", "."), []).append(f"{words.replace('_', ' ')} (`{name}`)")
            count += 1
    return tests, count


def users_of(title, sources):
    """The files that use the name of the API in this title; UTOFU_X_* stands for each that begins so."""
    match = API_NAME.search(title)
    if match is None:
        return []
    name = re.compile(r"\b" + re.escape(match.group(1)) + ("" if title.endswith("*") else r"\b"))
    return [f"used in `{pathlib.Path(path).name}`" for path, text in sources.items() if name.search(text)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=pathlib.Path)
    table_file = parser.parse_args().table
    titles, reasons = read_sections(repo.read(f"{DIRECTORY}/sections.txt"))
    texts = {path: repo.read(path) for path in repo.files("_test.cpp", ".c", ".h", places=(DIRECTORY, *OTHERS))}
    sources = {path: repo.without_comments(text) for path, text in texts.items() if "utofu" in text.lower()}
    tests, count = tests_of({path: text for path, text in sources.items() if path.startswith(DIRECTORY)})
    problems = [f"there is no section {number} for: {words}" for number, found in sorted(tests.items())
                if number not in titles for words in found]
    table = ["# Conformance tests of the uTofu guide", "", "| Section | Title | Tests |", "|---|---|---|"]
    holders = {number.rsplit(".", 1)[0] for number in titles}
    for number, title in titles.items():
        cell = tests.get(number) or users_of(title, sources)
        if not cell and number in holders:
            table.append(f"| {number} | {title} | |")
            continue
        if not cell and number not in reasons:
            problems.append(f"section {number}, {title}, has no test and no reason")
        if cell and number in reasons:
            problems.append(f"section {number}, {title}, has tests: take the reason away")
        table.append(f"| {number} | {title} | {'<br>'.join(cell) or reasons.get(number, '')} |")
    if table_file is not None:
        table_file.parent.mkdir(parents=True, exist_ok=True)
        table_file.write_text("\n".join(table) + "\n", encoding="utf-8")
    repo.finish(problems, f"{len(titles)} sections with {count} tests")


if __name__ == "__main__":
    main()
