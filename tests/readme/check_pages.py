#!/usr/bin/env python3
"""Checks all pages (*.md) of the repository.

A page has at most the lines that LIMITS gives it, and no line of text is longer than 140 columns. A sentence has fewer
than 40 words, a cell of a table fewer than 200 characters. Links lead somewhere. Names between backquotes that look
like files, directories, functions, constants and variables exist in the repository; of `Owner::member` the owner has
such a member.

usage: check_pages.py [--self-test] [PAGE...]     (PAGE from the root of the repository; without one, all pages)
"""

import argparse
import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent

# Page and its limit in lines; the first pattern that matches counts. None: any length.
LIMITS = (
    ("README.md", 150),
    ("lib/README.md", 250),
    ("lib/portals4/README.md", 150),
    ("lib/utofu/README.md", 150),
    ("lib/environment.md", 150),  # With the generated table of settings.
    ("lib/*.md", 120),
    ("engine/README.md", 250),
    ("engine/doc/*.md", 200),
    ("benchmarks/README.md", 120),
    ("benchmarks/NOTEBOOK.md", None),
    ("benchmarks/compare_apis/README.md", None),
    ("benchmarks/results/*.md", 120),
    ("benchmarks/machines/README.md", 120),
    (".github/CONTRIBUTING.md", 80),
    ("tests/*.md", 120),
)

# Written by a program, and laboratory notes: no limit for sentences and cells, and names may be those of their day.
FREE = ("benchmarks/compare_apis/README.md", "benchmarks/NOTEBOOK.md")

MAX_COLUMNS = 140
MAX_WORDS = 39
MAX_CELL_CHARACTERS = 199

# Names that do not belong to the repository although they look like it: of systems, of other projects, and of the
# reader. Those that a code block of the same page uses are known too.
FOREIGN = {
    "program.c", "lib/pkgconfig/", "openmpi-mca-params.conf", "results.md", "posix_spawn", "ptrace_scope",
    "compare_portals", "compare_utofu",  # Programs whose names are put together from parts.
    "provider_include", "fi_srx_context", "fi_stx_context", "fi_av_insertsym",  # Of Open MPI and of libfabric.
}
FOREIGN_OWNERS = {"std", "boost"}
# First parts of paths that are not in the repository: what is built and installed.
FOREIGN_PLACES = ("build", "bin", "etc", "share", "PREFIX", "~", "$", "proc", "dev", "sys")
SOURCE_ENDINGS = (".h", ".cpp", ".c", ".py", ".sh", ".md", ".cmake", ".map", ".tsv", ".list", ".gp")
NAMES_OF_OURS = re.compile(r"^(PORTOFU|PTL|UTOFU)_[A-Z0-9_]+$|^(Ptl|k)[A-Z]\w+$|^[a-z]+\w*_\w+$")
# What has members: its name begins a body, or the definition of a member elsewhere.
OWNER = re.compile(r"\b(?:class|struct|namespace|enum|union)\s+(?:alignas\([^)]*\)\s+)?(\w+)\s*(?:final\s*)?(?::[^;{}()]*)?\{")
ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|approx|resp|No|Fig)\.", re.I)


