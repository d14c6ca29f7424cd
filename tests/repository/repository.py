"""What the checks of this directory share: the files of the repository, C++ without its comments, and how a check ends.

A check is a program: status 0 if the tree is as it should be, 1 if not, each violation on a line, 77 if it could not
look, with the reason. ctest runs all of them (label unit); by hand: tests/repository/check_format.py
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Directories with files that are ours; whatever else lies in a checkout is not looked at.
PLACES = (".ci", "benchmarks", "engine", "include", "lib", "tests")

SKIPPED = 77


def files(*endings, places=PLACES):
    """The files with one of these endings, as paths from the root, sorted."""
    found = []
    for place in places:
        for path in (ROOT / place).rglob("*"):
            if path.name.endswith(endings) and path.is_file():
                found.append(path.relative_to(ROOT).as_posix())
    return sorted(found)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def skip(reason):
    """Ends the check; the runner of the suites prints the line that follows 'Skipped'."""
    print(f"{sys.argv[0]}: Skipped\n{reason}")
    sys.exit(SKIPPED)


def need(program):
    if shutil.which(program) is None:
        skip(f"there is no {program}")


def run(command):
    """Runs a command in the root. Returns its status, and what it wrote."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def finish(problems, looked_at):
    """Ends the check. @param looked_at  what was counted, in words"""
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems in {looked_at}")
    sys.exit(1 if problems else 0)


def shrinking(problems, found, allowed, where):
    """A list of exceptions: what is found and not in it is a problem, and so is what is in it and no longer found."""
    for name in sorted(set(allowed) - set(found)):
        problems.append(f"{where}: {name} needs no exception any more; take it out of the list")


def without_comments(text):
    """C or C++ with comments and what stands between quotes blanked, every newline where it was."""
    def blank(match):
        word = match.group(0)
        if word[0] in "\"'":
            return word[0] + " " * (len(word) - 2) + word[-1]
        return re.sub(r"[^\n]", " ", word)
    return re.sub(r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', blank, text,
                  flags=re.DOTALL)
