#!/usr/bin/env python3
"""What `./run coverage` prints: how many lines of the engine and the libraries the tests that ran have reached.

    .ci/coverage.py BUILD_DIRECTORY

reads what a build with PORTOFU_COVERAGE left there. A process that was killed, or ended by _exit, has left nothing, so
the numbers are lower bounds. Lines that were never reached are listed in BUILD_DIRECTORY/coverage.txt.
"""

import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLACES = ("engine", "lib")
# The tests' own objects tell of what headers have inline.
OBJECT_PLACES = (*PLACES, "tests")
NOTES_AT_ONCE = 32


def documents(build):
    """What gcov says about each object file, one after the other."""
    notes = sorted(str(note) for place in OBJECT_PLACES for note in (build / place).rglob("*.gcno"))
    for first in range(0, len(notes), NOTES_AT_ONCE):
        command = ["gcov", "--json-format", "--stdout", *notes[first:first + NOTES_AT_ONCE]]
        output = subprocess.run(command, cwd=build, capture_output=True, text=True, check=True).stdout
        for line in output.splitlines():
            if line.startswith("{"):
                yield json.loads(line)


def count_lines(build):
    """File -> line -> how often it ran; a line of a header counts in whichever object it ran."""
    counts = collections.defaultdict(lambda: collections.defaultdict(int))
    for document in documents(build):
        for file in document["files"]:
            path = (pathlib.Path(document["current_working_directory"]) / file["file"]).resolve()
            if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in PLACES:
                continue
            for line in file["lines"]:
                counts[path.relative_to(ROOT).as_posix()][line["line_number"]] += line["count"]
    return counts


def percent(reached, all_lines):
    return f"{100 * reached / all_lines:5.1f} % of {all_lines} lines"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    counts = count_lines(build)
    if not counts:
        sys.exit(f"{build} holds no counts: cmake --preset coverage")
    rooms, missed = collections.defaultdict(lambda: [0, 0]), []
    for path, lines in sorted(counts.items()):
        reached = sum(count > 0 for count in lines.values())
        for room in (path.rpartition("/")[0], "all"):
            rooms[room][0] += reached
            rooms[room][1] += len(lines)
        missed += [f"{path}:{number}" for number, count in sorted(lines.items()) if count == 0]
    (build / "coverage.txt").write_text("\n".join(missed) + "\n", encoding="utf-8")
    total = rooms.pop("all")
    for room, (reached, all_lines) in sorted(rooms.items()):
        print(f"{percent(reached, all_lines)}  {room}")
    print(f"coverage: {percent(*total).strip()}; those that were missed: {build / 'coverage.txt'}")


if __name__ == "__main__":
    main()
