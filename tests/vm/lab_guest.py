#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Runs in the guest of compare_lab.py: one link with the kernel's netem, and one with lab_switch.

Both links have the same settings. Kernel TCP must have similar results over both of them. Then
gradplane's DCTCP shares each link with the kernel's. The guest is slow, so the rates are low.

usage: lab_guest.py [TEST...]
"""

import contextlib
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import emulated_lab  # noqa: E402
import lab_gradplane  # noqa: E402
import processes  # noqa: E402

COMMAND_SECONDS = 60
FLOW_SECONDS = 8
DELAY_MS = 5
RATE_MBIT = 10
QUEUE_BYTES = 65536
MARK_BYTES = 16384
LOSS_PERCENT = 2
PINGS = 100
# Two emulations differ in how they count frames, and in when a slow machine runs them.
NEAR = 1.35
SERVER = "10.77.0.2"
# How long flows on one link may take to reach their shares, and how long these are measured. DCTCP
# gives equal shares on average, but here the guest's processors also influence when flows send.
SETTLE_SECONDS = 10
SHARED_SECONDS = 20
LEAST_SHARE = 0.2
LEAST_ALONE = 0.5  # of the rate of a kernel flow that is alone


class Failure(Exception):
    """A result that differs from the expected one."""


def run(*words):
    done = subprocess.run(
        [str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=COMMAND_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


class KernelLink:
    """Hosts n-a and n-b, and a router n-s. Both directions are shaped by htb and delayed by netem.

    A bridge does not work. When a packet socket sends from a ring, the kernel leaves all but 14
    bytes of the frame in the ring's pages. RED drops such a frame instead of marking it, because
    the IP header is not in linear memory. A router has copied the header there to read it.
    """

    hosts = {"a": "n-a", "b": "n-b"}

    def __init__(self, tcp, mark=False, loss=0):
        self._make = lambda: self.make(tcp, mark, loss)

    def make(self, tcp, mark, loss):
        run("ip", "netns", "add", "n-s")
        run("ip", "netns", "exec", "n-s", "sysctl", "-qw", "net.ipv4.ip_forward=1",
            "net.ipv4.conf.default.proxy_arp=1")  # fmt: skip
        for index, (name, space) in enumerate(self.hosts.items(), 1):
            run("ip", "netns", "add", space)
            run("ip", "-n", "n-s", "link", "add", f"p-{name}", "type", "veth",
                "peer", "name", "dp0", "netns", space)  # fmt: skip
            run("ip", "-n", "n-s", "link", "set", f"p-{name}", "up")
            run("ip", "netns", "exec", "n-s", "sysctl", "-qw",
                f"net.ipv4.neigh.p-{name}.proxy_delay=0")  # fmt: skip
            run("ip", "-n", "n-s", "address", "add", "10.77.0.254/32", "dev", f"p-{name}")
            for address in (f"10.77.0.{index}", lab_gradplane.ADDRESSES[name]):
                run("ip", "-n", "n-s", "route", "add", f"{address}/32", "dev", f"p-{name}")
            run("ip", "-n", space, "link", "set", "dp0", "up")
            run("ip", "-n", space, "address", "add", f"10.77.0.{index}/24", "dev", "dp0")
            self.configure(space, tcp)
            for where, device in (("n-s", f"p-{name}"), (space, "dp0")):
                run("ip", "netns", "exec", where, "ethtool", "-K", device,
                    "tso", "off", "gso", "off", "gro", "off")  # fmt: skip
            delay = ["netem", "delay", f"{DELAY_MS}ms", "limit", "10000"]
            run("tc", "-n", space, "qdisc", "add", "dev", "dp0", "root", *delay)
            self.shape(f"p-{name}", mark, loss)

    @staticmethod
    def configure(space, tcp):
        run("ip", "netns", "exec", space, "sysctl", "-qw", "net.ipv4.tcp_ecn=1",
            "net.ipv4.tcp_no_metrics_save=1", f"net.ipv4.tcp_congestion_control={tcp}")

    @staticmethod
    def shape(device, mark, loss):
        base = ["tc", "-n", "n-s", "qdisc", "add", "dev", device]
        # As in the lab's links, each frame counts with 24 bytes of preamble, checksum and gap.
        run(*base, "root", "handle", "1:", "htb", "default", "1")
        run("tc", "-n", "n-s", "class", "add", "dev", device, "parent", "1:", "classid", "1:1",
            "htb", "rate", f"{RATE_MBIT}mbit", "burst", "1600", "cburst", "1600",
            "overhead", "24")  # fmt: skip
        child = ["parent", "1:1", "handle", "2:"]
        if mark:  # marks everything above one threshold, as DCTCP expects
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
    """The same link with lab_switch. The rate is the receiver's downlink's; both have the delay."""

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
    """The round trips of the answers that came, in ms."""
    said = run("ip", "netns", "exec", link.hosts["a"], "ping", "-c", count, "-i", interval, SERVER)
    return [float(text) for text in re.findall(r"time=([\d.]+) ms", said)]


@contextlib.contextmanager
def serving(link):
    """Lets host b accept one TCP flow."""
    server = subprocess.Popen(["ip", "netns", "exec", link.hosts["b"], "iperf3", "-s", "-1"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # fmt: skip
    try:
        for _ in range(20):
            if "5201" in run("ip", "netns", "exec", link.hosts["b"], "ss", "-ltn"):
                break
        yield
    finally:
        server.kill()
        server.wait()


def flow(link):
    """The rate of a TCP flow in Mbit/s, and its mean round trip in ms."""
    with serving(link):
        said = json.loads(run("ip", "netns", "exec", link.hosts["a"], "iperf3", "-J", "-c", SERVER,
                              "-t", FLOW_SECONDS, "-O", "1"))  # fmt: skip
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


@contextlib.contextmanager
def tcp_flow(link):
    """Runs a TCP flow from a to b during the `with` block, which begins when it has settled."""
    with serving(link):
        client = subprocess.Popen(["ip", "netns", "exec", link.hosts["a"], "iperf3", "-c", SERVER,
                                   "-t", str(10 * SHARED_SECONDS)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # fmt: skip
        try:
            time.sleep(SETTLE_SECONDS)
            if client.poll() is not None:
                raise Failure(f"iperf3 ended with exit code {client.returncode}")
            yield
        finally:
            client.kill()
            client.wait()


def measure_shares(link):
    """Rates in Mbit/s on the link: the kernel alone, gradplane alone, both together, and gradplane
    in both."""
    with tcp_flow(link):
        kernel, _ = lab_gradplane.rates(link, FLOW_SECONDS)
    with lab_gradplane.Flow(link, "dctcp") as ours:
        time.sleep(SETTLE_SECONDS)
        _, alone = lab_gradplane.rates(link, FLOW_SECONDS, ours)
        with tcp_flow(link):
            together, shared = lab_gradplane.rates(link, SHARED_SECONDS, ours)
            ours.save()
    return kernel, alone, together, shared


def our_dctcp():
    for kind in (KernelLink, LabLink):
        with kind("dctcp", mark=True) as link:
            kernel, alone, together, shared = measure_shares(link)
        share = shared / together
        print(f"  {kind.__name__}, Mbit/s: the kernel alone {kernel:.2f}, gradplane alone "
              f"{alone:.2f}; together {together:.2f}, of which gradplane has {shared:.2f}, "
              f"a share of {share:.2f}", flush=True)  # fmt: skip
        if alone < LEAST_ALONE * kernel:
            raise Failure(f"gradplane alone has {alone:.2f} Mbit/s, and the kernel {kernel:.2f}")
        if not LEAST_SHARE <= share <= 1 - LEAST_SHARE:
            raise Failure(f"gradplane has a share of {share:.2f}")


TESTS = {test.__name__: test
         for test in (round_trip, losses, cubic_with_loss, dctcp, our_dctcp)}  # fmt: skip


def main():
    # Namespaces may use the congestion controls that the first namespace allows.
    run("sysctl", "-qw", "net.ipv4.tcp_allowed_congestion_control=reno cubic dctcp")
    failed = 0
    for name in sys.argv[1:] or TESTS:
        try:
            TESTS[name]()
            print(f"ok   {name}", flush=True)
        except (Failure, subprocess.SubprocessError, emulated_lab.LabError,
                processes.ProcessError) as problem:  # fmt: skip
            failed += 1
            print(f"FAIL {name}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
