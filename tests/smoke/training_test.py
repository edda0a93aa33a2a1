#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Unmodified PyTorch over real daemons: it is carried, verified, and survives a daemon's death."""

import os
import signal
import sys

import cluster
import torch_training
from cluster import Cluster, expect, netlab, wait_until
from torch_training import TRAIN_SECONDS, Training

WORKERS = ["w1", "w2"]
RUN = f"gt{os.getpid() % 100000}"
EPOCHS_UNTIL_STOPPED = 1000
RETURN_SECONDS = 60


def lab():
    return netlab.Lab(RUN, ["agg", *WORKERS], netlab.Link(rate_bits=400_000_000, loss=0.01))


def training_is_carried_and_verified():
    with lab() as made, Cluster(made, "star", "af_packet", "400 Mbit/s") as c:
        training = Training(c, WORKERS, 1, "--verify", "--require")
        training.finish()
        expect(training.hashes(0) == training.hashes(1) != [], "both replicas hold the same bits")
        job = c.status("agg")["jobs"][-1]
        expect(job["rounds_completed"] > 20, f"the aggregator summed the rounds: {job}")
        expect(job["blocks_retransmitted"] > 0, "what was lost was sent again")
        for rank in range(2):
            report = training.report(rank)
            expect(report["carried_buckets"] > 20, f"buckets were carried: {report}")
            expect(report["fallen_back_ops"] == 0, f"none fell back: {report}")
            expect("attached" in training.errors(rank), f"a verdict: {training.errors(rank)}")


def training_goes_on(victim):
    """Kills a daemon during a training. Checks both ranks' parameters after each epoch."""
    with lab() as made, Cluster(made, "star", "af_packet", "400 Mbit/s") as c:
        training = Training(c, WORKERS, 3)
        wait_until(lambda: len(training.messages(0, "iteration")) > 8, "training to begin", 60)
        c.daemons[victim].kill()
        c.daemons[victim].wait()
        training.finish()
        expect(training.hashes(0) == training.hashes(1), "both replicas hold the same bits")
        for rank in range(2):
            report = training.report(rank)
            expect(report["carried_buckets"] > 0, f"it was carried at first: {report}")
            expect(report["fallbacks"] == 1, f"one fallback: {report}")
            expect(report["fallen_back_ops"] > 0, f"then Gloo: {report}")
            said = [line for line in training.errors(rank).splitlines() if "Gloo" in line]
            expect(len(said) == 1, f"announced once, with the cause: {training.errors(rank)}")
        return training.hashes(0)


ABSENT = """gather:
  preset: ltp
  absent_after: 50 ms
  strict_rounds: 1
"""


def a_dead_host_that_is_gone_on_without_stops_nobody():
    """The others have results of rounds that the dead host's rank has not submitted yet."""
    with lab() as made, Cluster(made, "star", "af_packet", "400 Mbit/s", ABSENT) as c:
        training = Training(c, WORKERS, 2)
        wait_until(lambda: len(training.messages(0, "iteration")) > 8, "training to begin", 60)
        c.daemons["w2"].kill()
        c.daemons["w2"].wait()
        training.finish()
        expect("without an absent rank" in c.log("agg"), "rounds were closed without the dead host")
        expect(training.hashes(0) == training.hashes(1) != [], "both replicas hold the same bits")
        for rank in range(2):
            report = training.report(rank)
            expect(report["carried_buckets"] > 0, f"it was carried at first: {report}")
            expect(report["fallbacks"] == 1, f"one fallback: {report}")
            expect(report["fallen_back_ops"] > 0, f"then Gloo: {report}")
            expect(report["failed_ops"] == 0, f"nothing failed: {report}")
        # A step has two rounds, and this rank waited in the first step that it lacked.
        handed_on = training.report(1)["recovered_rounds"]
        expect(handed_on > 2, f"it got what it had not submitted: {training.report(1)}")


