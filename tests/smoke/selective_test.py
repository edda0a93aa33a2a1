#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Real daemons whose ranks train with selected receivers: what daemons and ranks tell each other,
and what operators see. The ranks implement only the protocol of the control socket."""

import json
import os
import signal
import socket
import sys

import cluster
from cluster import Cluster, expect, netlab, replan, wait_until

WORKERS = ["w1", "w2", "w3"]
SHARDED = "sharded\n  roots: training"
TRAINING = "training: {mode: selective-bsp, receivers: 40 %, freshness: 2, average_every: 50}\n"
STALE = """training: {mode: selective-ssp, receivers: 40 %, freshness: 2, staleness: 3}
rounds: {bytes: 1 MiB}
"""
KEY = "00112233445566778899aabbccddeeff"
SECONDS = 20
MAX_MESSAGE_BYTES = 65536
MAX_PASSED_FDS = 8
WARNING = "training.drift_limit is 10 %"


def lab():
    return netlab.Lab(f"se{os.getpid() % 100000}", WORKERS, netlab.Link(rate_bits=200_000_000))


class Rank:
    """A rank that attaches and does not use what the daemon passes to it."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(path))
        self.send({"type": "hello", "version": 1, "role": "rank", "pid": os.getpid()})
        expect(self.receive()["type"] == "hello", "the daemon greets")

    def attach(self, rank, world):
        self.send({"type": "attach", "key": KEY, "rank": rank, "world_size": world, "label": "job"})
        return self

    def send(self, message):
        self.socket.send(json.dumps(message).encode())

    def tell(self, step, distance, norm):
        self.send({"type": "drift", "step": step, "distance": distance, "norm": norm})

    def describe(self, bucket, elements):
        tensors = [{"name": "a", "offset": 0, "elements": elements}]
        self.send({"type": "bucket", "bucket": bucket, "element_type": 1, "total": 1, "first": 0,
                   "tensors": tensors})  # fmt: skip

    def receive(self):
        data, fds, _, _ = socket.recv_fds(self.socket, MAX_MESSAGE_BYTES, MAX_PASSED_FDS)
        for fd in fds:
            os.close(fd)
        return json.loads(data) if data else None

    def until(self, *types):
        while (message := self.receive()) is not None:
            if message["type"] in types:
                return message
        raise cluster.Failure(f"the daemon hung up before it said {types}")


def ranks_of(c, hosts):
    ranks = [Rank(c.socket(host)).attach(n, len(hosts)) for n, host in enumerate(hosts)]
    return ranks, [rank.until("ready", "failed") for rank in ranks]


def drift_of(c, host):
    drifts = c.status(host)["jobs"][0]["drifts"]
    return drifts[0] if drifts else {"averages": 0}


def ranks_learn_how_they_train_and_operators_how_far_they_are_apart():
    with lab() as made, Cluster(made, plan=SHARDED, extra=TRAINING) as c:
        ranks, ready = ranks_of(c, WORKERS)
        for told in ready:
            expect(told["type"] == "ready", str(told))
            expect((told["selections"], told["average_every"]) == (3, 50), str(told))
        job = c.status("w2")["jobs"][0]
        expect((job["mode"], job["selections"]) == ("selective-bsp", 3), str(job))
        expect("3 selections" in c.tell("w2", "status"), "a person sees the selections")
        for number, (distance, warnings) in enumerate(((0.5, 0), (2, 1), (3, 1), (0.5, 1), (2, 2))):
            ranks[1].tell(50 * number, distance, 10)
            wait_until(lambda n=number: drift_of(c, "w2")["averages"] == n + 1, "the drift")
            expect(c.log("w2").count(WARNING) == warnings, c.log("w2"))
        drift = drift_of(c, "w2")
        expect((drift["rank"], drift["step"], drift["relative"]) == (1, 200, 0.2), str(drift))
        expect("job_rank_drift_ratio" in c.tell("w2", "metrics"), "metrics have it")
        expect(drift_of(c, "w1")["averages"] == 0, "the others have told none")
        answer = replan(c, "w1", "--plan", "star", "--root", "w1")
        expect(answer.returncode == 1, f"it is refused: {answer.stdout} {answer.stderr}")
        expect("a star plan carries no selections of receivers" in answer.stderr, answer.stderr)


def a_drift_out_of_place_ends_the_connection_and_is_counted():
    with lab() as made, Cluster(made, plan=SHARDED, extra=TRAINING) as c:
        stranger = Rank(c.socket("w1"))
        stranger.tell(1, 1, 1)
        expect(stranger.until("error")["reason"] == "drift before attach", "it says why")
        early = Rank(c.socket("w1")).attach(0, 3)
        early.until("waiting")
        early.tell(1, 1, 1)
        expect(early.until("error")["reason"] == "drift before the job was ready", "it says why")
        expect(c.status("w1")["control_rejected"]["by_handler"] == 2, "both are counted")
        ranks, ready = ranks_of(c, WORKERS)
        expect(all(told["type"] == "ready" for told in ready), str(ready))
        ranks[0].tell(1, -1, 1)
        expect("finite" in ranks[0].until("error")["reason"], "it says why")
        expect(c.status("w1")["control_rejected"]["out_of_range"] == 1, "it is counted")


def exact_sums_go_over_a_plan_with_selections():
    with lab() as made, Cluster(made, plan=SHARDED, extra=TRAINING) as c:
        c.run_ranks(WORKERS, "--rounds", 60, "--elements", 20000)


def what_cannot_be_selective_is_told_why():
    with lab() as made, Cluster(made, plan=SHARDED, extra=TRAINING) as c:
        _, told = ranks_of(c, ["w1", "w1", "w2"])
        for message in told:
            expect(message["type"] == "failed", str(message))
            expect("node w1 has 2 ranks of the job" in message["reason"], str(message))


def tensors_of(c, host):
    return [tensor for page in json.loads(c.tell(host, "bounds", "--json"))
            for tensor in page["tensors"]]  # fmt: skip


def with_staleness_all_nodes_hold_each_bucket_or_the_job_ends():
    with lab() as made, Cluster(made, plan=SHARDED, extra=STALE) as c:
        ranks, ready = ranks_of(c, WORKERS)
        for told in ready:
            expect((told["selections"], told["staleness"]) == (3, 3), str(told))
        job = c.status("w2")["jobs"][0]
        expect((job["mode"], job["staleness"]) == ("selective-ssp", 3), str(job))
        text = " ".join(c.tell("w2", "status").split())
        expect("at most 3 steps behind" in text, f"a person sees the staleness: {text}")
        ranks[0].describe(1, 2**18)
        for host in WORKERS:
            wait_until(lambda h=host: len(tensors_of(c, h)) == 1, f"{host} to have the bucket")
            expect(tensors_of(c, host)[0]["bound"] == 0, "it is exact")
        ranks[0].describe(2, 2**18 + 1)  # more elements than fit into a round
        for rank in ranks:
            reason = rank.until("failed")["reason"]
            expect("the bounds of bucket 2 fit no round" in reason, reason)
            expect("training.mode selective-ssp needs every bucket" in reason, reason)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(
        cluster.run(
            [
                ranks_learn_how_they_train_and_operators_how_far_they_are_apart,
                a_drift_out_of_place_ends_the_connection_and_is_counted,
                exact_sums_go_over_a_plan_with_selections,
                what_cannot_be_selective_is_told_why,
                with_staleness_all_nodes_hold_each_bucket_or_the_job_ends,
            ]
        )
    )
