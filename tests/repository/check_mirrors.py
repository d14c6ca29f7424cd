#!/usr/bin/env python3
"""Tests are where the sources are: engine/DIRECTORY/NAME.cpp has tests/unit/DIRECTORY/NAME_test.cpp, or several files
NAME_ASPECT_test.cpp."""

import re

import repository as repo

# Sources without a test of their own, by their names alone, so that the list outlives moves. May only become shorter.
# What each does is seen through the tests of what uses it, or in suites of processes.
EXCEPTIONS = {
    "engine_end", "fabric_endpoint", "fabric_objects", "ofi_receive", "process_engine", "progress_thread",
    "source_bringing",
}


def main():
    tests = set(repo.files("_test.cpp", places=("tests/unit",)))
    sources = repo.files(".cpp", places=("engine",))
    problems, found = [], set()
    for source in sources:
        stem = "tests/unit/" + source.removeprefix("engine/").removesuffix(".cpp")
        if any(re.fullmatch(re.escape(stem) + r"(_\w+)?_test\.cpp", test) for test in tests):
            continue
        name = stem.rsplit("/", 1)[-1]
        found.add(name)
        if name not in EXCEPTIONS:
            problems.append(f"{source} has no {stem}_test.cpp")
    repo.shrinking(problems, found, EXCEPTIONS, __file__)
    repo.finish(problems, f"{len(sources)} sources")


if __name__ == "__main__":
    main()
