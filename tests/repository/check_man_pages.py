#!/usr/bin/env python3
"""Every function of the headers has a manual page, which groff sets without a warning, and Doxygen has the same headers.

So it does the pages of the tools, if PORTOFU_PAGES names a directory where a build has put them.
"""

import os
import pathlib
import re
import shutil
import sys
import tempfile

import repository as repo

HEADERS = ("include/portals4.h", "include/utofu.h", "include/portofu.h", "include/funi.h", "include/cmam.h")
# Each page has them.
SECTIONS = (".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH SEE ALSO")


def declared(header):
    return re.findall(r"^\w+_API\s[^;]*?\b(\w+)\(", repo.without_comments(repo.read(header)), flags=re.MULTILINE)


def returns_of(header):
    """The functions of a header that return something."""
    return set(re.findall(r"^\w+_API\s(?!void\s+\w+\()[^;]*?\b(\w+)\(", repo.without_comments(repo.read(header)),
                          flags=re.MULTILINE))


def problems_of(page, name, returns):
    if not page.is_file():
        return [f"{name} has no page"]
    text = page.read_text(encoding="utf-8")
    problems = [f"{page.name} lacks {section}" for section in SECTIONS if section not in text]
    if not re.search(rf"^{name} \\- \S{{3}}", text, flags=re.MULTILINE):
        problems.append(f"{page.name} does not say what {name} does: it has no comment in its header")
    said = re.search(r"^\.SH RETURN VALUE\n((?:[^.\n].*\n)*)", text, flags=re.MULTILINE)
    times = said[1].count("\n") if said else 0
    if times != int(returns):
        problems.append(f"{page.name} says {times} times what {name} returns, not {int(returns)}")
    if "\\-\\-\\-\\-" in text:
        problems.append(f"{page.name} takes a heading of its header for text")
    return problems


def main():
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as directory:
        status, output = repo.run([sys.executable, "-B", "lib/man/make_pages.py", "--version", "0", "--output", directory,
                                   "--overview", "lib/man/portofu.7.in", *HEADERS])
        if status != 0:
            repo.finish([output], "no pages")
        for header in HEADERS:
            for name in declared(header):
                page = pathlib.Path(directory) / "man3" / f"{name}.3"
                problems += problems_of(page, name, name in returns_of(header))
                count += 1
        if shutil.which("groff") is not None:
            pages = sorted(pathlib.Path(directory).rglob("*.[37]"))
            if "PORTOFU_PAGES" in os.environ:
                pages += sorted(pathlib.Path(os.environ["PORTOFU_PAGES"]).rglob("*.1"))
            problems += repo.run(["groff", "-man", "-Tutf8", "-ww", "-z", *map(str, pages)])[1].splitlines()
    for tool in sorted(repo.ROOT.glob("lib/tools/ptl_*")):
        if repo.read("lib/man/portofu.7.in").count(f".BR {tool.name} (1)") != 2:
            problems.append(f"lib/man/portofu.7.in does not list {tool.name} twice: among the tools, and under SEE ALSO")
    if f"= {' '.join(HEADERS)}\n" not in repo.read("lib/doxygen/Doxyfile"):
        problems.append(f"the INPUT of lib/doxygen/Doxyfile is not {' '.join(HEADERS)}")
    if count < 120:
        problems.append(f"only {count} functions were found in the headers")
    repo.finish(problems, f"{count} functions")


if __name__ == "__main__":
    main()
