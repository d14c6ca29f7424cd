#!/usr/bin/env python3
"""The pages list all that `ptl_info --explain` and the checker find, and nothing else."""

import re

import repository as repo

KIND = re.compile(r"`([a-z_]+)`")
# A word that means a finding stands between quotes where it is told, or where it gets its name.
TEXT = re.compile(r'"([a-z_]+)"')


def kinds_of_page(path):
    """What the first column of the table behind "What it finds" has."""
    table = repo.read(path).split("## What it finds")[1].split("\n## ")[0]
    return {kind for row in re.findall(r"^\|([^|]*)\|", table, flags=re.MULTILINE) for kind in KIND.findall(row)}


def compare(page, kinds):
    """@param kinds  that the code has"""
    listed = kinds_of_page(page)
    yield from (f"{page} does not list {kind}" for kind in sorted(kinds - listed))
    yield from (f"{page} lists {kind}, which nothing finds" for kind in sorted(listed - kinds))


def main():
    names = re.search(r"finding_name\(.*?\n}", repo.read("engine/inspect/findings.cpp"), flags=re.DOTALL)
    explained = set(re.findall(r'return "([a-z_]+)"', names[0] if names else "")) - {"unknown"}
    # Of the checker: the first text of what is told, or one of two.
    checked = set()
    for path in repo.files("_checker.cpp", places=("engine/check",)):
        for first in re.findall(r"\btell\(\{([^,]*),", repo.read(path)):
            checked |= set(TEXT.findall(first))
    problems = [*compare("lib/tools/explain.md", explained), *compare("lib/tools/checker.md", checked)]
    repo.finish(problems, f"{len(explained)} findings of ptl_info and {len(checked)} of the checker")


if __name__ == "__main__":
    main()
