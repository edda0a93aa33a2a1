#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Real daemons over links between sites. Plans follow the links, and blocks avoid slow ones."""

import json
import os
import signal
import sys

import cluster
from cluster import Cluster, all_are_right, expect, rounds_of, wait_until

import emulated_lab  # the path to scripts/lib is cluster's

MBIT = 40
SLOW_MBIT = 4
RTT_MS = 10
SECONDS = 120
# A job does not gain from a redraw that takes more rounds.
MOST_ROUNDS = 300
# These rounds have too few blocks for soundings, so the controller has to fill the link.
FILLING = "congestion: {controller: cubic}\n"


def site_link(a, b):
    return f"{a}-{b}"


def lab(name, hosts, links):
    """A lab with a site for each host. `links`: the rates between pairs of sites, in Mbit/s."""
    site_links = [
        {"name": site_link(a, b), "between": [a, b], "rate": f"{mbit} Mbit/s",
         "delay": f"{RTT_MS / 2} ms", "queue": "128 KiB"}
        for (a, b), mbit in links.items()
    ]  # fmt: skip
    network = {
        "sites": hosts,
        "hosts": [{"name": host, "site": host} for host in hosts],
        "site_links": site_links,
    }
    return emulated_lab.EmulatedLab(f"{name}{os.getpid() % 100000}", network)


def network_section(links):
    """The same network as a configuration section, for planners."""
    lines = "".join(
        f"    - {{from: {a}, to: {b}, rate: {mbit} Mbit/s, rtt: {RTT_MS} ms}}\n"
        for (a, b), mbit in links.items()
    )
    return f"network:\n  bytes: 8 MiB\n  links:\n{lines}rounds: {{bytes: 128 KiB}}\n"


def mesh(hosts, mbit):
    return {(a, b): mbit for n, a in enumerate(hosts) for b in hosts[n + 1 :]}


def job_of(c, host):
    jobs = c.status(host)["jobs"]
    return jobs[0] if jobs else None


def share_over(c, asked, a, b):
    """The share of the blocks whose tree has an edge between two hosts, in the current plan."""
    trees = json.loads(c.tell(asked, "topology", "--format", "json"))["jobs"][0]["trees"]
    over = sum(
        tree["weight"]
        for tree in trees
        if any({edge["from"], edge["to"]} == {a, b} for edge in tree["edges"])
    )
    return over / sum(tree["weight"] for tree in trees)


def run_ranks(c, hosts, rounds):
    ranks = [
        c.rank(host, rank, len(hosts), "--rounds", rounds, "--elements", 30000)
        for rank, host in enumerate(hosts)
    ]
    wait_until(lambda: rounds_of(c, hosts[0]) > 20, "rounds to go by")
    return ranks


def a_plan_is_redrawn_when_a_link_becomes_slow():
    hosts = ["w1", "w2", "w3", "w4"]
    links = mesh(hosts, MBIT)
    with lab("rd", hosts, links) as made:
        plan = "packed\n  redraw: {every: 2 s}"
        with Cluster(made, plan=plan, extra=network_section(links) + FILLING) as c:
            ranks = run_ranks(c, hosts, 1000)
            before = job_of(c, "w1")
            share = share_over(c, "w1", "w1", "w2")
            expect(share > 0, "some tree uses the link")
            made.set(site_link("w1", "w2"), "both", {"rate": f"{SLOW_MBIT} Mbit/s"})
            less = wait_until(
                lambda: (now := share_over(c, "w1", "w1", "w2")) < share / 2 and [now],
                "a plan that gives less to the slow link", SECONDS,
            )  # fmt: skip
            after = job_of(c, "w1")
            took = after["rounds_completed"] - before["rounds_completed"]
            print(f"share {share:.2f}, then {less[0]:.2f}, after {took} rounds")
            expect(after["epoch"] > before["epoch"], f"another epoch: {after}")
            expect(took < MOST_ROUNDS, f"{took} rounds until the plan was another one")
            expect("the network has changed, preparing epoch" in c.log("w1"), c.log("w1"))
            wait_until(
                lambda: len({job_of(c, host)["epoch"] for host in hosts}) == 1,
                "all nodes to have one plan",
            )
            all_are_right(ranks)


def blocks_go_round_a_slow_link():
    hosts = ["w1", "w2", "w3"]
    links = mesh(hosts, MBIT) | {("w1", "w2"): SLOW_MBIT}
    with lab("ar", hosts, links) as made:
        plan = "star\n  root: w2\n  auxiliary: true\n  redraw: {enabled: false}"
        extra = network_section(links)
        with Cluster(made, plan=plan, extra=extra) as c:
            ranks = run_ranks(c, hosts, 200)
            sender = wait_until(
                lambda: (job := job_of(c, "w1")) and job["blocks_routed"] > 100 and job,
                "w1 to send blocks over its route", SECONDS,
            )  # fmt: skip
            wait_until(
                lambda: (job := job_of(c, "w3")) and job["blocks_relayed"] > 100,
                "w3 to send them on", SECONDS,
            )  # fmt: skip
            print(f"{sender['blocks_routed']} of {sender['blocks_sent']} blocks took the route")
            expect(sender["blocks_routed"] < sender["blocks_sent"], "not all take it")
            for host in hosts:
                drops = job_of(c, host)["drops"]
                wrong = {"bad_route", "unknown_route"} & drops.keys()
                expect(not wrong, f"{host} refuses no route of the plan: {drops}")
            expect("sent on for others" in c.tell("w3", "status"), "status tells a person")
            metrics = c.tell("w3", "metrics")
            expect("gradplane_job_blocks_relayed_total{" in metrics, f"metrics: {metrics}")
            all_are_right(ranks)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(cluster.run([a_plan_is_redrawn_when_a_link_becomes_slow, blocks_go_round_a_slow_link]))
