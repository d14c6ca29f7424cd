#!/usr/bin/env python3
"""Finds loads that wait for stores: those of which only a part was written by the youngest store that they overlap.

A load of something that is still in the store buffer gets it from there, if one store wrote all of it. If several did,
it waits until they have reached the cache, behind every older store, one of which may wait for a line of a peer: 15
cycles at least. See engine/queue/fresh_line.h.

  stalled_loads.py [--least N] PROGRAM [ARGUMENT...]

runs the program (a release build, and short, like forwarding_short_messages: one line of the trace per instruction)
under valgrind's lackey, and prints every place in the libraries of this build where that happened at least N times,
with the store. Which place a compiler spoils depends on its version and flags, so this is a tool and no test.
"""

import argparse
import bisect
import collections
import pathlib
import re
import subprocess
import tempfile

STORE_BUFFER = 64  # Stores.
WINDOW = 600  # Instructions after which a store has certainly reached the cache.
OURS = re.compile(r"/lib(portofu|portals|tofucom)[^/]*\.so")


def stalls_of(trace):
    """@return how often each pair (load, store) of instructions occurs, and the objects by where they are mapped"""
    stores = collections.deque(maxlen=STORE_BUFFER)
    pairs, objects, name = collections.Counter(), {}, None
    at = count = 0
    for line in trace:
        kind = line[:2]
        if kind == "I ":
            count += 1
            at = int(line[3:line.index(",")], 16)
        elif kind in (" L", " S", " M"):
            address, size = line[3:].split(",")
            begin = int(address, 16)
            end = begin + int(size)
            if kind != " S":
                for store_begin, store_end, store_count, store_at in reversed(stores):
                    if count - store_count > WINDOW:
                        break
                    if store_begin < end and begin < store_end:
                        if begin < store_begin or end > store_end:
                            pairs[at, store_at] += 1
                        break
            if kind != " L":
                stores.append((begin, end, count, at))
        elif found := re.search(r"Reading syms from (\S+)", line):
            name = found[1]
        elif found := re.search(r"svma 0x(\w+), avma 0x(\w+)", line):
            objects[int(found[2], 16) - int(found[1], 16)] = name
    return pairs, objects


def place_of(address, objects):
    """@return file and lines of an instruction, innermost first; None if it is not of our libraries"""
    bases = sorted(objects)
    index = bisect.bisect_right(bases, address) - 1
    if index < 0 or not OURS.search(objects[bases[index]]):
        return None
    command = ["addr2line", "-Cfsie", objects[bases[index]], hex(address - bases[index])]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return f"{lines[0].split('(')[0]} at {' in '.join(lines[1::2])}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--least", type=int, default=100)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.program:
        parser.error("which program?")
    with tempfile.TemporaryDirectory() as logs:
        subprocess.run(["valgrind", "-v", "-v", "--tool=lackey", "--trace-mem=yes", f"--log-file={logs}/%p",
                        *options.program], stdout=subprocess.DEVNULL, check=False)
        inherited = {}  # A forked process maps what its parent did, and says nothing of it. Logs are named by process.
        for log in sorted(pathlib.Path(logs).iterdir(), key=lambda path: int(path.name)):
            with log.open(errors="replace") as trace:
                pairs, objects = stalls_of(trace)
            inherited.update(objects)
            for (load, store), times in pairs.most_common():
                load_place = place_of(load, inherited)
                if times < options.least or load_place is None:
                    continue
                print(f"{times} times {load_place}\n    after {place_of(store, inherited) or 'a store elsewhere'}")


if __name__ == "__main__":
    main()
