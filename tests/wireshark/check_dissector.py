#!/usr/bin/env python3
"""Tries the dissector for Wireshark with captures that the engine's encoders write.

What tshark makes of each capture has to equal golden/NAME.json, a line a packet. Every number that an enumeration of
the engine gives a name has to have that name in Wireshark, and every kind of packet, frame and message has to be in a
golden capture. --update writes the golden files anew: look at what changes.

usage: check_dissector.py --captures PROGRAM [--update]
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tshark

GOLDEN = Path(__file__).resolve().parent / "golden"

# Field: header and enumeration. The names of these are the enumerators.
ENUMERATIONS = {
    "portofu.type": ("engine/wire/header.h", "PacketType"),
    "portofu.frame.kind": ("engine/wire/reliable/frame.h", "FrameKind"),
    "portofu.frame.traffic": ("engine/wire/traffic_class.h", "TrafficClass"),
    "portofu.ofi.kind": ("engine/wire/ofi/ofi_message.h", "OfiKind"),
    "portofu.directory.kind": ("engine/wire/ofi/directory_message.h", "DirectoryKind"),
    "portofu.letter.kind": ("engine/wire/ofi/doorplate.h", "LetterKind"),
    "portofu.news.kind": ("engine/segment/known_by.h", "NewsKind"),
    "portofu.ni_fail_type": ("engine/event/event.h", "NiFail"),
    "portofu.atomic_operation": ("engine/atomic/atomic_unit.h", "AtomicOperation"),
    "portofu.atomic_type": ("engine/atomic/atomic_unit.h", "AtomicType"),
    "portofu.capture.kind": ("engine/wire/capture/capture_record.h", "CaptureKind"),
    "portofu.capture.direction": ("engine/wire/capture/capture_record.h", "CaptureDirection"),
    "portofu.capture.medium": ("engine/wire/capture/capture_record.h", "CaptureMedium"),
    "portofu.capture.payload": ("engine/wire/capture/capture_record.h", "CapturePayload"),
    "portofu.gate.operation": ("engine/event/barrier_gate.h", "ReduceOperation"),
}
# The zero of an atomic is none; descriptors have types that no packet has.
ALSO_NAMED = {"portofu.atomic_operation": {0: "none"}, "portofu.atomic_type": {0: "none"}}
FIRST_TYPE_OF_DESCRIPTORS = 64

# Of these each value has to be in a golden capture.
COVERED = ("portofu.type", "portofu.frame.kind", "portofu.frame.traffic", "portofu.ofi.kind", "portofu.directory.kind",
           "portofu.letter.kind", "portofu.news.kind", "portofu.capture.kind", "portofu.capture.direction",
           "portofu.capture.medium", "portofu.capture.payload")

# Constants that are bits, and the fields that show them.
FLAGS = {
    "engine/wire/header.h": {"kFlag": "portofu.flags.", "kTofu": "portofu.tofu_meta."},
    "engine/wire/reliable/frame.h": {"kFrame": "portofu.frame.flags."},
}
NO_FLAGS = ("kFrameFormat", "kTofuStepsShift")


def snake(name):
    """kNoReceiver: no_receiver."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removeprefix("k")).lower()


def read_without_comments(path):
    return re.sub(r"//.*", "", (tshark.ROOT / path).read_text(encoding="utf-8"))


def enumerators(path, name):
    """{number: name} of an enumeration, all of whose enumerators have their number written."""
    body = re.search(rf"enum class {name} [^{{]*{{(.*?)}};", read_without_comments(path), re.S)[1]
    entries = [entry.strip() for entry in body.split(",") if entry.strip()]
    found = dict(re.fullmatch(r"(k\w+) = (\d+)", entry).groups() for entry in entries)
    return {int(number): snake(enumerator) for enumerator, number in found.items()}


def value_of(expression, constants):
    """Of a constant that is a bit: 1u << 3, or another one."""
    if shifted := re.fullmatch(r"1u\s*<<\s*(\d+)", expression):
        return 1 << int(shifted[1])
    return constants[expression] if expression in constants else int(expression)


def named_problems(home):
    """Numbers that Wireshark and the engine name differently."""
    named = {}
    for line in tshark.run(["-G", "values"], home).splitlines():
        parts = line.split("\t")
        if parts[0] == "V" and parts[1] in ENUMERATIONS:
            named.setdefault(parts[1], {})[int(parts[2], 0)] = parts[3]
    for field, (path, name) in ENUMERATIONS.items():
        wanted = enumerators(path, name)
        if field == "portofu.type":
            wanted = {number: text for number, text in wanted.items() if number < FIRST_TYPE_OF_DESCRIPTORS}
        wanted |= ALSO_NAMED.get(field, {})
        if named.get(field) != wanted:
            yield f"{field}: Wireshark has {named.get(field)}, {name} of {path} has {wanted}"


def flag_problems(home):
    """Bits that have no field, or another one."""
    masks = {}
    for line in tshark.run(["-G", "fields"], home).splitlines():
        parts = line.split("\t")
        if parts[0] == "F" and parts[2].startswith("portofu.") and parts[3] == "FT_BOOLEAN":
            masks[parts[2]] = int(parts[6], 0)
    fields = set()
    for path, prefixes in FLAGS.items():
        constants = {}
        pattern = r"inline constexpr std::uint(?:8|16)_t (k\w+)\s*=\s*([^;]+);"
        for name, expression in re.findall(pattern, read_without_comments(path)):
            prefix = next((one for one in prefixes if name.startswith(one)), None)
            if prefix is None or name in NO_FLAGS:
                continue
            constants[name] = value_of(expression.strip(), constants)
            field = prefixes[prefix] + snake(name.removeprefix(prefix))
            fields.add(field)
            if masks.get(field) != constants[name]:
                yield f"{name} of {path} is {constants[name]}, {field} is {masks.get(field)}"
    yield from (f"{field} is no constant of the engine" for field in sorted(set(masks) - fields))


def coverage_problems(captures):
    """Kinds that are in no golden capture."""
    for field in COVERED:
        path, name = ENUMERATIONS[field]
        found = {int(value, 0) for packets in captures.values() for value in tshark.values_of(packets, field)}
        for number, text in enumerators(path, name).items():
            if number not in found and number < FIRST_TYPE_OF_DESCRIPTORS and (field, number) != ("portofu.type", 0):
                yield f"{name} {text} is in no golden capture: add it to tests/wireshark/write_captures.cpp"


def golden_problems(name, packets, update):
    """Where a capture is not what it should be."""
    path = GOLDEN / f"{name}.json"
    lines = [json.dumps(packet) for packet in packets]
    if update:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    wanted = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if len(lines) != len(wanted):
        yield f"{name}: {len(lines)} packets, and {path.name} has {len(wanted)}"
    for number, (line, expected) in enumerate(zip(lines, wanted), 1):
        if line != expected:
            yield f"{name}, packet {number}:\n  {line}\n  instead of\n  {expected}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--captures", required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    tshark.require("tshark")
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([arguments.captures, directory], check=True, timeout=tshark.SECONDS)
        captures = {path.stem: tshark.packets(path, directory) for path in sorted(Path(directory).glob("*.pcap*"))}
        for name, packets in captures.items():
            problems += golden_problems(name, packets, arguments.update)
        problems += [f"golden/{path.name} is of no capture" for path in GOLDEN.glob("*.json")
                     if path.stem not in captures]
        problems += coverage_problems(captures)
        problems += named_problems(directory)
        problems += flag_problems(directory)
    print("\n".join(problems))
    print(f"{sum(map(len, captures.values()))} packets in {len(captures)} captures, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
