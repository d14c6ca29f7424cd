#!/usr/bin/env python3
"""Captures real processes by PORTOFU_PCAPNG and looks at their packets with the dissector for Wireshark.

First the programs of README.md, two processes each, whose packets are known. Then conformance tests of both APIs, in a
node and between nodes: what a process has received another one has sent, every request that wants an answer is linked
to one, and nothing is malformed.

usage: check_node.py --compiler CC --include DIRECTORY --libraries DIRECTORY [PROGRAM...]
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tshark

sys.path.insert(0, str(tshark.ROOT / "tests/readme"))
import run_examples  # pylint: disable=wrong-import-position

FIELDS = ("portofu", "portofu.capture.kind", "portofu.capture.direction", "portofu.capture.medium", "portofu.type",
          "portofu.flags.answer_wanted", "portofu.match_bits", "portofu.length", "portofu.payload",
          "portofu.request_in", "portofu.response_in", "portofu.expert.short", "portofu.expert.unknown",
          "portofu.expert.version", "_ws.lua.error")
ACKNOWLEDGEMENT, SENT, SHARED_MEMORY, OTHER_NODES, PUT, TOFU_PUT = "2", "1", "1", "2", "1", "8"

# Program: what of it runs. Everything that goes to and fro, but for what sends much.
FILTERS = {
    "conformance_portals4_s3_15_put_get_test": "*/two_processes:-*data_of_all_sizes*",
    "conformance_portals4_s3_16_triggered_operations_test": "*",
    "conformance_utofu_s3_07_onesided_test": "*armw*two_processes:*errors_by_kind_two*:*piggyback_two_processes",
    "conformance_utofu_s3_08_barrier_test": "*",
}
BETWEEN_NODES = ("conformance_portals4_s3_15_put_get_test", "conformance_utofu_s3_07_onesided_test")


def captured(directory, home):
    """The packets of all captures of a directory, in the order of time: {field: value or ""} each."""
    files = sorted(Path(directory).glob("*.pcapng"))
    if not files:
        return []
    merged = Path(home) / "merged.pcapng"
    subprocess.run(["mergecap", "-w", merged, *files], check=True, timeout=tshark.SECONDS)
    arguments = ["-2", "-r", merged, "-T", "fields", *(part for field in FIELDS for part in ("-e", field))]
    lines = tshark.run(arguments, home).splitlines()
    return [dict(zip(FIELDS, line.split("\t"))) for line in lines]


def common_problems(packets):
    """What holds for every capture of all processes of a job."""
    for number, packet in enumerate(packets, 1):
        if not packet["portofu"]:
            yield f"packet {number} is not shown by the filter portofu"
        for field in FIELDS[-4:]:
            if packet[field]:
                yield f"packet {number}: {field} {packet[field]}"
        if packet["portofu.flags.answer_wanted"] == "1" and not packet["portofu.response_in"]:
            yield f"packet {number} wants an answer, and has none"
        if packet["portofu.capture.kind"] == ACKNOWLEDGEMENT and not packet["portofu.request_in"]:
            yield f"packet {number} acknowledges nothing"
    sent, taken = collections.Counter(), collections.Counter()
    for packet in packets:
        (sent if packet["portofu.capture.direction"] == SENT else taken)[packet["portofu.type"]] += 1
    # What nobody waits for may be left when a process ends.
    if not packets or taken - sent:
        yield f"sent are {dict(sent)}, received {dict(taken)} packets by type"


def example_problems(number, packets):
    """The first program sends "hello" by a put that is acknowledged, the second by a put with a notice."""
    hello = "hello\0".encode().hex()
    if number == 1:
        if [packet["portofu.type"] or packet["portofu.capture.kind"] for packet in packets] != [PUT, PUT, "2", "2"]:
            yield "the first program has other packets than a put and its acknowledgement"
        for packet in packets[:2]:
            if packet["portofu.payload"].replace(":", "") != hello or int(packet["portofu.match_bits"], 0) != 42:
                yield f"the put carries {packet}"
        answers = [packet["portofu.response_in"] for packet in packets[:2]]
        # The initiator is answered when the acknowledgement arrives, the target has answered when it sends it.
        if answers != ["4", "3"]:
            yield f"the put is answered in {answers}"
    elif [packet["portofu.type"] for packet in packets] != [TOFU_PUT, TOFU_PUT]:
        yield "the second program has other packets than a put"
    for packet in packets:
        if packet["portofu.capture.medium"] != SHARED_MEMORY:
            yield "a packet in a node that is not in shared memory"


def run_captured(command, job_key, extra, home, look):
    """Runs a command with a directory for captures, and looks at these; returns problems."""
    with tempfile.TemporaryDirectory(dir=home) as directory:
        environment = dict(os.environ, PORTOFU_PCAPNG=directory, PORTOFU_JOB_KEY=str(job_key), **extra)
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=tshark.SECONDS, check=False)
        packets = captured(directory, home)
        problems = [*common_problems(packets), *look(packets)]
        if done.returncode != 0:
            problems.append(f"exit {done.returncode}:\n{done.stdout[-2000:]}")
    name = " ".join([Path(command[0]).name, *command[1:], *extra.values()])
    print(f"{name}: {len(packets)} packets, {len(problems)} problems")
    print("\n".join(problems[:20]))
    return len(problems)


def compile_example(number, program, arguments, home):
    source = Path(home) / f"example{number}.c"
    source.write_text(program, encoding="utf-8")
    library = "tofucom" if "<utofu.h>" in program else "portals"
    subprocess.run([arguments.compiler, source, f"-I{arguments.include}", f"-L{arguments.libraries}", f"-l{library}",
                    f"-Wl,-rpath,{arguments.libraries}", "-o", source.with_suffix("")], check=True,
                   timeout=tshark.SECONDS)
    return str(source.with_suffix(""))


def main():
    parser = argparse.ArgumentParser()
    for name in ("--compiler", "--include", "--libraries"):
        parser.add_argument(name, required=True)
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    tshark.require("tshark", "mergecap")
    problems, key = 0, os.getpid()
    with tempfile.TemporaryDirectory() as home:
        readme = run_examples.README.read_text(encoding="utf-8")
        for number, (program, _) in enumerate(run_examples.examples(readme), 1):
            binary = compile_example(number, program, arguments, home)
            problems += run_captured([binary], key, {}, home, lambda packets, n=number: example_problems(n, packets))
        for program in arguments.programs:
            name = Path(program).name
            command = [program, f"--gtest_filter={FILTERS[name]}", "--gtest_brief=1"]
            problems += run_captured(command, key, {}, home, lambda _: ())
            if name in BETWEEN_NODES:
                # Those that set up the test meet in shared memory.
                problems += run_captured(
                    command, key, {"PORTOFU_TEST_NODES": "127.9.3,datagram"}, home,
                    lambda packets: () if any(packet["portofu.capture.medium"] == OTHER_NODES for packet in packets)
                    else ["no packet has gone to another node"])
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
