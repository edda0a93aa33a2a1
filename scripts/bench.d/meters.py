# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Meters of a round: CPU time of each host, the kernel's TCP segments, and the whole machine."""

import concurrent.futures
import ctypes
import os
import pathlib
import threading
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
CLONE_NEWNET = 0x40000000
SWITCH = "switch"  # the key of the switch among hosts, none of which has this name
# Above this share of all cores a result shows the speed of the CPUs and not of the network.
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


def read_counter(file, row, name):
    """A counter of the kernel in the network namespace of this thread."""
    rows = pathlib.Path(f"/proc/thread-self/net/{file}").read_text().splitlines()
    names, values = (line.split()[1:] for line in rows if line.startswith(row))
    return int(values[names.index(name)])


def enter_namespace(name):
    """Moves this thread to a network namespace for good."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {name}")
    finally:
        os.close(fd)


def call_in_thread(call):
    """Runs a call in a new thread and returns its result, so that this thread stays in its
    namespace."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(call).result()


def call_in_namespace(name, call):
    """Runs a call in a network namespace and returns its result. A socket that it makes stays in
    the namespace."""

    def enter_and_call():
        enter_namespace(name)
        return call()

    return call_in_thread(enter_and_call)


def tcp_segments(namespaces):
    """(TCP segments with new data, retransmitted ones) so far, in all these namespaces."""

    def read_all():
        found = []
        for name in namespaces:
            enter_namespace(name)
            found.append((read_counter("netstat", "TcpExt:", "TCPOrigDataSent"),
                          read_counter("snmp", "Tcp:", "RetransSegs")))  # fmt: skip
        return found

    found = call_in_thread(read_all)
    return tuple(map(sum, zip(*found))) if found else (0, 0)


def network_use(stats):
    """The use of the emulated network since its counters were reset, from its stats."""
    switch, links = stats["switch"], stats["links"].values()
    losses = ("ring_drops", "send_failures", "pool_exhausted")
    return {
        "wire_bytes": sum(l["up"]["sent_wire_bytes"] for l in links if "up" in l),
        "uplink_bytes": {
            name: link["up"]["sent_wire_bytes"]
            for name, link in stats["links"].items() if "up" in link
        },
        "deepest_queue_bytes": max(
            (d["deepest_queue_bytes"] for link in links for d in link.values()), default=0
        ),
        "queue_drops": sum(d["queue_drops"] for link in links for d in link.values()),
        "late_frames": switch.get("late_1ms", 0),
        "latest_frame_us": switch.get("latest_us", 0.0),
        "delivered_frames": switch.get("delivered", 0),
        "lost_by_switch": sum(switch.get(what, 0) for what in losses),
    }


def site_link_bytes(stats):
    """{link between two sites: [bytes forward, bytes backward]} since the counters were reset."""
    return {
        name: [link[way]["sent_wire_bytes"] for way in ("forward", "backward")]
        for name, link in stats["links"].items() if "forward" in link
    }  # fmt: skip


class Machine:
    """Samples how busy all cores together are, so that past intervals can be queried."""

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
        """(busy core-seconds, seconds) between the samples nearest to two instants, in the
        resolution of ticks; (None, 0) when there are none."""
        if self._samples[-1][0] < end_ns:
            self._sample()
        samples = list(self._samples)
        before = [sample for sample in samples if sample[0] <= begin_ns]
        after = [sample for sample in samples if sample[0] >= end_ns]
        if not before or not after:
            return None, 0.0
        busy = (after[0][1] - before[-1][1]) / TICKS_PER_SECOND
        return busy, (after[0][0] - before[-1][0]) / 1e9
