"""Runs tshark with the dissector of this repository."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "lib/tools/wireshark/portofu.lua"
SECONDS = 100

# Ports of ours may be those of other protocols.
FIRST = ("-o", "udp.try_heuristic_first:TRUE", "-o", "tcp.try_heuristic_first:TRUE")

# What tshark says of itself, and of other protocols for which it takes a damaged packet.
NOT_OURS = re.compile(r"Running as user|Dissector bug, protocol (?!PORTOFU)")

SKIPPED = 77


def require(*programs):
    """Ends the test as one that is skipped if a program is missing."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        print(f"Skipped: no {', '.join(missing)} (Debian: tshark)")
        sys.exit(SKIPPED)


def run(arguments, home, seconds=SECONDS, script=SCRIPT):
    """What tshark prints. It knows no settings of whoever runs the test. Whatever it says of Lua ends the test."""
    environment = dict(os.environ, HOME=str(home), XDG_CONFIG_HOME=str(home), LC_ALL="C.UTF-8", TZ="UTC")
    done = subprocess.run(["tshark", *map(str, arguments), *FIRST, "-n", "-X", f"lua_script:{script}"], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds, check=False)
    complaints = [line for line in done.stderr.splitlines() if line.strip() and not NOT_OURS.search(line)]
    if done.returncode != 0 or complaints:
        sys.exit(f"tshark {' '.join(map(str, arguments))}: exit {done.returncode}\n" + "\n".join(complaints))
    return done.stdout


def as_lists(pairs):
    """A JSON object whose keys may come several times: a list of pairs then."""
    keys = [key for key, _ in pairs]
    return dict(pairs) if len(set(keys)) == len(keys) else [list(pair) for pair in pairs]


def packets(capture, home):
    """Of each packet what the dissector has made of it, with all fields. Two passes: answers that come later count."""
    text = run(["-2", "-r", capture, "-T", "json"], home)
    found = []
    for packet in json.loads(text, object_pairs_hook=as_lists):
        layers = packet["_source"]["layers"]
        pairs = layers.items() if isinstance(layers, dict) else layers
        found.append([layer for name, layer in pairs if name.startswith("portofu")])
    return found


def values_of(layers, name):
    """All values of a field, wherever it stands."""
    if isinstance(layers, dict):
        layers = list(layers.items())
    for item in layers:
        if isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str):
            if item[0] == name and isinstance(item[1], str):
                yield item[1]
            if isinstance(item[1], (dict, list)):
                yield from values_of(item[1], name)
        elif isinstance(item, (dict, list)):
            yield from values_of(item, name)