def a_link_that_carries_only_small_frames_stops_nobody():
    """All nodes get heartbeats from each other, but no more blocks of one worker arrive."""
    with lab() as made, Cluster(made, "star", "af_packet", "400 Mbit/s") as c:
        training = Training(c, WORKERS, 3)
        wait_until(lambda: len(training.messages(0, "iteration")) > 8, "training to begin", 60)
        rule = 'insert rule bridge netlab forward iifname "d-w2" meta length > 1000 drop'
        netlab.in_namespace(made.switch, ["nft", "-f", "-"], stdin=rule + "\n")
        training.finish()
        expect(training.hashes(0) == training.hashes(1) != [], "both replicas hold the same bits")
        for rank in range(2):
            report = training.report(rank)
            expect(report["carried_buckets"] > 0, f"it was carried at first: {report}")
            # The ranks try again later, because they cannot know that the link has not changed.
            expect(report["fallbacks"] >= 1, f"it fell back: {report}")
            expect(report["failed_ops"] == 0, f"nothing failed: {report}")
            cause = report["fallback_cause"]
            expect("signs of life come" in cause, f"no node is silent: {cause}")


def a_dead_aggregator_stops_nobody():
    training_goes_on("agg")


def a_dead_worker_daemon_stops_nobody():
    training_goes_on("w2")


def comes_back(victim):
    """Kills a daemon, and starts it again, as an operator would, when the ranks have noticed."""
    with lab() as made, Cluster(made, "star", "af_packet", "400 Mbit/s") as c:
        verbose = {"GRADPLANE_VERBOSE": "1"}
        training = Training(c, WORKERS, EPOCHS_UNTIL_STOPPED, environment=verbose)
        wait_until(lambda: len(training.messages(0, "iteration")) > 8, "training to begin", 60)
        c.daemons[victim].kill()
        c.daemons[victim].wait()
        for rank in range(len(WORKERS)):
            wait_until(lambda rank=rank: "goes through Gloo" in training.errors(rank),
                       f"rank {rank} to fall back")  # fmt: skip
        c.start(victim)
        c.wait_ready(victim)
        for rank in range(len(WORKERS)):
            wait_until(lambda rank=rank: len(training.carried_from(rank)) == 2,
                       f"rank {rank} to be carried again", RETURN_SECONDS)  # fmt: skip

        def rounds_completed():
            jobs = (c.status("agg") or {"jobs": []})["jobs"]
            return jobs[-1]["rounds_completed"] if jobs else 0

        wait_until(lambda: rounds_completed() > 20, "the aggregator to sum rounds again")
        again = training.carried_from(0)
        expect(again == training.carried_from(1), f"from one operation on: {again}")
        expect(again[1] > again[0], f"later than at first: {again}")


def a_worker_daemon_that_is_started_again_is_used_again():
    comes_back("w2")


def an_aggregator_that_is_started_again_is_used_again():
    comes_back("agg")


def require_forbids_the_fallback():
    with lab() as made, Cluster(made) as c:
        c.daemons["w2"].kill()
        c.daemons["w2"].wait()
        impatient = {"GRADPLANE_ATTACH_TIMEOUT_MS": "3000"}
        training = Training(c, WORKERS, 1, "--require", environment=impatient)
        for rank, process in enumerate(training.processes):
            expect(process.wait(timeout=TRAIN_SECONDS) != 0, f"rank {rank} ends with an error")
            expect("gradplane" in training.errors(rank), training.errors(rank)[-800:])


def a_missing_daemon_fails_the_verification():
    with lab() as made, Cluster(made) as c:
        for name in WORKERS:
            c.daemons[name].kill()
            c.daemons[name].wait()
        training = Training(c, WORKERS, 1, "--verify")
        codes = [process.wait(timeout=TRAIN_SECONDS) for process in training.processes]
        expect(codes == [3, 3], f"exit codes {codes}")
        expect(len(training.hashes(0)) == 1, "it trained over Gloo all the same")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torch_training.skip_unless_possible()
    sys.exit(
        cluster.run(
            [
                training_is_carried_and_verified,
                a_dead_aggregator_stops_nobody,
                a_dead_worker_daemon_stops_nobody,
                a_dead_host_that_is_gone_on_without_stops_nobody,
                a_link_that_carries_only_small_frames_stops_nobody,
                a_worker_daemon_that_is_started_again_is_used_again,
                an_aggregator_that_is_started_again_is_used_again,
                require_forbids_the_fallback,
                a_missing_daemon_fails_the_verification,
            ]
        )
    )
