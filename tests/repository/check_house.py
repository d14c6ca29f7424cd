#!/usr/bin/env python3
"""The measures of the house that one can count: how much a wire and an engine are, and what stands in one place only.

What may include what is in tests/unit/repository/layers_test.cpp.
"""

import re
import subprocess

import repository as repo

MOST_VIRTUAL_IN_WIRE = 16
MOST_MEMBERS_OF_ENGINE = 20

# Whatever a wire can do beside; a function with a default would let a wire over another one switch it off in silence.
FACETS = {
    "Loans": "engine/wire/loans.h", "Copies": "engine/wire/copies.h", "PeerMemory": "engine/wire/peer_memory.h",
    "Completions": "engine/wire/completions.h", "OtherNodes": "engine/wire/other_nodes.h",
}

# What stands once in the engine above the wires, and the file where that is.
ONCE = {
    r"\bwire->publish\(": "engine/mailbox/outbox.h",
    r"\bCounter::kPacketsSent\)": "engine/mailbox/outbox.h",
    r"\bbool is_sane\(": "engine/mailbox/judge.h",
    r"\bSYS_membarrier\b": "engine/queue/asymmetric_guard.h",
}

# The table of the constants of waiting, and what else of engine/run/ has a name like theirs: when something ends whose
# end cannot come, the length of a turn, units.
WAITING = "engine/run/wait_limits.h"
WAITING_NAME = re.compile(r"\bconstexpr [^=;]*\b(k\w*(?:Ns|Us|Ms|Pauses|Spins|Looks|Yields))\b\s*[={]")
ENDS = {"kLingerNs", "kPatienceNs", "kLongestCallNs", "kLongestExitNs", "kSilenceNs", "kTurnNs", "kPsPerNs"}

# What a directory or file of the root is called; besides these, those of tools, which begin with a dot.
ROOT_FILES = {
    "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "benchmarks", "engine", "include", "lib", "run", "tests",
}


def class_body(path, name):
    """What stands between the braces of a class, without comments."""
    text = repo.without_comments(repo.read(path))
    begin = text.index("{", re.search(rf"^(?:enum )?class {name}\b[^;{{]*{{", text, flags=re.MULTILINE).start())
    return text[begin + 1:text.index("\n};", begin)]


def at_depth_0(body):
    """The same without what stands in braces within it: bodies of functions, and other structs."""
    depth, kept = 0, []
    for character in body:
        depth -= character == "}"
        kept.append(character if depth == 0 else "\n" if character == "\n" else "")
        depth += character == "{"
    return "".join(kept)


def members(body):
    """Names of the data members, which end in an underscore."""
    declaration = re.compile(r"^  (?!return|using|friend)[\w:<>,*& ]+?[ *&](\w+_)(?: = [^;(]+)?(?:\{\})?;", flags=re.MULTILINE)
    return declaration.findall(at_depth_0(body))


def wire_problems():
    functions = re.findall(r"^  virtual [^;{]*[;{]", class_body("engine/wire/wire.h", "Wire"), flags=re.MULTILINE)
    if not 1 <= len(functions) <= MOST_VIRTUAL_IN_WIRE:
        yield f"Wire has {len(functions)} virtual functions, more than {MOST_VIRTUAL_IN_WIRE}"
    bodies = {"Wire": functions}
    for name, path in FACETS.items():
        bodies[name] = re.findall(r"^  virtual [^;{]*[;{]", class_body(path, name), flags=re.MULTILINE)
    for name, found in bodies.items():
        for function in found:
            if "~" not in function and not function.endswith("= 0;"):
                yield f"{name}: '{' '.join(function.split())}' has a default"


def once_problems():
    places = {pattern: [] for pattern in ONCE}
    for path in repo.files(".h", ".cpp", places=("engine",)):
        text = repo.without_comments(repo.read(path))
        for pattern, found in places.items():
            found += [path] * len(re.findall(pattern, text))
    for pattern, where in ONCE.items():
        if places[pattern] != [where]:
            yield f"{pattern} stands in {places[pattern]}, and should in {where} once"


def waiting_problems():
    found = set()
    for path in repo.files(".h", ".cpp", places=("engine/run",)):
        names = set(WAITING_NAME.findall(repo.without_comments(repo.read(path))))
        found |= names
        if path != WAITING:
            yield from (f"{path}: {name} belongs into {WAITING}" for name in sorted(names - ENDS))
    yield from (f"tests/repository/check_house.py: there is no {name}" for name in sorted(ENDS - found))


def counter_problems():
    """A counter that nobody raises shows 0, which looks like an answer."""
    table = "engine/observe/counters"
    names = re.findall(r"^  (k\w+),", class_body(f"{table}.h", "Counter"), flags=re.MULTILINE)
    uses = "".join(repo.read(path) for path in repo.files(".h", ".cpp", places=("engine", "lib"))
                   if not path.startswith(table))
    if len(names) < 20:
        yield f"{table}.h: the counters were not found"
    yield from (f"nobody raises Counter::{name}" for name in names if not re.search(rf"Counter::{name}\b", uses))


def picture_problems():
    """The picture of the house has all rooms, and no other."""
    drawn = set(re.findall(r"\b(\w+)/", re.sub(r"lib/\w+|<[^>]*>", " ", repo.read("engine/doc/house.svg"))))
    rooms = {path.split("/")[1] for path in repo.files(".h", places=("engine",))}
    yield from (f"engine/doc/house.svg does not show {room}/" for room in sorted(rooms - drawn))
    yield from (f"engine/doc/house.svg shows {room}/, which is not there" for room in sorted(drawn - rooms))


def root_problems():
    """Scratch files come into commits where nobody looks for them."""
    tracked = subprocess.run(["git", "-C", repo.ROOT, "ls-files"], capture_output=True, text=True, check=False)
    for name in sorted({path.split("/")[0] for path in tracked.stdout.splitlines()}):
        if name not in ROOT_FILES and not name.startswith("."):
            yield f"{name} does not belong to the root"


def main():
    problems = [*wire_problems(), *once_problems(), *waiting_problems(), *counter_problems(),
                *picture_problems(), *root_problems()]
    found = members(class_body("engine/run/engine.h", "Engine"))
    if "core_" not in found or "policy_" not in found:
        problems.append("the members of Engine were not found")
    if len(found) > MOST_MEMBERS_OF_ENGINE:
        problems.append(f"Engine has {len(found)} members, more than {MOST_MEMBERS_OF_ENGINE}: {', '.join(found)}")
    repo.finish(problems, f"{len(found)} members of Engine, {len(FACETS)} facets")


if __name__ == "__main__":
    main()
