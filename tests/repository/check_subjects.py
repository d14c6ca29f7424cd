#!/usr/bin/env python3
"""The subject of a commit has at most 72 characters, and a body behind an empty line says why.

Looks at the commits since the base below, or since the one that is named: check_subjects.py [COMMIT]
"""

import sys

import repository as repo

LONGEST = 72

# The commit before the rule. A shallow clone may not have it: then there is nothing to look at.
BASE = "dfd5c92"


def problems_of(message):
    lines = message.rstrip("\n").split("\n")
    if len(lines[0]) > LONGEST:
        yield f"the subject has {len(lines[0])} characters, more than {LONGEST}"
    if len(lines) < 3 or not any(line.strip() for line in lines[2:]):
        yield "there is no body that says why"
    elif lines[1].strip():
        yield "the second line is not empty"


def main():
    base = sys.argv[1] if len(sys.argv) > 1 else BASE
    repo.need("git")
    if not (repo.ROOT / ".git").exists():
        repo.skip("there is no git history")
    status, _ = repo.run(["git", "merge-base", "--is-ancestor", base, "HEAD"])
    if status != 0:
        repo.skip(f"the history here does not reach back to {base}")
    status, output = repo.run(["git", "log", "--no-merges", "--format=%h%n%B%x00", f"{base}..HEAD"])
    if status != 0:
        repo.skip(f"git cannot read the history: {output.strip()}")
    commits = [commit.lstrip("\n").split("\n", 1) for commit in output.split("\0") if commit.strip()]
    problems = [f"{name} {message.splitlines()[0]}: {problem}" for name, message in commits
                for problem in problems_of(message)]
    repo.finish(problems, f"{len(commits)} commits since {base}")


if __name__ == "__main__":
    main()
