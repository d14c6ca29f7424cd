#!/usr/bin/env python3
"""Makes manual pages from the C headers: one for each function that is declared with a comment of `///` in front of it.

    make_pages.py --version 0.1.0 --output DIRECTORY HEADER...

writes DIRECTORY/man3/FUNCTION.3. With --overview FILE it also writes DIRECTORY/man7/NAME.7 from a template, in which
@VERSION@ and @FUNCTIONS@ are filled in; with --tool NAME=FILE also DIRECTORY/man1/NAME.1, from what NAME --help prints.

A comment is a sentence or several, then @param, @return, @post and @spec. A comment of `//` that stands for itself is
about all functions behind it, until the next one or the next heading `// ---- 3.7 Title ---`.
"""

import argparse
import pathlib
import re
import textwrap
from typing import NamedTuple

HEADING = re.compile(r"^// ---- (?:[\d.]+(?:, [\d.]+)* )?(.*?) -+$")
DECLARATION = re.compile(r"^(?:PTL|UTOFU|PORTOFU|FUNI|CMAM)_API\s+(.*?\b(\w+)\(.*\));$", re.DOTALL)
TAG = re.compile(r"@(param|return|post|spec)\s+")

# What a program links, and what the page calls the interface, by header.
LIBRARIES = {
    "portals4.h": ("portals", "Portals 4.3"),
    "utofu.h": ("tofucom", "uTofu"),
    "portofu.h": ("portofu_heap", "Portofu"),
    "funi.h": ("funi", "FUNi"),
    "cmam.h": ("funi", "CMAM"),
}


# Of a prototype; a terminal of 80 has a margin.
COLUMNS = 70

# Functions before and behind that a page refers to.
NEIGHBOURS = 4


class Function(NamedTuple):
    name: str
    prototype: str  # lines as in the header
    comment: str    # without the slashes, lines kept
    common: str     # the comment about several functions, or ""
    section: str    # title


def read_functions(text):
    """The functions of a header, in order."""
    functions, comment, common, section = [], [], "", ""
    lines = iter(text.split("\n"))
    for line in lines:
        if heading := HEADING.match(line):
            section, common, comment = heading.group(1), "", []
        elif line.startswith("///"):
            comment.append(line[3:].removeprefix(" "))
        elif line.startswith("// clang-format"):
            pass
        elif line.startswith("//"):
            block = [line[2:].removeprefix(" ")]
            for line in lines:
                if not line.startswith("//"):
                    break
                block.append(line[2:].removeprefix(" "))
            common = "\n".join(block) if not line.strip() else ""
            comment = []
        elif re.match(r"^\w+_API ", line):
            while not line.endswith(";"):
                line += "\n" + next(lines)
            match = DECLARATION.match(line)
            functions.append(Function(match.group(2), match.group(1) + ";", "\n".join(comment), common, section))
        else:
            comment = []
    return functions


