#!/usr/bin/env python3
"""C and C++ are as clang-format writes them (.clang-format). To mend: clang-format -i FILE..."""

import os
import subprocess

import repository as repo


def main():
    repo.need("clang-format")
    sources = repo.files(".h", ".cpp", ".c", ".inc")
    shares = [sources[i::os.cpu_count()] for i in range(os.cpu_count())]
    running = [subprocess.Popen(["clang-format", "--dry-run", "-Werror", *share], cwd=repo.ROOT, text=True,
                                stderr=subprocess.PIPE) for share in shares if share]
    problems = []
    for process in running:
        lines = process.communicate()[1].splitlines()
        problems += [line for line in lines if ": error: " in line]
        if process.returncode != 0 and not problems:
            problems += lines or [f"clang-format ended with status {process.returncode}"]
    repo.finish(problems, f"{len(sources)} files")


if __name__ == "__main__":
    main()