def tracked_files():
    """All files that git knows or does not ignore; without git, all files outside of build."""
    done = subprocess.run(["git", "-C", str(REPOSITORY), "ls-files", "-co", "--exclude-standard"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode == 0 and done.stdout:
        return sorted(path for path in set(done.stdout.splitlines()) if (REPOSITORY / path).is_file())
    found = []
    for directory, names, files in os.walk(REPOSITORY):
        names[:] = [name for name in names if name not in ("build", ".git")]
        found += [os.path.relpath(os.path.join(directory, file), REPOSITORY) for file in files]
    return sorted(found)


class Repository:
    """What names can mean: files, directories and the words of all sources."""

    def __init__(self, files, texts=None):
        self.files = set(files)
        self.directories = set()
        for path in files:
            while "/" in path:
                path = path.rsplit("/", 1)[0]
                self.directories.add(path)
        self.words = set()
        self.members = {}  # Of each owner: the words in its bodies, and what is defined elsewhere as a member of it.
        for text in texts if texts is not None else map(self.read, files):
            self.words.update(re.findall(r"\w+", text))
            for owner, member in re.findall(r"\b(\w+)::(~?\w+)", text):
                self.members.setdefault(owner, set()).add(member)
            for owner in OWNER.finditer(text):
                self.members.setdefault(owner[1], set()).update(re.findall(r"\w+", self.body(text, owner.end())))

    @staticmethod
    def read(path):
        if path.endswith(".md") or path == "tests/readme/check_pages.py":
            return ""
        return (REPOSITORY / path).read_text(encoding="utf-8", errors="replace")

    @staticmethod
    def body(text, begin):
        """What stands from there to the brace that closes the one before."""
        depth = 1
        for brace in re.finditer(r"[{}]", text[begin:]):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                return text[begin:begin + brace.start()]
        return text[begin:]

    def has_path(self, name):
        """Whether some file or directory is called so, given from the root or from any directory."""
        name = name.rstrip("/")
        stems = {name} | {name + ending for ending in SOURCE_ENDINGS}
        everything = self.files | self.directories
        return any(stem in everything or any(path.endswith("/" + stem) for path in everything) for stem in stems)


class Page:
    def __init__(self, path, text, repository):
        self.path = path
        self.lines = text.splitlines()
        self.repository = repository
        self.problems = []
        self.code_blocks = "\n".join(re.findall(r"^ *```.*?\n(.*?)^ *```", text, re.M | re.S))

    def problem(self, number, text):
        self.problems.append(f"{self.path}:{number}: {text}")

    def kinds(self):
        """(line number, line, kind) of each line: code, table, heading, empty or text."""
        in_code = in_comment = False
        for number, line in enumerate(self.lines, 1):
            if re.match(r"^ *```", line):
                in_code = not in_code
                kind = "code"
            elif in_code or line.startswith("    ") and not re.match(r"^\s+([-*]|\d+\.|\w|[`(\[])", line):
                kind = "code"
            elif in_comment or "<!--" in line:
                in_comment = "-->" not in line
                kind = "empty"
            elif line.lstrip().startswith("|"):
                kind = "table"
            elif line.startswith("#"):
                kind = "heading"
            else:
                kind = "text" if line.strip() else "empty"
            yield number, line, kind

    def paragraphs(self):
        """Lists of (line number, line) of text; an item of a list is one of its own."""
        paragraph = []
        for number, line, kind in [*self.kinds(), (len(self.lines) + 1, "", "empty")]:
            begins_item = re.match(r"^\s*([-*+]|\d+\.)\s", line)
            if (kind != "text" or begins_item) and paragraph:
                yield paragraph
                paragraph = []
            if kind == "text":
                paragraph.append((number, re.sub(r"^\s*([-*+>]|\d+\.)\s+", "", line)))

    def sentences(self):
        """(line number, words) of each sentence. The end of a paragraph ends one too."""
        for paragraph in self.paragraphs():
            yield from self.sentences_of(paragraph)

    @staticmethod
    def sentences_of(paragraph):
        """Code between backquotes is one word, and so is what a link says in code."""
        text = " ".join(f"\x00{number}\x00 {line}" for number, line in paragraph)
        text = re.sub(r"`[^`]*`", lambda code: "code" + "".join(re.findall("\x00\\d+\x00", code[0])), text)
        text = re.sub(r"\]\([^)]*\)", "]", text)
        text = ABBREVIATIONS.sub(lambda found: found[0].replace(".", ""), text)
        number = paragraph[0][0]
        for sentence in re.split(r"(?<=[.!?])[)*\"'\]]*\s+", text):
            numbers = re.findall("\x00(\\d+)\x00", sentence)
            plain = re.sub("\x00\\d+\x00", " ", sentence)
            words = [word for word in plain.split() if re.search(r"\w", word)]
            yield int(numbers[0]) if numbers and sentence.lstrip().startswith("\x00") else number, words
            number = int(numbers[-1]) if numbers else number

    # ---- The rules ----------------------------------------------------------------------------------------------

    def check_length(self):
        for pattern, limit in LIMITS:
            if fnmatch.fnmatchcase(self.path, pattern):
                if limit is not None and len(self.lines) > limit:
                    self.problem(limit + 1, f"the page has {len(self.lines)} lines, more than {limit}")
                return
        self.problem(1, "LIMITS in tests/readme/check_pages.py has no limit for this page")

    def check_text(self):
        for number, line, kind in self.kinds():
            if kind == "text" and len(line) > MAX_COLUMNS:
                self.problem(number, f"the line has {len(line)} columns, more than {MAX_COLUMNS}")
            if kind == "table" and not re.match(r"^\s*\| `PORTOFU_\w+` \|", line):  # Those are made by the code.
                cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
                for cell in cells:
                    if len(cell.strip()) > MAX_CELL_CHARACTERS:
                        self.problem(number, f"a cell has {len(cell.strip())} characters, more than "
                                             f"{MAX_CELL_CHARACTERS}: {cell.strip()[:50]} ...")
        for number, words in self.sentences():
            if len(words) > MAX_WORDS:
                self.problem(number, f"a sentence has {len(words)} words, more than {MAX_WORDS}: "
                                     f"{' '.join(words[:8])} ...")

    def anchors(self):
        """GitHub's names of the headings."""
        found = set()
        for _, line, kind in self.kinds():
            if kind == "heading":
                title = re.sub(r"[`*]", "", line.lstrip("#").strip()).lower()
                title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
                found.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
        return found

    def check_links(self):
        for number, line, kind in self.kinds():
            if kind == "code":
                continue
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"^[a-z]+:", target):
                    continue
                file, _, anchor = target.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(self.path), file)) if file else self.path
                if file and path not in self.repository.files | self.repository.directories:
                    self.problem(number, f"the link leads nowhere: {target}")
                elif anchor and path.endswith(".md"):
                    page = self if path == self.path else Page(
                        path, (REPOSITORY / path).read_text(encoding="utf-8"), self.repository)
                    if anchor not in page.anchors():
                        self.problem(number, f"{path} has no heading for the link {target}")

    def check_names(self):
        """Code may begin on one line and end on the next."""
        single = [[(number, line)] for number, line, kind in self.kinds() if kind in ("table", "heading")]
        for paragraph in [*self.paragraphs(), *single]:
            text = "\n".join(line for _, line in paragraph)
            for code in re.finditer(r"`([^`]+)`", text):
                self.check_name(paragraph[text.count("\n", 0, code.start())][0], re.sub(r"\s+", " ", code[1]))

    def check_name(self, number, code):
        name = code.strip().removesuffix("()")
        for owner, member in re.findall(r"\b(\w+)::(\w+)", code):
            if owner not in FOREIGN_OWNERS and member not in self.repository.members.get(owner, ()):
                self.problem(number, f"nothing in the sources is called {owner}::{member}")
        if code in FOREIGN or re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", self.code_blocks):
            return
        if NAMES_OF_OURS.match(name):
            if name not in self.repository.words and not self.repository.has_path(name):
                self.problem(number, f"nothing in the sources is called {name}")
        elif re.match(r"^(?!/)[\w.+-]+(/[\w.+-]+)*/?$", name) and not name.startswith(FOREIGN_PLACES):
            is_file = name.endswith(SOURCE_ENDINGS) and not name.startswith(".")
            is_place = name.endswith("/")
            is_inner = "/" in name and (name.split("/")[0] in self.known_places() and "." not in name.split("/")[-1])
            if (is_file or is_place or is_inner) and not self.repository.has_path(name):
                self.problem(number, f"there is no file or directory {name}")

    def known_places(self):
        """The first parts of paths: directories of the root and of the page."""
        here = os.path.dirname(self.path)
        prefixes = ("", here + "/" if here else "")
        return {path[len(prefix):] for prefix in prefixes for path in self.repository.directories
                if path.startswith(prefix) and "/" not in path[len(prefix):]}

    def check(self):
        self.check_length()
        self.check_links()
        if self.path not in FREE:
            self.check_text()
            self.check_names()
        return self.problems