def escape(text):
    """Plain text as roff; what stands between backquotes is bold."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)
    return re.sub(r"^(['.])", r"\\&\1", text, flags=re.MULTILINE)


def split_comment(comment):
    """The text in front of the tags, and the tags in order as pairs."""
    parts = TAG.split(comment)
    words = [" ".join(part.split()) for part in parts]
    return words[0], list(zip(words[1::2], words[2::2]))


def name_line(name, text):
    sentence = re.split(r"(?<=\w)[.;:](?:\s|$)", text, maxsplit=1)[0].strip()
    if len(sentence) > 1 and sentence[1].islower() and not sentence.startswith(("Ptl", "utofu")):
        sentence = sentence[0].lower() + sentence[1:]
    return f"{name} \\- {escape(sentence)}"


def common_lines(common):
    """The comment about several functions: paragraphs, and a tagged paragraph for each indented line with two columns."""
    page = []
    for line in common.split("\n"):
        if row := re.match(r"^  (\S.*?)  +(\S.*)$", line):
            page += [".TP", f".B {escape(row.group(1))}", escape(row.group(2))]
        else:
            if not line.startswith(" ") and page and page[-3:-2] == [".TP"]:
                page.append(".PP")
            page.append(escape(TAG.sub("", line.strip())))
    return page


def prototype_lines(prototype):
    """Broken between parameters only."""
    words = " ".join(prototype.split()).replace(" ", "\0").replace(",\0", ", ")
    return [line.replace("\0", " ") for line in textwrap.wrap(words, COLUMNS, subsequent_indent="    ")]


def references(pages):
    """Names and sections, separated by commas."""
    return "\n".join(f".BR {name} ({section}){',' if i + 1 < len(pages) else ''}"
                     for i, (name, section) in enumerate(pages))


def function_page(function, header, neighbours, version):
    library, interface = LIBRARIES[header]
    text, tags = split_comment(function.comment)
    page = [f'.TH {function.name} 3 "" "Portofu {version}" "{interface}"', ".SH NAME", name_line(function.name, text)]
    page += [".SH SYNOPSIS", ".nf", f".B #include <{header}>", ".PP"]
    page += [f'.B "{escape(line)}"' for line in prototype_lines(function.prototype)]
    page += [".PP", f"Link with \\fB\\-l{library}\\fR.", ".fi", ".SH DESCRIPTION", escape(text)]
    for tag, words in tags:
        if tag == "param":
            name, _, meaning = words.partition(" ")
            while name.endswith(","):  # Of several parameters in one line.
                more, _, meaning = meaning.partition(" ")
                name += " " + more
            page += [".TP", f".I {escape(name)}", escape(meaning.strip())]
    common, _, common_return = function.common.partition("\nReturn: ")
    if common:
        page += [".PP", *common_lines(common)]
    if common_return:
        tags.append(("return", " ".join(TAG.split(common_return)[0].split())))
    for tag, heading in (("return", "RETURN VALUE"), ("post", "NOTES"), ("spec", "STANDARDS")):
        found = [escape(re.sub(r"^guide ", "uTofu User's Guide, ", words)) for name, words in tags if name == tag]
        if found:
            page += [f".SH {heading}", *found]
    page += [".SH SEE ALSO", references([(name, 3) for name in neighbours] + [("portofu", 7)])]
    return "\n".join(page) + "\n"


def tool_page(name, text, version):
    """What NAME --help prints is laid out as a page: headings at the margin, text at 4 spaces, its parts at 8."""
    page = [f'.TH {name} 1 "" "Portofu {version}" "Portofu"']
    section = ""
    for line in text.split("\n"):
        indent, words = len(line) - len(line.lstrip(" ")), escape(line.strip())
        if not words:
            page.append(".PP")
        elif indent == 0:
            section = words
            page.append(f".SH {words}")
        elif section == "OPTIONS" and indent == 4:
            page += [".TP", f".B {words}"]
        elif section in ("SYNOPSIS", "EXAMPLES") or re.search(r"\S   +\S", line):
            page += [".nf", words, ".fi"]
        else:
            page.append(words.replace(f"{name} \\-\\- ", f"{name} \\- "))
    return "\n".join(page) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--overview", type=pathlib.Path)
    parser.add_argument("--tool", action="append", default=[])
    parser.add_argument("headers", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    all_names = []
    for header in options.headers:
        functions = read_functions(header.read_text(encoding="utf-8"))
        for i, function in enumerate(functions):
            neighbours = [other.name for other in functions[max(0, i - NEIGHBOURS):i + NEIGHBOURS + 1]
                          if other.section == function.section and other != function]
            write(options.output / "man3" / f"{function.name}.3",
                  function_page(function, header.name, neighbours, options.version))
        all_names += [function.name for function in functions]
    if options.overview is not None:
        text = options.overview.read_text(encoding="utf-8").replace("@VERSION@", options.version)
        text = text.replace("@FUNCTIONS@", references([(name, 3) for name in all_names]))
        write(options.output / "man7" / options.overview.name.removesuffix(".in"), text)
    for tool in options.tool:
        name, _, file = tool.partition("=")
        write(options.output / "man1" / f"{name}.1",
              tool_page(name, pathlib.Path(file).read_text(encoding="utf-8"), options.version))


if __name__ == "__main__":
    main()
