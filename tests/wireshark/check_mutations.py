#!/usr/bin/env python3
"""Gives the dissector for Wireshark packets that are damaged in every way: none may bring an error in Lua.

The packets are those of the golden captures. Bits, bytes and words change, ends are missing or too long, parts come
from other packets. Half of the frames get right checksums all the same, so that what they say is believed.

usage: check_mutations.py --captures PROGRAM [--packets N] [--seed N]
"""

import argparse
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tshark

PACKETS = 10_000
SEED = 4711
# One process of tshark keeps what it has seen of connections.
PACKETS_PER_RUN = 20_000
RAW_IP, USER0 = 101, 147
TCP, UDP = 6, 17
IP_BYTES, TCP_BYTES, UDP_BYTES, ENVELOPE_BYTES = 20, 20, 8, 24
LONGEST = 3000
# So many of the packets the dissector has to have recognized at least.
LEAST_RECOGNIZED = 0.5

WORDS = (0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 62, (1 << 64) - 1)

CRC = []
for index in range(256):
    for _ in range(8):
        index = index >> 1 ^ (0x82f63b78 if index & 1 else 0)
    CRC.append(index)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def read_pcap(path):
    data, at = path.read_bytes(), 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def read_pcapng(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        kind, block = struct.unpack_from("<II", data, at)
        if kind == 6:
            length = struct.unpack_from("<I", data, at + 20)[0]
            yield data[at + 28:at + 28 + length]
        at += block


def mutate_once(data, others, chance):
    """Changes a bytearray in place."""
    way, size = chance.randrange(8), len(data)
    at = chance.randrange(size) if size else 0
    if size == 0 or way == 0:
        data += chance.randbytes(chance.randrange(64))
    elif way == 1:
        data[at] ^= 1 << chance.randrange(8)
    elif way == 2:
        data[at] = chance.choice(WORDS) & 0xff
    elif way in (3, 4):
        width = chance.choice((2, 4, 8))
        at -= at % width
        data[at:at + width] = (chance.choice(WORDS) & (1 << 8 * width) - 1).to_bytes(width, "little")
    elif way == 5:
        del data[at:]
    elif way == 6:
        other = chance.choice(others)
        data[at:] = other[min(at, len(other)):]
    else:
        data[at:at] = chance.randbytes(chance.randrange(32))
    del data[LONGEST:]


def mutated(data, others, chance):
    changed = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 4, 8))):
        mutate_once(changed, others, chance)
    return changed


def with_checksums(payload, chance):
    """Of an envelope and a frame: right ones, every other time."""
    if len(payload) > ENVELOPE_BYTES + 4 and chance.randrange(2):
        struct.pack_into("<I", payload, 0, crc32c(payload[4:ENVELOPE_BYTES]))
        struct.pack_into("<I", payload, ENVELOPE_BYTES, crc32c(payload[ENVELOPE_BYTES + 4:]))
    return payload


class Network:
    """The IP packets of a capture, each round between other ports, so that connections are new ones."""

    def __init__(self, packets):
        self.packets = packets
        self.payloads = [self.split(packet)[1] for packet in packets]

    @staticmethod
    def split(packet):
        head = IP_BYTES + (TCP_BYTES if packet[9] == TCP else UDP_BYTES)
        return packet[:head], packet[head:]

    def round(self, number, chance):
        sent = {}
        for packet in self.packets:
            head, payload = self.split(packet)
            head, payload = bytearray(head), mutated(payload, self.payloads, chance)
            ports = tuple((port + number * 7) % 60000 + 1000 for port in struct.unpack_from(">HH", head, IP_BYTES))
            struct.pack_into(">HH", head, IP_BYTES, *ports)
            if head[9] == UDP:
                with_checksums(payload, chance)
                struct.pack_into(">H", head, IP_BYTES + 4, UDP_BYTES + len(payload))
            else:
                struct.pack_into(">I", head, IP_BYTES + 4, 1 + sent.get(ports, 0))
                sent[ports] = sent.get(ports, 0) + len(payload)
            struct.pack_into(">H", head, 2, len(head) + len(payload))
            yield head + payload


class Process:
    """The packets that a process has captured."""

    def __init__(self, packets):
        self.packets = packets

    def round(self, _, chance):
        for packet in self.packets:
            yield mutated(packet, self.packets, chance)


def write_capture(path, link_type, source, count, chance):
    """Of some packets the capture has only the beginning."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, link_type))
        written, number = 0, 0
        while written < count:
            number += 1
            for packet in source.round(number, chance):
                here = chance.randrange(len(packet) + 1) if chance.randrange(16) == 0 else len(packet)
                file.write(struct.pack("<IIII", 1 + written // 1000, written % 1000 * 1000, here, len(packet)))
                file.write(packet[:here])
                written += 1
    return written


def look(path, home, script=tshark.SCRIPT):
    """How many packets were recognized, and the errors in Lua."""
    lines = tshark.run(["-2", "-r", path, "-T", "fields", "-E", "separator=|", "-e", "frame.number",
                        "-e", "frame.protocols", "-e", "_ws.lua.error"], home, seconds=1000, script=script).splitlines()
    rows = [line.split("|", 2) for line in lines]
    return sum("portofu" in row[1] for row in rows), [f"packet {row[0]}: {row[2]}" for row in rows if row[2]]


def finds_planted_error(path, home):
    """Whether an error in Lua would be seen: one is put into the innermost function."""
    for name in ("portofu.lua", "portofu_fields.lua"):
        text = (tshark.SCRIPT.parent / name).read_text(encoding="utf-8")
        if name == "portofu.lua":
            planted = text.replace("local function dissect_packet(c, root, tvb, elsewhere)\n",
                                   "local function dissect_packet(c, root, tvb, elsewhere)\n  tvb(1000000, 1)\n")
            if planted == text:
                return False
            text = planted
        (Path(home) / name).write_text(text, encoding="utf-8")
    return bool(look(path, home, Path(home) / "portofu.lua")[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--captures", required=True)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    tshark.require("tshark")
    chance = random.Random(arguments.seed)
    started, total, recognized, errors = time.monotonic(), 0, 0, []
    with tempfile.TemporaryDirectory() as home:
        subprocess.run([arguments.captures, home], check=True, timeout=tshark.SECONDS)
        network = [packet for path in sorted(Path(home).glob("*.pcap")) for packet in read_pcap(path)]
        node = list(read_pcapng(Path(home) / "node.pcapng"))
        if not finds_planted_error(Path(home) / "packets.pcap", home):
            errors.append("an error in Lua that was planted was not seen")
        path = Path(home) / "mutated"
        while total < arguments.packets:
            for link_type, source in ((RAW_IP, Network(network)), (USER0, Process(node))):
                left = min(PACKETS_PER_RUN, arguments.packets) // 2
                total += write_capture(path, link_type, source, left, chance)
                known, found = look(path, home)
                recognized += known
                errors += found
    if recognized < total * LEAST_RECOGNIZED:
        errors.append(f"the dissector has recognized only {recognized} packets")
    print("\n".join(errors[:20]))
    print(f"{total} packets with seed {arguments.seed}, {recognized} recognized, {len(errors)} errors, "
          f"{time.monotonic() - started:.0f} s")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
