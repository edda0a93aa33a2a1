#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""What compare_lab.py runs in the guest: one link by the kernel's netem, and one by our lab_switch.

Both links have the same description. Kernel TCP crosses them, and what it makes of one has to be
near what it makes of the other. The guest is slow, so the rates are low.
"""

import json
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import emulated_lab  # noqa: E402

COMMAND_SECONDS = 60
FLOW_SECONDS = 8
DELAY_MS = 5
RATE_MBIT = 10
QUEUE_BYTES = 65536
MARK_BYTES = 16384
LOSS_PERCENT = 2
PINGS = 100
# Two emulations of one link differ by how they count frames and by when a slow machine runs them.
NEAR = 1.35
SERVER = "10.77.0.2"


class Failure(Exception):
    """What was expected and not seen."""


def run(*words):
    done = subprocess.run(
        [str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=COMMAND_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


class KernelLink:
    """Hosts n-a and n-b behind a bridge; both directions shaped by htb, and delayed by netem."""

    hosts = {"a": "n-a", "b": "n-b"}

    def __init__(self, tcp, mark=False, loss=0):
        self._make = lambda: self.make(tcp, mark, loss)

    def make(self, tcp, mark, loss):
        run("ip", "netns", "add", "n-s")
        run("ip", "-n", "n-s", "link", "add", "name", "sw", "type", "bridge")
        for index, (name, space) in enumerate(self.hosts.items(), 1):
            run("ip", "netns", "add", space)
            run("ip", "-n", "n-s", "link", "add", f"p-{name}", "type", "veth",
                "peer", "name", "dp0", "netns", space)  # fmt: skip
            run("ip", "-n", "n-s", "link", "set", f"p-{name}", "master", "sw", "up")
            run("ip", "-n", space, "link", "set", "dp0", "up")
            run("ip", "-n", space, "address", "add", f"10.77.0.{index}/24", "dev", "dp0")
            self.configure(space, tcp)
            for where, device in (("n-s", f"p-{name}"), (space, "dp0")):
                run("ip", "netns", "exec", where, "ethtool", "-K", device,
                    "tso", "off", "gso", "off", "gro", "off")  # fmt: skip
            delay = ["netem", "delay", f"{DELAY_MS}ms", "limit", "10000"]
            run("tc", "-n", space, "qdisc", "add", "dev", "dp0", "root", *delay)
            self.shape(f"p-{name}", mark, loss)
        run("ip", "-n", "n-s", "link", "set", "sw", "up")

    @staticmethod
    def configure(space, tcp):
        run("ip", "netns", "exec", space, "sysctl", "-qw", "net.ipv4.tcp_ecn=1",
            "net.ipv4.tcp_no_metrics_save=1", f"net.ipv4.tcp_congestion_control={tcp}")

    @staticmethod
    def shape(device, mark, loss):
        base = ["tc", "-n", "n-s", "qdisc", "add", "dev", device]
        # 24 bytes of preamble, checksum and gap for each frame, as the lab's links count.
        run(*base, "root", "handle", "1:", "htb", "default", "1")
        run("tc", "-n", "n-s", "class", "add", "dev", device, "parent", "1:", "classid", "1:1",
            "htb", "rate", f"{RATE_MBIT}mbit", "burst", "1600", "cburst", "1600",
            "overhead", "24")  # fmt: skip
        child = ["parent", "1:1", "handle", "2:"]
        if mark:  # a mark from one length of the queue on, as DCTCP wants it
            run(*base, *child, "red", "limit", QUEUE_BYTES, "min", MARK_BYTES,
                "max", MARK_BYTES + 1, "avpkt", "1000", "burst", "20", "probability", "1",
                "bandwidth", f"{RATE_MBIT}mbit", "ecn")  # fmt: skip
        elif loss:
            run(*base, *child, "netem", "loss", f"{loss}%", "limit", QUEUE_BYTES // 1538)
        else:
            run(*base, *child, "bfifo", "limit", QUEUE_BYTES)

    def __enter__(self):
        self._make()
        return self

    def __exit__(self, *_):
        for space in ("n-s", *self.hosts.values()):
            run("ip", "netns", "del", space)


class LabLink:
    """The same by lab_switch; the rate of the receiver's downlink, the delay of both links."""

    def __init__(self, tcp, mark=False, loss=0):
        up = {"delay": f"{DELAY_MS} ms"}
        down = {"rate": f"{RATE_MBIT} Mbit/s", "queue": f"{QUEUE_BYTES // 1024} KiB"}
        if mark:
            down["ecn_threshold"] = f"{MARK_BYTES // 1024} KiB"
        if loss:
            down["loss"] = f"{loss} %"
        network = {"defaults": {"up": up, "down": down}, "hosts": ["a", "b"]}
        self._lab = emulated_lab.EmulatedLab("vm", network, tcp=tcp)
        self.hosts = {name: host.namespace for name, host in self._lab.hosts.items()}
        self._tcp = tcp

    def __enter__(self):
        self._lab.up()
        for space in self.hosts.values():
            KernelLink.configure(space, self._tcp)
        return self

    def __exit__(self, *_):
        self._lab.down()


