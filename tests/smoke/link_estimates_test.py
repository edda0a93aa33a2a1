#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Real daemons measure links of known rate and delay, and report the estimates."""

import os
import sys
import xml.dom.minidom

import cluster
from cluster import Cluster, expect, wait_until

import emulated_lab  # the path to scripts/lib is cluster's

NETWORK = {
    "defaults": {"up": {"queue": "1 MiB"}, "down": {"queue": "1 MiB"}},
    "hosts": ["agg", "w1"],
}
DELAY_MS = 10
# A busy machine may send less than the link's rate for a while, but never more.
LOW, HIGH = 0.85, 1.1
SECONDS = 60


def link_from(c, receiver, sender):
    return next((link for link in c.status(receiver)["links"] if link["node"] == sender), None)


def is_measured(c, mbits):
    link = link_from(c, "agg", "w1")
    if not link or link["rate_confidence_percent"] < 50:
        return None
    near = LOW * mbits * 1e6 <= link["rate_bits_per_second"] <= HIGH * mbits * 1e6
    return link if near else None


def a_receiver_measures_its_link_and_follows_it():
    with emulated_lab.EmulatedLab(f"le{os.getpid() % 100000}", NETWORK) as lab:
        for direction in ("up", "down"):
            lab.set("w1", direction, {"rate": "60 Mbit/s", "delay": f"{DELAY_MS} ms"})
        with Cluster(lab) as c:
            rank = c.rank("w1", 0, 1, "--rounds", 100000, "--elements", 500000)
            link = wait_until(lambda: is_measured(c, 60), "the rate of w1's link", SECONDS)
            print(link)
            expect(link["rtt_ns"] >= 2 * DELAY_MS * 1e6, f"no path is shorter than it is: {link}")
            expect(link["rtt_ns"] < 8 * DELAY_MS * 1e6, f"some packet met no queue: {link}")
            expect(link["loss_ppm"] < 20_000, f"little is lost: {link}")
            lab.set("w1", "up", {"rate": "20 Mbit/s"})
            link = wait_until(lambda: is_measured(c, 20), "the new rate of w1's link", SECONDS)
            print(link)
            shown_to_a_person(c)
            drawn_in_all_formats(c)
            rank.kill()


def shown_to_a_person(c):
    text = c.tell("agg", "status")
    expect("measured links to this node" in text, f"status names the links: {text}")
    metrics = c.tell("agg", "metrics")
    expect('gradplane_link_rate_bits_per_second{from="w1"}' in metrics, f"metrics: {metrics}")


def drawn_in_all_formats(c):
    text = c.tell("agg", "topology")
    expect("root agg: w1 > agg" in text, f"the tree in force: {text}")
    expect("measured links" in text, f"the link of the tree: {text}")
    dot = c.tell("agg", "topology", "--format", "dot")
    expect('"w1" -> "agg"' in dot, f"an edge for graphviz: {dot}")
    picture = xml.dom.minidom.parseString(c.tell("agg", "topology", "--format", "svg"))
    circles = picture.getElementsByTagName("circle")
    expect(len(circles) == 2, f"a place for each node: {len(circles)}")
    why = c.tell("agg", "topology", "--why")
    expect("links as planners count on them" in why, f"of what was measured: {why}")
    expect("in force" in why and "sharded" in why, f"beside other planners' plans: {why}")


if __name__ == "__main__":
    sys.exit(cluster.run([a_receiver_measures_its_link_and_follows_it]))
