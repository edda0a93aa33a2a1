# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Two network namespaces as hosts, joined by a veth pair without a rate limit. A second pair is for
the rendezvous of ranks, so that the first one only has the frames of the contestant."""

import contextlib
import os
import subprocess

DATA, MEETING = "gpd0", "gpm0"
MEETING_ADDRESS = "10.79.0.{}"
# With XDP, veth takes frames up to 3498 bytes.
MTU = 3000
OFFLOADS = ("gso", "gro", "tso")
LIMIT_SECONDS = 20


def run(*words):
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=LIMIT_SECONDS)


class Hosts:
    """The two hosts, 0 and 1."""

    def __init__(self, names):
        self._names = names

    def inside(self, host):
        """The words that run a command on a host."""
        return ["ip", "netns", "exec", self._names[host]]


def join(names, interface, network, mtu, offloads):
    peer = f"{interface}p"
    run("ip", "-n", names[0], "link", "add", interface, "mtu", str(mtu), "type", "veth",
        "peer", "name", peer, "mtu", str(mtu))  # fmt: skip
    run("ip", "-n", names[0], "link", "set", peer, "netns", names[1], "name", interface)
    for host, name in enumerate(names):
        inside = ["ip", "netns", "exec", name]
        run("ip", "-n", name, "address", "add", f"{network.format(host + 1)}/24", "dev", interface)
        for feature in OFFLOADS:
            run(*inside, "ethtool", "-K", interface, feature, "on" if offloads else "off")
        run("ip", "-n", name, "link", "set", interface, "up")


@contextlib.contextmanager
def two_hosts(offloads):
    """A context with two hosts. `offloads` says whether the kernel's TCP may send and receive
    segments longer than the MTU."""
    names = [f"gradplane-bench-{os.getpid()}-{end}" for end in "ab"]
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        join(names, DATA, "10.78.0.{}", MTU, offloads)
        join(names, MEETING, MEETING_ADDRESS, 1500, True)
        yield Hosts(names)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True,
                           timeout=LIMIT_SECONDS)  # fmt: skip
