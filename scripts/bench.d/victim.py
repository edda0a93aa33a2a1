# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A victim flow: small packets of another host to a host whose port others fill.

A thread sends a UDP datagram every 1 to 3 ms from its own host and receives it at the other end,
over the emulated network. A delay is the time from just before the sending until the receiver's
kernel has the datagram, on one clock. So it does not include waits of the receiving thread for a
CPU.
"""

import bisect
import contextlib
import dataclasses
import os
import random
import socket
import struct
import threading
import time

import bounds
import meters

HOST = "victim"
PORT = 46999
LEAST_PAUSE_S, MOST_PAUSE_S = 0.001, 0.003
# Datagrams that have not come so long after the last was sent are lost.
GRACE_SECONDS = 0.3
KEPT = 500_000
PAYLOAD = struct.Struct("!QQ")  # number, time of sending (ns, CLOCK_REALTIME)
TIMESPEC = struct.Struct("@qq")
SO_TIMESTAMPNS = 35  # asm-generic/socket.h; also the type of what the kernel adds
ANCILLARY_BYTES = 64


@dataclasses.dataclass
class Sample:
    """The delays and losses of the datagrams of an interval."""

    delays_s: list
    lost: int


def summary(delays_s, prefix="victim"):
    """Fields of an entry. They are None if nothing came."""
    of = {"p50_s": 0.5, "p99_s": 0.99}
    return {
        f"{prefix}_{name}": bounds.percentile(delays_s, share) if delays_s else None
        for name, share in of.items()
    }


class VictimFlow:
    """A victim flow from one namespace to an address in another, as a context."""

    def __init__(self, sender_namespace, receiver_namespace, receiver_address):
        kind = (socket.AF_INET, socket.SOCK_DGRAM)
        self._sender = meters.call_in_namespace(sender_namespace, lambda: socket.socket(*kind))
        self._receiver = meters.call_in_namespace(receiver_namespace, lambda: socket.socket(*kind))
        self._receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._receiver.setblocking(False)
        self._receiver.bind((receiver_address, PORT))
        self._sender.connect((receiver_address, PORT))
        self._pauses = random.Random(1)
        self._sent_ns = []  # CLOCK_MONOTONIC, by number
        self._delay_ns = {}  # by number
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        self._sender.close()
        self._receiver.close()

    def sample(self, begin_ns, end_ns):
        """The Sample of datagrams that were sent between two instants of CLOCK_MONOTONIC. Waits for
        those under way."""
        first, behind = (bisect.bisect_left(self._sent_ns, at) for at in (begin_ns, end_ns))
        deadline = time.monotonic() + GRACE_SECONDS
        while any(number not in self._delay_ns for number in range(first, behind)):
            if time.monotonic() > deadline:
                break
            time.sleep(LEAST_PAUSE_S)
        came = [self._delay_ns.get(number) for number in range(first, behind)]
        delays_s = [delay / 1e9 for delay in came if delay is not None]
        return Sample(delays_s, len(came) - len(delays_s))

    def idle(self, seconds):
        """The Sample of the next `seconds`."""
        begin_ns = time.monotonic_ns()
        time.sleep(seconds)
        return self.sample(begin_ns, time.monotonic_ns())

    def _run(self):
        # The thread needs little CPU time, but must not wait between reading the clock and sending.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        while len(self._sent_ns) < KEPT:
            if self._end.wait(self._pauses.uniform(LEAST_PAUSE_S, MOST_PAUSE_S)):
                return
            self._send()
            self._receive()

    def _send(self):
        self._sent_ns.append(time.monotonic_ns())
        # If the sender's own queue is full, the datagram counts as lost.
        with contextlib.suppress(OSError):
            self._sender.send(PAYLOAD.pack(len(self._sent_ns) - 1, time.time_ns()))

    def _receive(self):
        while True:
            try:
                data, ancillary, _, _ = self._receiver.recvmsg(PAYLOAD.size, ANCILLARY_BYTES)
            except BlockingIOError:
                return
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                    number, sent_ns = PAYLOAD.unpack(data)
                    seconds, ns = TIMESPEC.unpack(content)
                    self._delay_ns[number] = seconds * 10**9 + ns - sent_ns
