#!/usr/bin/env python3
"""What comments of C and C++ name is there: files, from the root or from engine/, and members of classes
(Owner::member)."""

import re
import sys

import repository as repo

sys.path.insert(0, str(repo.ROOT / "tests" / "readme"))
import check_pages  # noqa: E402  It knows what names can mean.

SOURCES = (".h", ".cpp", ".c", ".inc")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
MEMBER = re.compile(r"\b([A-Z]\w+)::(\w+)")
FILE = re.compile(r"(?<![\w/.<-])((?:[\w-]+/)+[\w-]+(?:\.\w+)?)(?![\w/.*-]*[/*])")
FOREIGN = {"linux/errqueue.h"}


def comments_of(text):
    """(line number, comment) of each."""
    for match in COMMENT.finditer(text):
        if match[0][0] == "/":
            yield text.count("\n", 0, match.start()) + 1, match[0]


def names_file(name, rooms):
    """Whether it has to be one: by its ending, or because it begins with a directory of the engine."""
    return name.endswith(SOURCES + (".py", ".sh", ".md", ".cmake", ".txt")) or name.split("/")[0] in rooms | {"engine"}


def main():
    files = check_pages.tracked_files()
    sources = [path for path in files if path.endswith(SOURCES)]
    texts = {path: repo.read(path) for path in sources}
    known = check_pages.Repository(files, [repo.without_comments(text) for text in texts.values()])
    rooms = {path.split("/")[1] for path in sources if path.startswith("engine/")}
    problems = []
    for path, text in texts.items():
        for line, comment in comments_of(text):
            problems += [f"{path}:{line}: nothing in the sources is called {owner}::{member}"
                         for owner, member in MEMBER.findall(comment) if member not in known.members.get(owner, ())]
            problems += [f"{path}:{line}: there is no file {name}" for name in FILE.findall(comment)
                         if names_file(name, rooms) and name not in FOREIGN and not known.has_path(name)]
    repo.finish(problems, f"{len(sources)} files")


if __name__ == "__main__":
    main()
