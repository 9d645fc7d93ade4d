#!/usr/bin/env python3
"""A line between two network namespaces that delays packets and loses some of them: a TUN device at each end, and this
process between them. (The kernel's netem does the same, but often it is not built in.)

  line.py NAMESPACE ADDRESS NAMESPACE ADDRESS --delay SECONDS --jitter SECONDS --loss SHARE

The devices are called `line`. Prints "up" when it is ready, and carries packets until it is killed. Needs root."""
import argparse
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000


def open_end(namespace, address):
    """Opens a TUN device in the namespace, which this process enters only for that moment."""
    with open(f"/run/netns/{namespace}") as there, open("/proc/self/ns/net") as here:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"line", IFF_TUN | IFF_NO_PI))
        libc.setns(here.fileno(), CLONE_NEWNET)
    ip = ["ip", "-n", namespace]
    subprocess.run([*ip, "address", "add", f"{address}/24", "dev", "line"], check=True)
    subprocess.run([*ip, "link", "set", "line", "up"], check=True)
    return device


def carry(ends, delay, jitter, loss):
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    draw = random.Random(1)
    under_way = []  # (arrival time, number, end, packet)
    number = 0
    while True:
        patience = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        for end in select.select(ends, [], [], patience)[0]:
            packet = os.read(end, 65536)
            if draw.random() < loss:
                continue
            number += 1
            arrives = time.monotonic() + delay + draw.random() * jitter
            heapq.heappush(under_way, (arrives, number, other[end], packet))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, end, packet = heapq.heappop(under_way)
            os.write(end, packet)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("ends", nargs=4)
    for flag in "delay", "jitter", "loss":
        parser.add_argument(f"--{flag}", type=float, default=0.0)
    words = parser.parse_args()
    ends = [open_end(*words.ends[:2]), open_end(*words.ends[2:])]
    print("up", flush=True)
    carry(ends, words.delay, words.jitter, words.loss)
