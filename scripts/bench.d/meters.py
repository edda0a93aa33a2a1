# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""What a round cost: processor time per host, the kernel's TCP segments, the whole machine."""

import ctypes
import os
import pathlib
import threading
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
CLONE_NEWNET = 0x40000000
# Above this share of all cores a result says how fast the processors are, not the network.
CPU_BOUND_SHARE = 0.9
SAMPLE_SECONDS = 0.02
KEPT_SAMPLES = 100_000


def namespace_inode(name):
    return os.stat(f"/run/netns/{name}").st_ino


def cpu_seconds_by_namespace(names):
    """User and system seconds so far of all processes in each of these network namespaces."""
    wanted = {namespace_inode(name): name for name in names}
    total = dict.fromkeys(names, 0.0)
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            name = wanted.get(os.stat(f"/proc/{entry.name}/ns/net").st_ino)
            if name is None:
                continue
            fields = pathlib.Path(f"/proc/{entry.name}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has ended
        total[name] += sum(int(field) for field in fields[11:13]) / TICKS_PER_SECOND
    return total


def tcp_segments(namespaces):
    """(sent, retransmitted) TCP segments so far, summed over network namespaces."""
    found = []

    def read_all():
        libc = ctypes.CDLL(None, use_errno=True)
        for name in namespaces:
            fd = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                if libc.setns(fd, CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), f"cannot enter the namespace {name}")
            finally:
                os.close(fd)
            rows = pathlib.Path("/proc/thread-self/net/snmp").read_text().splitlines()
            names, values = (row.split()[1:] for row in rows if row.startswith("Tcp:"))
            row = dict(zip(names, map(int, values)))
            found.append((row["OutSegs"], row["RetransSegs"]))

    # In a thread, because entering a namespace must not move the harness itself.
    thread = threading.Thread(target=read_all)
    thread.start()
    thread.join()
    return tuple(map(sum, zip(*found))) if found else (0, 0)


class Machine:
    """Samples how busy all cores together are, so that any past interval can be asked for."""

    def __init__(self):
        self.cores = os.cpu_count()
        self._samples = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _sample(self):
        fields = list(map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]))
        idle = fields[3] + fields[4]
        self._samples.append((time.monotonic_ns(), sum(fields) - idle))
        del self._samples[:-KEPT_SAMPLES]

    def _run(self):
        while not self._end.wait(SAMPLE_SECONDS):
            self._sample()

    def busy_core_seconds(self, begin_ns, end_ns):
        """Core-seconds spent on anything between two instants, as far as ticks can tell."""
        inside = [sample for sample in list(self._samples) if begin_ns <= sample[0] <= end_ns]
        if len(inside) < 2:
            return None, 0.0
        busy = (inside[-1][1] - inside[0][1]) / TICKS_PER_SECOND
        return busy, (inside[-1][0] - inside[0][0]) / 1e9