# ---- A page with one mistake of each kind, and one with none ------------------------------------------------------

BAD_PAGE = """# Bad
A sentence of words %s.
A [link](nowhere.md), an [anchor](#nothing), `engine/nothing.h`, `nothing/`, `engine/nothing`, `PtlNothing`,
`Ring::nothing`.
%s

| a | b |
|---|---|
| %s | c |
""" % ("w " * 37, "x" * 141, "c" * 200)
# 39 words in a sentence, 199 characters in a cell.
GOOD_PAGE = """# Good, `really`
A sentence of words %s.
It ends here, e.g. with `many words in code`.
- A [link](engine/core.h), an [anchor](#good-really), `engine/core.h`, `core.h`, `engine/`, `engine/core`, `PtlPut`,
  `Ring::head`, `Ring::push`.

```
sentence %s
```
| a | b |
|---|---|
| %s | `a/b` |
""" % ("w " * 35, "w " * 50, "c" * 199)
EXPECTED = ("has no limit", "leads nowhere: nowhere.md", "has no heading for the link #nothing", "engine/nothing.h",
            "directory nothing/", "directory engine/nothing", "PtlNothing", "Ring::nothing", "141 columns",
            "200 characters", "41 words")


def self_test():
    """Returns what the rules get wrong."""
    repository = Repository(["engine/core.h"], ["int PtlPut(); struct Ring { int head; }; void Ring::push() { nothing(); }"])
    found = Page("other/bad.md", BAD_PAGE, repository).check()
    wrong = [f"not found: {text}" for text in EXPECTED if not any(text in line for line in found)]
    wrong += [f"not expected: {line}" for line in found if not any(text in line for text in EXPECTED)]
    wrong += Page("README.md", GOOD_PAGE, repository).check()
    return wrong + ([] if Page("README.md", "a\n" * 151, repository).check() else ["151 lines are not found"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("pages", nargs="*")
    arguments = parser.parse_args()
    if arguments.self_test:
        problems = self_test()
    else:
        files = tracked_files()
        repository = Repository(files)
        pages = [os.path.relpath(page, REPOSITORY) if os.path.isabs(page) else page for page in arguments.pages]
        problems = []
        for path in pages or [file for file in files if file.endswith(".md")]:
            problems += Page(path, (REPOSITORY / path).read_text(encoding="utf-8"), repository).check()
    print("\n".join(problems) if problems else "all pages keep the rules")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
