#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Wire types from the YAML to the network: packets are smaller, replicas are equal, and a training
learns."""

import json
import os
import signal
import subprocess
import sys

import cluster
import torch_training
from cluster import CLI, Cluster, expect, netlab, wait_until
from torch_training import Training

WORKERS = ["w1", "w2", "w3"]
HOSTS = ["agg", *WORKERS]
RUN = f"gw{os.getpid() % 100000}"
EPOCHS = 3
PARAMETERS = 8  # of the network in train.py
LEAST_ACCURACY = 0.85


def lab():
    return netlab.Lab(RUN, HOSTS, netlab.Link(rate_bits=400_000_000, loss=0.005))


def bounds(c, name):
    answer = subprocess.run(
        [CLI, "bounds", "--json", "--socket", c.socket(name)],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    expect(answer.returncode == 0, f"the bounds of {name}: {answer.stderr}")
    return json.loads(answer.stdout)


def wire_types_of(page):
    return {tensor["name"]: tensor["wire"] for tensor in page["tensors"]}


def trains(plan, gather, least_saved):
    """Runs one training. `least_saved`: the least share of all payload bytes that must be saved."""
    with lab() as made, Cluster(made, plan, "af_packet", "400 Mbit/s", gather) as c:
        names = {"TORCH_DISTRIBUTED_DEBUG": "INFO"}
        training = Training(c, WORKERS, EPOCHS, "--verify", "--require", environment=names)

        def known_everywhere():
            pages = [bounds(c, name) for name in WORKERS]
            whole = all(p and len(wire_types_of(p[0])) == PARAMETERS for p in pages)
            return whole and [p[0] for p in pages]

        pages = wait_until(known_everywhere, "all workers to have the wire types", 60)
        for page in pages:
            types = wire_types_of(page)
            expect(types == wire_types_of(pages[0]), f"all nodes have one table: {types}")
            expect(types["6.bias"] == "", f"the first pattern decides: {types}")
            expect(types["6.weight"] != "", f"then the others: {types}")
        training.finish()
        training.expect_same_bits()
        training.expect_all_carried()
        accuracy = training.messages(0, "epoch")[-1]["accuracy"]
        expect(accuracy > LEAST_ACCURACY, f"the network has learned: {accuracy}")
        for name in [*WORKERS, *(["agg"] if plan == "star" else [])]:
            job = c.status(name)["jobs"][-1]
            whole = job["payload_bytes_sent"] + job["payload_bytes_saved"]
            share = job["payload_bytes_saved"] / whole
            expect(share > least_saved, f"packets of {name} were smaller: {share:.3f} saved")
        log = c.log("agg") + c.log("w1")
        expect(" go as " in log, "the log of the coordinator says so")
        return [c.status(name)["jobs"][-1] for name in HOSTS]


def bf16_halves_the_bytes():
    jobs = trains("star", 'gather:\n  wire_types: {"*.bias": fp32, "*": bf16}\n', 0.4)
    expect(all(job["blocks_carried"] == 0 for job in jobs), "nothing is carried without carry")


def int8_with_carry_takes_a_quarter():
    gather = 'gather:\n  wire_types: {"*.bias": fp32, "*": int8}\n  compensation: carry\n'
    jobs = trains("star", gather, 0.6)
    expect(all(job["blocks_carried"] > 0 for job in jobs), "every node carries what it rounds off")


def int8_on_roots_with_ranks():
    gather = 'gather:\n  wire_types: {"*.bias": fp32, "*": int8}\n  compensation: carry\n'
    trains("sharded", gather, 0.6)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torch_training.skip_unless_possible()
    sys.exit(
        cluster.run(
            [
                bf16_halves_the_bytes,
                int8_with_carry_takes_a_quarter,
                int8_on_roots_with_ranks,
            ]
        )
    )
