#!/usr/bin/env python3
"""Compiles and runs the programs of README.md.

Each ```c block is a whole program. The words between backquotes after "prints", in the paragraph before the block, are
the lines that it prints, in any order. A program that uses utofu.h is linked with libtofucom, others with libportals.

usage: run_examples.py --compiler CC --include DIRECTORY --libraries DIRECTORY
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parent.parent.parent / "README.md"
SECONDS = 30
PROGRAMS = 2
# Both programs are meant to be read at once.
MAX_LINES = 45


def examples(text):
    """(program, lines that it prints) of each block."""
    for found in re.finditer(r"(?:\A|\n\n)((?:[^\n]+\n)+)\n```c\n(.*?)^```$", text, re.M | re.S):
        yield found[2], re.findall(r"`([^`]+)`", found[1].partition("prints")[2])


def run_example(number, program, expected, arguments, directory):
    """Returns what is wrong with it, or nothing."""
    source = Path(directory) / f"example{number}.c"
    binary = source.with_suffix("")
    source.write_text(program, encoding="utf-8")
    library = "tofucom" if "<utofu.h>" in program else "portals"
    compiling = subprocess.run(
        [arguments.compiler, "-Wall", "-Wextra", "-Werror", str(source), f"-I{arguments.include}",
         f"-L{arguments.libraries}", f"-l{library}", f"-Wl,-rpath,{arguments.libraries}", "-o", str(binary)],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if compiling.returncode != 0:
        return compiling.stdout
    # A job of its own, so that other tests of this user do not take its control queues.
    environment = dict(os.environ, PORTOFU_JOB_KEY=str(os.getpid()))
    running = subprocess.Popen([str(binary)], text=True, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        printed = running.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)  # The child of the program, too.
        return f"hangs, printed:\n{running.communicate()[0]}"
    if running.returncode != 0 or sorted(printed.splitlines()) != sorted(expected):
        return f"exit {running.returncode}, printed:\n{printed}and not:\n" + "\n".join(expected)
    return "" if program.count("\n") <= MAX_LINES else f"it has more than {MAX_LINES} lines"


def main():
    parser = argparse.ArgumentParser()
    for name in ("--compiler", "--include", "--libraries"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    found = list(examples(README.read_text(encoding="utf-8")))
    failures = 0 if len(found) == PROGRAMS else 1
    print(f"{len(found)} programs in README.md, {PROGRAMS} wanted")
    with tempfile.TemporaryDirectory() as directory:
        for number, (program, expected) in enumerate(found, 1):
            problem = run_example(number, program, expected, arguments, directory)
            print(f"program {number}: {problem or 'compiles and prints what README.md says'}")
            failures += problem != ""
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
