#!/usr/bin/env python3
"""What `./run lint` does: clang compiles every source of a configured build without a warning, and clang-tidy finds
nothing in the engine and the libraries (.clang-tidy).

    .ci/lint.py BUILD_DIRECTORY [REGEX]      REGEX restricts the sources, by their paths from the root

Prints what was found, and the seconds that both took; status 1 if there was something.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Of what one source gives rise to; the first error often brings the others.
MOST_LINES = 20

TIDY_PLACES = ("engine/", "lib/")
# Of GCC's options, what clang does not know is no warning; what it warns about beyond -Wall is not asked for.
EXTRA = ["-fsyntax-only", "-Werror", "-Wno-unknown-warning-option", "-Wno-unused-command-line-argument"]


def commands(build):
    """Each source of the build once: its path from the root, and its command without the compiler and the output."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        while not re.search(r"(^|[/-])(cc|c\+\+|gcc|g\+\+|clang|clang\+\+)(-\d+)?$", words[0]):
            words = words[1:]  # The compiler cache and its variables.
        at = words.index("-o")
        found[os.path.relpath(entry["file"], ROOT)] = words[1:at] + words[at + 2:], entry["directory"]
    return found


def run(words, directory):
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode != 0 else ""


def compile_one(path, words, directory):
    return run(["clang" if path.endswith(".c") else "clang++", *words, *EXTRA], directory)


def tidy_one(path, build):
    output = run(["clang-tidy", "--quiet", "-p", str(build), path], ROOT)
    return re.sub(r"^\d+ warnings? .*generated.*\n", "", output, flags=re.MULTILINE)


def step(title, jobs):
    """Runs jobs, pairs of a path and a function without parameters, on all cores. @return the number that found something"""
    started, bad = time.monotonic(), 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for (path, _), output in zip(jobs, pool.map(lambda job: job[1](), jobs)):
            if output:
                bad += 1
                print(f"{title}: {path}\n" + "\n".join(output.splitlines()[:MOST_LINES]), flush=True)
    print(f"{title}: {bad} of {len(jobs)} sources with findings, {time.monotonic() - started:.0f} s", flush=True)
    return bad


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    sources = {path: command for path, command in sorted(commands(build).items()) if wanted.search(path)}
    bad = step("clang", [(path, lambda p=path, c=command: compile_one(p, *c)) for path, command in sources.items()])
    bad += step("clang-tidy", [(path, lambda p=path: tidy_one(p, build)) for path in sources
                               if path.startswith(TIDY_PLACES)])
    sys.exit(1 if bad or not sources else 0)


if __name__ == "__main__":
    main()
