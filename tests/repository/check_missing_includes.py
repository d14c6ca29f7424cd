#!/usr/bin/env python3
"""No file uses a name whose header it does not include, itself or by another header of ours.

A unity build, which is how most builds of the tests are made, does not see that: there an earlier file of the same unit
has the include. Judged are names of ours that one header alone declares, at the beginning of a line, and that mean
nothing else anywhere, and some of the standard library. A file that says of a class that there is one (`class Name;`)
may leave its header out. Of 15 includes that were taken away at random and that the compiler missed, this told of 11;
`./run lint` finds the others.
"""

import collections
import os
import re

import check_includes
import repository as repo

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', flags=re.MULTILINE)
WORD = re.compile(r"(?<![\w.>:])(?:portofu::)?([A-Za-z_]\w{2,})(\s*\()?")
FORWARD = re.compile(r"^\s*(?:friend )?(?:class|struct|enum class) (\w+)(?: : [\w:]+)?;", flags=re.MULTILINE)
# As TEST(Suite, Name): its words mean something else.
MACRO = re.compile(r"^[A-Z][A-Z0-9_]+\([^)]*", flags=re.MULTILINE)
TYPE = re.compile(r"^(?:class|struct|union|enum class|enum)(?: \[\[\w+\]\]| alignas\([^)]*\))* (\w+)(?: final)?\s*[:{]|"
                  r"^using (\w+) =", flags=re.MULTILINE)
CONSTANT = re.compile(r"^inline constexpr [\w:<>, ]+? (k[A-Z]\w*)\b", flags=re.MULTILINE)
FUNCTION = re.compile(r"^(?!return|using|typedef|#|static_assert|template|else|class|struct|enum|extern|namespace)"
                      r"[\w\[][\w:<>,&*\[\] ]*[ &*]([a-z]\w+)\(", flags=re.MULTILINE)
# What makes a name mean something else, too: members, parameters and variables, lambdas.
OTHER = re.compile(r"(?:\b\w+|[>&*\]])[ &*]+([a-z]\w+)(?=\s*[({=;,)\[:])")
NESTED = re.compile(r"^[ \t]+(?:(?:class|struct|union|enum class|enum) (\w+)|using (\w+) =|typename (\w+)|"
                    r"(?:static |inline |constexpr |const )+[\w:<>, ]+? (k[A-Z]\w*)|(k[A-Z]\w*)(?=,|\s*=|\s*$|\s*}))|"
                    r"(?:template <|, )(?:class|typename)(?:\.\.\.)? (\w+)", flags=re.MULTILINE)
CONSTANT_OF_SOURCE = re.compile(r"\b(k[A-Z]\w*)(?:\[[^]]*\])*(?: =|\{|\()")
OF_CLASS = re.compile(r"\w::(~?\w+)\(")
# Of check_includes.USES, those whose pattern means nothing else, and that other headers do not bring by the way.
STANDARD = ("array", "chrono", "deque", "fstream", "iostream", "limits", "map", "mutex", "numeric", "optional", "set",
            "span", "string", "string_view", "thread", "tuple", "unordered_map", "unordered_set", "vector")
# Found by who uses the template, in the namespace of what it is handed.
BY_ARGUMENT = {("engine/queue/cell_producer.h", "write_head")}


class Tree:
    """All files of ours, without comments, and what each includes."""

    def __init__(self):
        self.text, self.included, self.standard = {}, {}, {}
        for path in repo.files(".h", ".cpp"):
            raw = repo.read(path)
            self.included[path] = INCLUDE.findall(raw)
            self.standard[path] = set(check_includes.INCLUDE.findall(raw))
            self.text[path] = MACRO.sub("", re.sub(r"^\s*#[^\n]*", "", repo.without_comments(raw), flags=re.MULTILINE))
        for path, names in self.included.items():
            self.included[path] = [found for found in map(self.find(path), names) if found]

    def find(self, path):
        """@return a function from what an include says to the file, which may be none of ours"""
        def place(name):
            beside = (repo.ROOT / path).parent / name
            for candidate in (name, f"include/{name}", f"tests/conformance/{name}"):
                if candidate in self.text:
                    return candidate
            near = os.path.relpath(beside, repo.ROOT)
            return near if near in self.text else None
        return place

    def closure(self, path):
        """The file, and all that it includes."""
        seen, left = set(), [path]
        while left:
            now = left.pop()
            if now not in seen:
                seen.add(now)
                left.extend(self.included[now])
        return seen


def declared(text):
    """The types and constants, and the functions, that a header declares for all."""
    types = {name for pair in TYPE.findall(text) for name in pair if name} | set(CONSTANT.findall(text))
    return types, set(FUNCTION.findall(text))


def judged_names(tree):
    """Name -> (its only header, whether it is a function)."""
    homes = collections.defaultdict(set)
    functions, means_else = set(), set()
    for path, text in tree.text.items():
        types, calls = declared(text)
        for name in types | calls:
            homes[name].add(path)
        functions |= calls
        means_else |= {name for names in NESTED.findall(text) for name in names if name}
        if path.endswith(".cpp"):
            means_else |= set(CONSTANT_OF_SOURCE.findall(text))
        means_else |= set(OF_CLASS.findall(text))
        for line in text.split("\n"):
            if line[:1].isspace():
                means_else |= set(OTHER.findall(line))
    judged = {}
    for name, places in homes.items():
        headers = [path for path in places if path.endswith(".h")]
        own = [path.removesuffix(".cpp") + ".h" for path in places if path.endswith(".cpp")]
        if len(headers) != 1 or any(home != headers[0] for home in own) or name in means_else:
            continue
        judged[name] = headers[0], name in functions
    return judged


def main():
    tree = Tree()
    judged = judged_names(tree)
    problems = []
    for path, text in tree.text.items():
        if path.startswith("include/"):
            continue  # C, which knows nothing of ours; each of them is compiled alone.
        seen = tree.closure(path)
        known = {name for part in seen for name in FORWARD.findall(tree.text[part])}
        missed = {}
        for name, is_called in WORD.findall(text):
            home, is_function = judged.get(name, (None, False))
            if home is None or home in seen or name in known or (is_function and not is_called):
                continue
            if (path, name) in BY_ARGUMENT:
                continue
            missed.setdefault(home, name)
        for home, name in sorted(missed.items()):
            problems.append(f"{path} uses {name} and does not include {home}")
        standard = set().union(*(tree.standard[part] for part in seen))
        for header in STANDARD:
            if header not in standard and (use := re.search(check_includes.USES[header], text)):
                problems.append(f"{path} uses {use.group(0)} and does not include <{header}>")
    repo.finish(problems, f"{len(tree.text)} files, by {len(judged)} names")


if __name__ == "__main__":
    main()
