#!/usr/bin/env python3
"""Files explain themselves: none names an entry of a list of tasks, a directory of one machine, or a page that is not
here."""

import re

import repository as repo

FORBIDDEN = {
    "an entry of a list": re.compile(r"\b(issue|ticket|task|bug)s? (no\. ?|#)?\d", re.IGNORECASE),
    "a directory of one machine": re.compile(r"(?<![\w.}/])/(home|root|work|Users)/\w"),
}
# A page begins with a capital, which tells its name from the member md of an object.
PAGE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[A-Z][\w-]*\.md)\b")
PAGES_ONLY = (".h", ".cpp", ".c", ".py", ".sh", ".cmake", ".txt", ".inc")


def page_exists(path, page):
    """As seen from the file's directory, or from one above it."""
    at = (repo.ROOT / path).parent
    while True:
        if (at / page).is_file():
            return True
        if at == repo.ROOT:
            return False
        at = at.parent


def problems_in(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in FORBIDDEN.items():
            if match := pattern.search(line):
                yield f"{path}:{number}: names {what}: {match.group(0)}"
        if path.endswith(PAGES_ONLY):
            for page in PAGE.findall(line):
                if not page_exists(path, page):
                    yield f"{path}:{number}: names {page}, which is not there"


def main():
    paths = ["run", "README.md", "CMakeLists.txt", *repo.files("")]
    paths = [path for path in paths if not path.endswith((".patch", ".pyc"))]
    problems = [problem for path in paths for problem in problems_in(path, repo.read(path))]
    repo.finish(problems, f"{len(paths)} files")


if __name__ == "__main__":
    main()
