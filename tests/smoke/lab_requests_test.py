#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""An emulated network that changes while it runs. The schedule and requests have the same effect,
and `scripts/netlab stats` shows the switch's counters. Needs root."""

import json
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from cluster import ROOT, Failure, expect, netlab, skip, wait_until  # noqa: E402

import emulated_lab  # noqa: E402, from scripts/lib, where cluster looks

COMMAND_SECONDS = 40
# All settings of a link except bursts of losses. Each differs from its default.
CHANGE = {
    "rate": "10 Mbit/s", "delay": "2 ms", "jitter": "100 us", "queue": "96 KiB",
    "ecn_threshold": "48 KiB", "loss": "1 %", "duplicate": "1 %",
    "reorder": {"share": "1 %", "delay": "1 ms"},
}  # fmt: skip
NETWORK = {
    "hosts": ["set", "timed", "plain"],
    "schedule": [
        {"at": "100 ms", "link": "timed", "direction": "both", "set": CHANGE},
        {"at": "200 ms", "link": "plain", "direction": "up", "set": {"rate": "20 Mbit/s"}},
    ],
}


def own_queue(lab, host):
    """How the kernel shapes dp0, without the handle; empty if it does not."""
    show = ["tc", "-n", lab.hosts[host].namespace, "qdisc", "show", "dev", "dp0", "root"]
    found = re.search(r"qdisc tbf \S+ root (.*)", netlab.run_command(show))
    return found[1] if found else ""


def schedule_and_set_agree(lab):
    """The same change is made on one host by the description's schedule, and on another by set().
    Afterwards their links are the same, and so are the hosts' own queues."""
    before = lab.stats()["links"]["set"]["up"]["settings"]
    expect(not own_queue(lab, "timed"), "a link without a rate has a queue before it")
    lab.ask({"do": "start_schedule"})  # sends the request itself, as an operator would
    wait_until(lambda: "rate 20Mbit" in own_queue(lab, "plain"), "the schedule's last change")
    lab.set("set", "both", CHANGE)
    links = lab.stats()["links"]
    for direction in ("up", "down"):
        wanted, got = (links[host][direction]["settings"] for host in ("set", "timed"))
        expect(wanted == got, f"{direction}: set gives {wanted}, the schedule {got}")
    same = [key for key, value in links["set"]["up"]["settings"].items() if value == before[key]]
    expect(not same, f"a change that should be of everything is not of {same}")
    queue, timed = own_queue(lab, "set"), own_queue(lab, "timed")
    expect("rate 10Mbit" in queue, f"set has not shaped the host's own queue: '{queue}'")
    expect(queue == timed, f"own queues: set gives '{queue}', the schedule '{timed}'")
    lab.set("timed", "up", {"rate": "unlimited"})
    expect(not own_queue(lab, "timed"), "a queue is left before a link that has no rate any more")


def ask_netlab(run):
    return subprocess.run(
        [str(ROOT / "scripts/netlab"), "stats", run],
        capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS,
    )  # fmt: skip


def netlab_shows_what_the_switch_counts(lab):
    """scripts/netlab runs in another process, which knows only the name of the lab."""
    lab.reset()
    address = lab.hosts["plain"].kernel_address
    ping = ["ping", "-q", "-c", "20", "-i", "0.01", address]
    netlab.in_namespace(lab.hosts["timed"].namespace, ping)
    wait_until(lambda: not lab.stats()["switch"]["frames_in_flight"], "frames to arrive")
    done = ask_netlab(lab.run)
    expect(done.returncode == 0, f"netlab stats: {done.stderr}")
    shown, links = json.loads(done.stdout), lab.stats()["links"]
    expect(shown["links"] == links, f"netlab shows {shown['links']}, and the lab says {links}")
    up = shown["links"]["timed"]["up"]
    expect(up["frames"] >= 20 and "queue_drops" in up, f"a queue's counters: {up}")
    expect(shown["switch"]["delivered"] > 0, f"the switch's own counters: {shown['switch']}")


def netlab_says_what_is_not_there(lab):
    nobody = ask_netlab(f"{lab.run}z")
    expect(nobody.returncode != 0, "netlab shows a lab that is not there")
    said = nobody.stderr
    expect(said.startswith(f"netlab: there is no lab {lab.run}z"), f"it says: {said}")
    pid = int(netlab.run_command(["ip", "netns", "pids", lab.switch]))
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not lab.switch_socket.exists(), "the switch to end")
    gone = ask_netlab(lab.run)
    said = gone.stderr
    expect(said.startswith(f"netlab: the switch of {lab.run} is not there"), f"it says: {said}")


def main():
    if os.geteuid() != 0:
        skip("network namespaces need root")
    with emulated_lab.EmulatedLab(f"lr{os.getpid() % 100000}", NETWORK) as lab:
        for test in (
            schedule_and_set_agree, netlab_shows_what_the_switch_counts,
            netlab_says_what_is_not_there,
        ):  # fmt: skip
            test(lab)
            print(f"ok   {test.__name__}", flush=True)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except (Failure, netlab.LabError) as failure:
        sys.exit(f"FAIL: {failure}")
