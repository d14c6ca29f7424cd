#!/usr/bin/env python3
"""A network between namespaces that delays and loses packets, for kernels without netem.

usage: bad_network.py DELAY_MS LOSS_PERCENT SEED NAMESPACE=ADDRESS...

Each namespace gets the device bad0 with its address (a /24); what it sends is lost, or arrives at the other one after
the delay, in order. Prints "ready" when all are up. The network is gone when this process is."""

import ctypes
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
PACKET_BYTES = 2048
MOST_WAITING = 4000  # Packets; a queue of a router is bounded, too.

libc = ctypes.CDLL(None, use_errno=True)


def enter(path):
    with open(path) as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")


def open_device(namespace, address):
    enter(f"/run/netns/{namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"bad0", IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "address", "add", f"{address}/24", "dev", "bad0"], check=True)
    subprocess.run(["ip", "link", "set", "bad0", "up"], check=True)
    return device


def relay(devices, delay_s, loss, dice):
    """devices: descriptor by address, as four bytes."""
    waiting, number = [], 0
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select(list(devices.values()), [], [], timeout)
        now = time.monotonic()
        for device in readable:
            packet = os.read(device, PACKET_BYTES)
            to = devices.get(packet[16:20])
            if to is None or packet[0] >> 4 != 4 or dice.random() < loss or len(waiting) >= MOST_WAITING:
                continue
            number += 1
            heapq.heappush(waiting, (now + delay_s, number, to, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, to, packet = heapq.heappop(waiting)
            try:
                os.write(to, packet)
            except BlockingIOError:
                pass


def main():
    delay_ms, loss_percent, seed = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    devices = {}
    for pair in sys.argv[4:]:
        namespace, address = pair.split("=")
        devices[socket.inet_aton(address)] = open_device(namespace, address)
    print("ready", flush=True)
    relay(devices, delay_ms / 1000, loss_percent / 100, random.Random(seed))


main()
