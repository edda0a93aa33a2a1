#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""PyTorch over trees with relays, with loss bounds, and over plans that change while it trains."""

import os
import signal
import sys

import cluster
import torch_training
from cluster import Cluster, expect, netlab, rounds_of, wait_until
from torch_training import Training

RUN = f"gv{os.getpid() % 100000}"
WORKERS = ["w1", "w2", "w3", "w4"]
RELAYS = ["r1", "r2"]
TREE = """manual
  trees:
    - root: agg
      parents: {r1: agg, r2: agg, w1: r1, w2: r1, w3: r2, w4: r2}"""
BOUNDS = "gather:\n  preset: ltp\n  compensation: carry\n  strict_rounds: 5\n"
RATE = "200 Mbit/s"


def lab(hosts):
    return netlab.Lab(RUN, hosts, netlab.Link(rate_bits=200_000_000, loss=0.02))


def a_tree_with_two_relays_trains_with_bounds():
    hosts = ["agg", *RELAYS, *WORKERS]
    with lab(hosts) as made, Cluster(made, TREE, "af_packet", RATE, BOUNDS) as c:
        training = Training(c, WORKERS, 2, "--require")
        wait_until(lambda: rounds_of(c, "agg") > 40, "rounds under bounds", 120)
        training.finish()
        training.expect_same_bits()
        training.expect_all_carried()
        for name in ("agg", *RELAYS):
            job = c.status(name)["jobs"][0]
            expect(job["blocks_sent"] > 100, f"{name} is in the way of the blocks: {job}")
            closed = job["rounds_closed_early"] + job["rounds_closed_deadline"]
            expect(closed > 0, f"{name} closed rounds under bounds: {job}")
        expect(c.status("agg")["jobs"][0]["blocks_missing"] > 0, "blocks were missing")


def a_training_gets_another_plan_twice():
    workers = WORKERS[:2]
    with lab(["agg", *workers]) as made, Cluster(made, "star", "af_packet", RATE, BOUNDS) as c:
        training = Training(c, workers, 3, "--require")
        wait_until(lambda: rounds_of(c, "w1") > 20, "the training to begin", 120)
        epoch = c.status("w1")["jobs"][0]["epoch"]
        job = f"{c.status('w1')['jobs'][0]['id']:08x}"
        for kind, roots in (("sharded", ["agg", "w1"]), ("star", ["agg"])):
            c.tell("w1", "replan", job, "--plan", kind, "--root", *roots)
            now = c.status("w1")["jobs"][0]
            expect(now["plan_kind"] == kind and now["epoch"] > epoch, f"the plan: {now}")
            epoch = now["epoch"]
            before = now["rounds_completed"]
            wait_until(lambda before=before: rounds_of(c, "w1") > before + 60,
                       "rounds under that plan", 60)  # fmt: skip
        training.finish()
        training.expect_same_bits()
        training.expect_all_carried()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torch_training.skip_unless_possible()
    sys.exit(
        cluster.run(
            [a_tree_with_two_relays_trains_with_bounds, a_training_gets_another_plan_twice]
        )
    )
