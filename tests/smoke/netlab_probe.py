#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Sends and counts raw Ethernet frames, for netlab_test.sh.

  netlab_probe.py send DEVICE DESTINATION_MAC COUNT BYTES    bypasses the device's queue, as DPDK
  netlab_probe.py count DEVICE QUIET_SECONDS                 until no frame comes for so long

Both print `ready` first. The sender then waits for a byte on stdin, so that several start at once.
The counter counts frames of the experimental type 0x88b5 and prints their number, the bytes after
the first frame, and the seconds from the first to the last.
"""

import os
import select
import socket
import struct
import sys
import time

EXPERIMENT = 0x88B5
SOL_PACKET = 263
PACKET_QDISC_BYPASS = 20
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35  # its value on 64-bit Linux
TIMESPEC = struct.Struct("qq")
SOCKET_BUFFER_BYTES = 32 << 20
OVERALL_SECONDS = 60


def open_packet_socket(device, frame_type):
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(frame_type))
    # Large enough that the socket neither delays the sender nor drops frames. Only the lab does.
    raw.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER_BYTES)
    raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES)
    raw.bind((device, frame_type))
    return raw


def send(device, destination, count, frame_bytes):
    raw = open_packet_socket(device, EXPERIMENT)
    raw.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    header = bytes.fromhex(destination.replace(":", "")) + raw.getsockname()[4]
    frame = header + EXPERIMENT.to_bytes(2, "big")
    frame += bytes(frame_bytes - len(frame))
    print("ready", flush=True)
    os.read(0, 1)
    for _ in range(count):
        raw.send(frame)


def receive(raw):
    """The size of the next frame, and when the kernel received it. That may be long ago."""
    frame, ancillary, _, _ = raw.recvmsg(65536, socket.CMSG_SPACE(TIMESPEC.size))
    seconds, nanoseconds = TIMESPEC.unpack(ancillary[0][2])
    return len(frame), seconds + nanoseconds * 1e-9


def count(device, quiet_seconds):
    raw = open_packet_socket(device, EXPERIMENT)
    raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    print("ready", flush=True)
    frames = total_bytes = 0
    first = last = None
    deadline = time.monotonic() + OVERALL_SECONDS
    while time.monotonic() < deadline:
        # The first frame may take longer. After it, a silence means the end.
        if not select.select([raw], [], [], quiet_seconds if frames else OVERALL_SECONDS)[0]:
            break
        size, last = receive(raw)
        if first is None:
            first = last
        else:
            total_bytes += size
        frames += 1
    print(frames, total_bytes, f"{(last - first) if frames else 0:.6f}", flush=True)


def main():
    if sys.argv[1:2] == ["send"] and len(sys.argv) == 6:
        send(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    elif sys.argv[1:2] == ["count"] and len(sys.argv) == 4:
        count(sys.argv[2], float(sys.argv[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
