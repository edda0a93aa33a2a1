#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The emulated network behaves as described, according to ping, iperf3 and the kernel's counters.
Needs root and iperf3."""

import contextlib
import dataclasses
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
sys.dont_write_bytecode = True
import emulated_lab  # noqa: E402
import netlab  # noqa: E402

SKIP = 77
COMMAND_SECONDS = 40
WINDOW_SECONDS = 0.8
WINDOWS = 12
LOOK_SECONDS = 0.002
OVERHEAD_BYTES = emulated_lab.FRAME_OVERHEAD_BYTES
NETWORK = {
    "defaults": {"up": {"queue": "128 KiB"}, "down": {"queue": "128 KiB"}},
    "hosts": ["a", "b", {"name": "c", "site": "far"}],
    "sites": ["near", "far"],
    "site_links": [{"name": "wan", "between": ["near", "far"], "delay": "3 ms"}],
    "schedule": [
        {"at": "200 ms", "link": "b", "direction": "down", "set": {"delay": "50 ms"}},
        {"at": "300 ms", "link": "c", "direction": "up", "set": {"rate": "10 Mbit/s"}},
    ],
}
# Settings that a test may have changed, with their defaults.
PLAIN = {
    "rate": "unlimited", "delay": "0 ms", "queue": "128 KiB", "loss": "0 %", "duplicate": "0 %",
}  # fmt: skip
# Long enough to keep a link busy while its sender waits for a processor.
LONG_QUEUE = "512 KiB"


class Failure(Exception):
    """A result that differs from the expected one."""


def expect(condition, what):
    if not condition:
        raise Failure(what)


def within(what, value, low, high):
    expect(low <= value <= high, f"{what}: {value:.4g} is not within {low:.4g} to {high:.4g}")
    print(f"{what}: {value:.4g} (allowed {low:.4g} to {high:.4g})", flush=True)


def likely(what, count, draws, share):
    """Checks a count of random events. It may be off by four standard deviations."""
    spread = 4 * math.sqrt(draws * share * (1 - share))
    within(what, count, draws * share - spread, draws * share + spread)


def command_on(lab, host, words):
    return ["ip", "netns", "exec", lab.hosts[host].namespace, *words]


def on(lab, host, *words):
    done = subprocess.run(
        command_on(lab, host, words), capture_output=True, text=True, check=False,
        timeout=COMMAND_SECONDS,
    )  # fmt: skip
    expect(done.returncode == 0, f"{' '.join(words)} on {host}: {done.stdout}{done.stderr}")
    return done.stdout


def round_trip_ms(lab, host, to, count=100):
    """The median round trip, in which a moment without a processor does not matter."""
    said = on(lab, host, "ping", "-c", str(count), "-i", "0.005", lab.hosts[to].kernel_address)
    times = [float(text) for text in re.findall(r"time=([\d.]+) ms", said)]
    expect(len(times) == count, f"{len(times)} of {count} pings came back")
    return statistics.median(times)


class Counters:
    """The kernel's counters for dp0 of a host, which can be read quickly.

    It reads them in /proc through a process in the host's namespace. Starting `ip` each time would
    take too long, and the time would depend on the machine.
    """

    def __init__(self, lab, host):
        self._inside = subprocess.Popen(
            command_on(lab, host, ["cat"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._inside.stdin.write(b"inside\n")
        self._inside.stdin.flush()
        expect(self._inside.stdout.readline() == b"inside\n", f"no process in {host}")

    def close(self):
        self._inside.stdin.close()
        self._inside.wait(COMMAND_SECONDS)
        self._inside.stdout.close()

    def read(self):
        """The numbers of sent frames, received frames and received bytes, and the time."""
        while True:
            before = time.monotonic()
            text = pathlib.Path(f"/proc/{self._inside.pid}/net/dev").read_text()
            after = time.monotonic()
            if after - before < LOOK_SECONDS:
                break
        numbers = [int(word) for word in re.search(r"dp0:(.*)", text)[1].split()]
        return Look(sent=numbers[9], frames=numbers[1], size=numbers[0], at=before)


@dataclasses.dataclass(frozen=True)
class Look:
    sent: int
    frames: int
    size: int
    at: float

    def mbits_until(self, last):
        size = last.size - self.size + (last.frames - self.frames) * OVERHEAD_BYTES
        return size * 8 / 1e6 / (last.at - self.at)


def keeps_rate(what, lab, host, mbits):
    """Checks the rate of a link that is kept busy. It is counted as on Ethernet, and never exceeds
    the link's rate.

    A lower rate is not an error of the link, because a busy machine may send too slowly. So one
    interval with the full rate is enough.
    """
    with contextlib.closing(Counters(lab, host)) as counters:
        begin, best = counters.read(), 0
        for _ in range(WINDOWS):
            first = counters.read()
            measure_for(WINDOW_SECONDS)
            last = counters.read()
            best = max(best, first.mbits_until(last))
            if best >= mbits * 0.98:
                break
    within(f"{what}, best moment, Mbit/s", best, mbits * 0.98, mbits * 1.02)
    within(f"{what}, overall, Mbit/s", begin.mbits_until(last), 0, mbits * 1.02)


def measure_for(seconds):
    """Lets a measurement last for so long. It does not wait for an event."""
    time.sleep(seconds)


@contextlib.contextmanager
def iperf(lab, client, server, *options):
    """Runs iperf3 during the `with` block, and ends it afterwards."""
    listening = subprocess.Popen(
        command_on(lab, server, ["iperf3", "-s", "-1", "--forceflush"]),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    sending = None
    try:
        while "listening" not in (line := listening.stdout.readline()):
            expect(line, "iperf3 does not listen")
        address = lab.hosts[server].kernel_address
        sending = subprocess.Popen(
            command_on(lab, client, ["iperf3", "-c", address, "--forceflush", "-i", "0.1"])
            + list(options),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        # After three intervals the queues are in a steady state.
        for _ in range(3):
            while "bits/sec" not in (line := sending.stdout.readline()):
                expect(line, "iperf3 sends nothing")
        yield
    finally:
        for process in filter(None, (sending, listening)):
            process.terminate()
            process.stdout.read()
            process.wait(COMMAND_SECONDS)


def delays_are_added(lab):
    plain = round_trip_ms(lab, "a", "b")
    lab.set("a", "up", {"delay": "3 ms"})
    lab.set("a", "down", {"delay": "1 ms"})
    lab.set("b", "both", {"delay": "4 ms"})
    added = round_trip_ms(lab, "a", "b") - plain
    within("round trip over four delays, added ms", added, 11.8, 12.2)
    far = round_trip_ms(lab, "a", "c") - plain
    within("round trip to another site, added ms", far, 9.8, 10.2)
    expect(lab.stats()["links"]["wan"]["backward"]["frames"] >= 100, "nothing crossed the wan")


def rates_are_kept(lab):
    lab.set("b", "down", {"rate": "40 Mbit/s", "queue": LONG_QUEUE})
    lab.reset()
    with iperf(lab, "a", "b", "-u", "-b", "80M", "-l", "1400", "-t", "60"):
        keeps_rate("rate of a downlink, UDP", lab, "b", 40)
    down = lab.stats()["links"]["b"]["down"]
    expect(down["queue_drops"] > 0, "the queue of a link that is too slow was never full")
    within("its deepest queue, KiB", down["deepest_queue_bytes"] / 1024, 510.4, 512)
    lab.set("b", "both", PLAIN)
    lab.set("a", "up", {"rate": "50 Mbit/s", "queue": LONG_QUEUE})
    lab.set("b", "both", {"delay": "2 ms"})
    lab.reset()
    with iperf(lab, "a", "b", "-t", "60"):
        keeps_rate("rate of an uplink, TCP", lab, "b", 50)
    # dp0's token bucket and the switch's uplink count alike, so no queue builds up at the uplink.
    up = lab.stats()["links"]["a"]["up"]
    within("queue behind the NIC's, KiB", up["deepest_queue_bytes"] / 1024, 1, 32)


def uplink_binds_who_bypasses_the_kernel(lab):
    """A DPDK port sends past dp0's token bucket."""
    lab.set("a", "up", {"rate": "50 Mbit/s", "queue": LONG_QUEUE})
    probe = str(ROOT / "tests/smoke/netlab_probe.py")
    send = subprocess.Popen(
        command_on(lab, "a", [probe, "send", "dp0", lab.hosts["b"].mac(2), "100000000", "1000"]),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        expect(send.stdout.readline() == "ready\n", "the sender did not start")
        send.stdin.write(" ")
        send.stdin.close()
        keeps_rate("rate of an uplink past the NIC's queue", lab, "b", 50)
    finally:
        send.kill()
        send.wait(COMMAND_SECONDS)
        send.stdout.close()
    expect(lab.stats()["links"]["a"]["up"]["queue_drops"] > 0, "the uplink's queue was never full")


def frames_are_lost_and_doubled(lab):
    lab.set("b", "down", {"loss": "5 %"})
    with contextlib.closing(Counters(lab, "a")) as a, contextlib.closing(Counters(lab, "b")) as b:
        sent, received = a.read().sent, b.read().frames
        with iperf(lab, "a", "b", "-u", "-b", "20M", "-l", "300", "-t", "60"):
            deadline = time.monotonic() + 20
            while a.read().sent - sent < 8000:
                expect(time.monotonic() < deadline, "iperf3 has not sent 8000 frames")
                measure_for(0.1)
        lab.set("b", "down", PLAIN)
        frames = a.read().sent - sent
        lost = frames - (b.read().frames - received)
    likely(f"lost of {frames} frames at 5 %", lost, frames, 0.05)
    lab.set("b", "down", {"duplicate": "10 %"})
    address = lab.hosts["b"].kernel_address
    said = on(lab, "a", "ping", "-q", "-c", "2000", "-i", "0.001", address)
    found = re.search(r"\+(\d+) duplicates", said)
    likely("doubled of 2000 pings at 10 %", int(found[1]) if found else 0, 2000, 0.1)


def late_switch_adds_no_delay(lab):
    """A frame that arrives while the switch is stopped is delayed from the time of its arrival."""
    lab.set("a", "up", {"delay": "600 ms"})
    pid = int(netlab.run_command(["ip", "netns", "pids", lab.switch]))
    with contextlib.closing(Counters(lab, "a")) as counters:
        for _ in range(5):
            sent = counters.read().sent
            os.kill(pid, signal.SIGSTOP)
            try:
                ping = subprocess.Popen(
                    command_on(lab, "a", ["ping", "-c", "1", lab.hosts["b"].kernel_address]),
                    stdout=subprocess.PIPE, text=True,
                )  # fmt: skip
                while counters.read().sent == sent:
                    expect(ping.poll() is None, "ping has sent nothing")
                measure_for(0.3)
            finally:
                os.kill(pid, signal.SIGCONT)
            took = float(re.search(r"time=([\d.]+) ms", ping.communicate()[0])[1])
            # The machine may have continued the switch late, but not in every attempt.
            if took < 700:
                break
    within("round trip over 600 ms, 300 ms of which the switch stood still, ms", took, 600, 700)


def schedule_is_kept(lab):
    """A scheduled change comes after the start of the schedule, and not before."""
    ping = subprocess.Popen(
        command_on(lab, "a", ["ping", "-i", "0.02", lab.hosts["b"].kernel_address]),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        times = (float(found[1]) for line in ping.stdout
                 if (found := re.search(r"time=([\d.]+) ms", line)))  # fmt: skip
        before = statistics.median(next(times) for _ in range(20))
        expect(before < 50, f"{before} ms before the schedule has started")
        lab.start_schedule()
        deadline = time.monotonic() + 20
        while next(times) < before + 45:
            expect(time.monotonic() < deadline, "the scheduled delay was not seen")
        show = ["tc", "-n", lab.hosts["c"].namespace, "qdisc", "show", "dev", "dp0", "root"]
        while "rate 10Mbit" not in netlab.run_command(show):
            expect(time.monotonic() < deadline, "the host's own queue has kept its old rate")
        print("scheduled changes: seen, in the switch and in a host's own queue")
    finally:
        ping.terminate()
        ping.stdout.close()
        ping.wait(COMMAND_SECONDS)


def tcp_is_chosen(lab):
    for wanted in ("reno", "cubic"):
        lab.set_tcp(wanted)
        for host in lab.hosts:
            got = on(lab, host, "sysctl", "-n", "net.ipv4.tcp_congestion_control").strip()
            expect(got == wanted, f"{host} has TCP {got} instead of {wanted}")


def mistakes_are_told(lab):
    for link, direction, settings, reason in (
        ("x", "up", {}, "no host or site link"),
        ("a", "forward", {}, "up, down, both"),
        ("a", "up", {"rate": "5 furlong"}, "Mbit/s"),
    ):
        try:
            lab.set(link, direction, settings)
        except netlab.LabError as error:
            expect(reason in str(error), f"'{error}' does not say '{reason}'")
        else:
            raise Failure(f"{link} {direction} {settings} was accepted")
    bad = emulated_lab.EmulatedLab(f"{lab.run}x", {"hosts": ["a"], "sead": 1})
    try:
        bad.up()
    except netlab.LabError as error:
        expect("sead" in str(error), f"'{error}' does not name the bad key")
    else:
        bad.down()
        raise Failure("a bad description was accepted")


def wait_until_quiet(lab):
    """Waits until no frame of one test can arrive in the next."""
    deadline = time.monotonic() + 20
    while lab.stats()["switch"]["frames_in_flight"]:
        expect(time.monotonic() < deadline, "frames stay under way")
        time.sleep(0.02)


def run(name):
    with emulated_lab.EmulatedLab(name, NETWORK) as lab:
        for test in (
            delays_are_added, rates_are_kept, uplink_binds_who_bypasses_the_kernel,
            frames_are_lost_and_doubled, late_switch_adds_no_delay, schedule_is_kept,
            tcp_is_chosen, mistakes_are_told,
        ):  # fmt: skip
            for host in lab.hosts:
                lab.set(host, "both", PLAIN)
            wait_until_quiet(lab)
            begun = time.monotonic()
            test(lab)
            print(f"-- {test.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
        used = lab.stats()["switch"]
        for counter in ("ring_drops", "send_failures", "pool_exhausted"):
            expect(used[counter] == 0, f"the switch itself has lost frames: {used}")
        print(f"switch: {used}")
    left = [path.name for path in netlab.STATE_DIR.glob(f"{name}*")]
    expect(not left, f"left behind: {left}")


def main():
    if os.geteuid() != 0:
        print("SKIP: network namespaces need root")
        return SKIP
    if not shutil.which("iperf3"):
        print("SKIP: iperf3 is not installed; run scripts/setup")
        return SKIP
    run(f"lt{os.getpid()}")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except (Failure, netlab.LabError) as failure:
        sys.exit(f"FAIL: {failure}")
