#!/usr/bin/env python3
"""A function has at most five parameters; what needs more takes a struct.

Looks at the definitions in engine/ and lib/. The functions of the APIs have the parameters that their specifications give
them.
"""

import re

import repository as repo

MOST = 5

# May only become shorter. Those of lib/ pass on what a function of an API was given.
EXCEPTIONS = {
    # The short path: each is in a register, and nobody has to write a struct first.
    "acknowledge_early", "report_communication",
    # lib/ucx/
    "begin_access", "post_stripes", "prepare_pieces", "take_get",
    # Elsewhere in lib/
    "Plain", "armw_goes_at_once", "armw_of", "call_of", "cswap_of", "get_info", "get_of", "piggyback8_of",
    "piggyback_of", "put_data", "put_of", "put_piggyback8_data", "request_of", "swap", "transfer",
}

API = re.compile(r"^(Ptl|utofu_|portofu_|cmam_|FJMPI_|uct_utofu_ep_|pselect$)")
# What stands in the tables of functions of libfabric begins with an object.
TABLE = re.compile(r"\s*fid(_\w+)?\s*\*")
KEYWORDS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "alignas", "decltype", "constexpr", "requires"}
NAME = re.compile(r"([~\w]+(?:::[~\w]+)*)\s*\(")
# What may stand between the parameters and the body.
TAIL = re.compile(r"\s*(?:const|noexcept|override|final|&&?|\s)*(?:->[^;{}()]+)?\s*(?:\{|:[^:])")


def closing(text, at, pair="()"):
    depth = 0
    for i in range(at, len(text)):
        if text[i] == pair[0]:
            depth += 1
        elif text[i] == pair[1]:
            depth -= 1
            if depth == 0:
                return i
    return len(text)


def parameter_count(inside):
    if not inside.strip() or inside.strip() == "void":
        return 0
    depth, count = 0, 1
    for character in inside:
        depth += (character in "(<[{") - (character in ")>]}")
        count += character == "," and depth == 0
    return count


def definitions(text):
    """Name, line and number of parameters of each function that has a body here."""
    for match in NAME.finditer(text):
        name = match.group(1)
        if name.split("::")[-1] in KEYWORDS:
            continue
        before = text[:match.start()].rstrip(" \t\n")
        # A definition follows a type, a specifier or the end of another thing; a call follows an operator or "return".
        if not before or before[-1] in "=(,!+|?." or before.endswith(("->", "return", "&&", "::", "new")):
            continue
        end = closing(text, match.end() - 1)
        if TAIL.match(text, end + 1):
            yield name, text.count("\n", 0, match.start()) + 1, text[match.end():end]


def main():
    problems, found, count = [], set(), 0
    for path in repo.files(".h", ".cpp", ".c", ".inc", places=("engine", "lib")):
        for name, line, inside in definitions(repo.without_comments(repo.read(path))):
            count += 1
            parameters = parameter_count(inside)
            if parameters <= MOST or API.match(name.split("::")[-1]):
                continue
            if path.startswith("lib/libfabric/") and TABLE.match(inside):
                continue
            found.add(name)
            if name not in EXCEPTIONS:
                problems.append(f"{path}:{line}: {name} has {parameters} parameters, more than {MOST}")
    repo.shrinking(problems, found, EXCEPTIONS, __file__)
    repo.finish(problems, f"{count} functions")


if __name__ == "__main__":
    main()
