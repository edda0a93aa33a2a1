#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Real daemons at sites, one of which is cut off for a while. The others go on without a site that
has only relays and ranks. They wait for a site that has a root."""

import json
import os
import re
import signal
import sys

import cluster
from cluster import Cluster, all_are_right, expect, go_on, rounds_of, wait_until

import emulated_lab  # the path to scripts/lib is cluster's

# agg and r1 have no ranks. Both trees have relays at two levels. w3 and w4 are the far site.
HOSTS = ["agg", "r1", "w1", "w2", "w3", "w4"]
WORKERS = ["w1", "w2", "w3", "w4"]
FAR = ["w3", "w4"]
ROOTS = ["agg", "w1"]
TREES = """manual
  trees:
    - root: agg
      parents: {r1: agg, w1: agg, w2: r1, w3: r1, w4: w3}
    - root: w1
      parents: {r1: w1, w2: w1, w3: r1, w4: w3}"""
BOUNDS = """gather:
  preset: ltp
  strict_rounds: 1
  compensation: rescale
"""
# Rounds close without a host that is silent for so long.
ABSENCE = BOUNDS + "  absent_after: 500 ms\n"
# The longest wait of this test. Nodes suspect each other only after more time than a cut lasts.
SECONDS = 60
LIFE = f"liveness: {{suspect_after: {4 * SECONDS} s}}\n"
RANKS_WAIT_MS = 4 * SECONDS * 1000
# docs/protocol.md, I6. It is one less if the cut loses the acks of the last common round.
MOST_LEAD_ROUNDS = 8
LEAST_LEAD_ROUNDS = 7
ROUNDS = 400
# Nothing may move until so many frames to and from a root are lost.
LOST_FRAMES = 300
CUT = {"loss": "100 %"}
WHOLE = {"loss": "0 %"}


def lab(name):
    site_link = {"name": "cut", "between": ["near", "far"], "rate": "200 Mbit/s", "delay": "2 ms"}
    network = {
        "defaults": {"up": {"rate": "200 Mbit/s"}, "down": {"rate": "200 Mbit/s"}},
        "sites": ["near", "far"],
        "hosts": [{"name": h, "site": "far" if h in FAR else "near"} for h in HOSTS],
        "site_links": [site_link],
    }
    return emulated_lab.EmulatedLab(f"{name}{os.getpid() % 100000}", network)


def job_of(c, host):
    return c.status(host)["jobs"][0]


def reports_of(c, root, last=128):
    return json.loads(c.tell(root, "rounds", "--json", "--last", str(last)))[0]["rounds"]


def bounds_of(c, host):
    return json.loads(c.tell(host, "bounds", "--json"))


def run_ranks(c):
    """Starts ranks whose rounds are gathered under bounds at every node with children."""
    options = ("--rounds", ROUNDS, "--tensors", 8, "--elements", 40000,
               "--round-timeout-ms", RANKS_WAIT_MS)  # fmt: skip
    ranks = [c.rank(h, r, len(WORKERS), *options) for r, h in enumerate(WORKERS)]

    def are_bounded():
        pages = [bounds_of(c, root) for root in ROOTS]
        return all(page and sum(page[0]["closes"].values()) > 10 for page in pages)

    wait_until(are_bounded, "rounds under bounds at both roots")
    expect(rounds_of(c, "w1") < ROUNDS / 2, "most rounds are to come")
    return ranks


def frames_lost(made, link):
    directions = made.stats()["links"][link].values()
    return sum(direction["random_drops"] for direction in directions)


def have_the_same_bits(ranks):
    texts = all_are_right(ranks)
    bits = {re.search("bits ([0-9a-f]{16})", text).group(1) for text in texts}
    expect(len(bits) == 1, f"all replicas have the same results: {texts}")


def plan_of(c):
    """The epoch, which must be the same on every node. No node may have ended the job."""
    jobs = {host: job_of(c, host) for host in HOSTS}
    for host, job in jobs.items():
        expect(job["state"] == "ready", f"{host}: {job}")
    return {job["epoch"] for job in jobs.values()}


def a_site_without_roots_is_gone_on_without_and_contributes_again():
    with lab("cs") as made, Cluster(made, TREES, extra=ABSENCE + LIFE) as c:
        ranks = run_ranks(c)
        plan = plan_of(c)
        made.set("cut", "both", CUT)
        lead = wait_until(
            lambda: (near := rounds_of(c, "w1")) - rounds_of(c, "w4") >= LEAST_LEAD_ROUNDS
            and [near, rounds_of(c, "w4")],
            "the others to go on without the site", SECONDS,
        )  # fmt: skip
        expect(lead[0] - lead[1] <= MOST_LEAD_ROUNDS, f"they go on for so long: {lead}")
        before = {root: job_of(c, root)["rounds_closed_absent"] for root in ROOTS}
        for root in ROOTS:
            # The first of them may be complete and have lost only its results.
            expect(before[root] >= LEAST_LEAD_ROUNDS - 1, f"{root} counts them: {before}")
            absent = [r for r in reports_of(c, root) if r["reason"] == "absent"]
            expect(absent, f"{root} reports them")
            for r in absent[-3:]:
                missing = {s["node"] for s in r["sources"] if s["missing_blocks"]}
                expect(missing == set(FAR), f"they lack the site and nobody else: {r}")
        made.set("cut", "both", WHOLE)
        wait_until(
            lambda: all(r["missing_blocks"] == 0 for root in ROOTS for r in reports_of(c, root, 5)),
            "rounds to which the site contributes again", SECONDS,
        )  # fmt: skip
        go_on(c, 20)
        expect(plan_of(c) == plan, "the job went on under its plan")
        have_the_same_bits(ranks)


def a_root_that_is_cut_off_is_waited_for():
    with lab("cr") as made, Cluster(made, TREES, extra=ABSENCE + LIFE) as c:
        ranks = run_ranks(c)
        plan = plan_of(c)
        made.set("w1", "both", CUT)

        def stand_still():
            rounds = [rounds_of(c, host) for host in HOSTS]
            lost = frames_lost(made, "w1")
            wait_until(
                lambda: frames_lost(made, "w1") > lost + LOST_FRAMES,
                "more frames to be lost at the root", SECONDS,
            )  # fmt: skip
            return rounds == [rounds_of(c, host) for host in HOSTS] and rounds

        rounds = wait_until(stand_still, "all rounds to stand still", SECONDS)
        expect(max(rounds) < ROUNDS, f"no rank is at its end: {rounds}")
        made.set("w1", "both", WHOLE)
        go_on(c, 20)
        expect(plan_of(c) == plan, "the job went on under its plan")
        have_the_same_bits(ranks)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(
        cluster.run(
            [
                a_site_without_roots_is_gone_on_without_and_contributes_again,
                a_root_that_is_cut_off_is_waited_for,
            ]
        )
    )