def pings(link, count=PINGS, interval="0.01"):
    """Round trips in ms, of those that came back."""
    said = run("ip", "netns", "exec", link.hosts["a"], "ping", "-c", count, "-i", interval, SERVER)
    return [float(text) for text in re.findall(r"time=([\d.]+) ms", said)]


def flow(link):
    """What a TCP flow carries in Mbit/s, and its mean round trip in ms."""
    server = subprocess.Popen(["ip", "netns", "exec", link.hosts["b"], "iperf3", "-s", "-1"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # fmt: skip
    try:
        for _ in range(20):
            if "5201" in run("ip", "netns", "exec", link.hosts["b"], "ss", "-ltn"):
                break
        said = json.loads(run("ip", "netns", "exec", link.hosts["a"], "iperf3", "-J", "-c", SERVER,
                              "-t", FLOW_SECONDS, "-O", "1"))  # fmt: skip
    finally:
        server.kill()
        server.wait()
    sent = said["end"]["streams"][0]["sender"]
    return said["end"]["sum_received"]["bits_per_second"] / 1e6, sent["mean_rtt"] / 1e3


def compare(what, kernel, ours, near=NEAR):
    ratio = ours / kernel
    print(f"  {what}: netem {kernel:.2f}, lab {ours:.2f}, ratio {ratio:.2f}", flush=True)
    if not 1 / near <= ratio <= near:
        raise Failure(f"{what}: {kernel:.2f} by netem and {ours:.2f} by the lab are not near")


def both(measure, tcp, **settings):
    results = []
    for kind in (KernelLink, LabLink):
        with kind(tcp, **settings) as link:
            results.append(measure(link))
    return results


def round_trip():
    kernel, ours = both(lambda link: statistics.median(pings(link)), "cubic")
    compare("round trip, ms", kernel, ours)


def losses():
    lost = both(lambda link: 1000 - len(pings(link, 1000, "0.005")), "cubic", loss=LOSS_PERCENT)
    compare("pings lost of 1000 (both directions lose)", *lost, near=1.8)


def cubic_with_loss():
    kernel, ours = both(flow, "cubic", loss=LOSS_PERCENT)
    compare("cubic under loss, Mbit/s", kernel[0], ours[0], near=1.6)


def dctcp():
    kernel, ours = both(flow, "dctcp", mark=True)
    compare("dctcp, Mbit/s", kernel[0], ours[0])
    compare("dctcp, mean round trip, ms", kernel[1], ours[1])


def main():
    # A namespace may use what the first one allows to everybody.
    run("sysctl", "-qw", "net.ipv4.tcp_allowed_congestion_control=reno cubic dctcp")
    failed = 0
    for test in (round_trip, losses, cubic_with_loss, dctcp):
        try:
            test()
            print(f"ok   {test.__name__}", flush=True)
        except (Failure, subprocess.TimeoutExpired, emulated_lab.LabError) as problem:
            failed += 1
            print(f"FAIL {test.__name__}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
