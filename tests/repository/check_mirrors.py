#!/usr/bin/env python3
"""Tests are where the sources are: engine/DIRECTORY/NAME.cpp has tests/unit/DIRECTORY/NAME_test.cpp, or several files
NAME_ASPECT_test.cpp."""

import re

import repository as repo

def main():
    tests = set(repo.files("_test.cpp", places=("tests/unit",)))
    sources = repo.files(".cpp", places=("engine",))
    problems = []
    for source in sources:
        stem = "tests/unit/" + source.removeprefix("engine/").removesuffix(".cpp")
        if any(re.fullmatch(re.escape(stem) + r"(_\w+)?_test\.cpp", test) for test in tests):
            continue
        problems.append(f"{source} has no {stem}_test.cpp")
    repo.finish(problems, f"{len(sources)} sources")


if __name__ == "__main__":
    main()
