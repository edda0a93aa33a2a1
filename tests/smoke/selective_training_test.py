#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Selective multicast with unmodified PyTorch: each rank exchanges gradients with some others."""

import os
import signal
import sys

import cluster
import torch_training
from cluster import Cluster, expect, netlab, wait_until
from torch_training import Training

WORKERS = ["w1", "w2", "w3", "w4"]
EPOCHS = 7  # an epoch has twelve steps
RUN = f"gs{os.getpid() % 100000}"
PLAN = "sharded\n  roots: training"
MODE = """training:
  mode: selective-bsp
  receivers: {receivers}
  freshness: 2
  average_every: {average_every}
"""
AVERAGE_EVERY = 28
STALENESS = 4
STALE = f"""training:
  mode: selective-ssp
  receivers: 30%
  freshness: 2
  average_every: {AVERAGE_EVERY}
  staleness: {STALENESS}
"""
PAUSES = 3
RATE = 400_000_000
SLOW_RATE = 80_000_000
SLOW = "w4"
FOLLOWING = """training:
  mode: selective-bsp
  receivers: 30%
  freshness: 2
  average_every: never
network: {bytes: 4 MiB}
"""
TOLERANT = """gather:
  preset: ltp
  strict_rounds: 1
"""


def made_cluster(made, average_every, more="", receivers="30%"):
    extra = MODE.format(average_every=average_every, receivers=receivers) + more
    return Cluster(made, PLAN, "af_packet", "400 Mbit/s", extra)


def lab(loss=0.0, **options):
    return netlab.Lab(RUN, WORKERS, netlab.Link(rate_bits=400_000_000, loss=loss), **options)


def expect_all_have_learned(training):
    ranks = range(len(WORKERS))
    accuracies = [training.messages(rank, "accuracy")[-1]["accuracy"] for rank in ranks]
    expect(min(accuracies) > 0.8, f"each replica has learned: {accuracies}")


def replicas_differ_and_are_averaged():
    with lab() as made, made_cluster(made, 10) as c:
        training = Training(c, WORKERS, EPOCHS, "--require")
        training.finish()
        jobs = c.status("w1")["jobs"]
        for rank in range(len(WORKERS)):
            report = training.report(rank)
            expect(report["carried"]["exchange"] > 40, f"gradients were exchanged: {report}")
            expect(report["averages"] >= 3, f"the parameters were averaged: {report}")
            expect(report["fallen_back_ops"] == 0, f"nothing fell back: {report}")
            told = training.errors(rank).count("replicas differ by design")
            expect(told == 1, f"the program is told once: {training.errors(rank)}")
        last = {training.hashes(rank)[-1] for rank in range(len(WORKERS))}
        expect(len(last) == len(WORKERS), f"replicas differ between averages: {last}")
        expect_all_have_learned(training)
        expect(jobs[-1]["blocks_sent"] > 0, f"over this daemon: {jobs[-1]}")


def updates_go_to_groups_where_the_switch_copies():
    """Two of the three other ranks receive each update. Ranks take no means of parameters, so only
    updates can go to groups."""
    more = "multicast: {enabled: true}\n"
    with lab(multicast="snoop") as made, made_cluster(made, "never", more, receivers="60%") as c:
        training = Training(c, WORKERS, EPOCHS, "--require")
        training.finish()
        for rank, worker in enumerate(WORKERS):
            report = training.report(rank)
            expect(report["carried"]["exchange"] > 40, f"gradients were exchanged: {report}")
            expect(report["fallen_back_ops"] == 0, f"nothing fell back: {report}")
            job = c.status(worker)["jobs"][-1]
            expect(job["blocks_to_groups"] * 3 > job["blocks_sent"], f"updates go to groups: {job}")
        expect_all_have_learned(training)


def what_is_lost_may_stay_lost():
    with lab(loss=0.02) as made, made_cluster(made, 10, TOLERANT) as c:
        training = Training(c, WORKERS, 3, "--require")
        training.finish()
        job = c.status("w1")["jobs"][-1]
        expect(job["rounds_closed_early"] > 0, f"rounds were closed early: {job}")
        for rank in range(len(WORKERS)):
            expect(training.report(rank)["carried"]["exchange"] > 40, "gradients were exchanged")


def averages_go_on_over_gloo():
    """A daemon dies, so all goes through Gloo. Momentum would make the replicas differ again."""
    with lab() as made, made_cluster(made, 10) as c:
        training = Training(c, WORKERS, EPOCHS)
        wait_until(lambda: len(training.messages(0, "iteration")) > 8, "training to begin", 60)
        c.daemons["w3"].kill()
        c.daemons["w3"].wait()
        training.finish()
        for rank in range(len(WORKERS)):
            report = training.report(rank)
            expect(report["carried"]["exchange"] > 0, f"they were exchanged at first: {report}")
            expect(report["fallbacks"] == 1, f"one fallback: {report}")
            expect(report["failed_ops"] == 0, f"nothing failed: {report}")
            expect(report["averages"] > 4, f"the parameters were averaged over Gloo: {report}")
        expect_all_have_learned(training)


def steps(training, rank):
    return len(training.messages(rank, "iteration"))


def pause(training, rank):
    """Stops a rank after the first steps, when the next mean of the parameters is further away than
    others may get ahead. In a mean all ranks wait for each other."""
    def is_stopped():
        training.processes[rank].send_signal(signal.SIGSTOP)
        if STALENESS <= steps(training, rank) % AVERAGE_EVERY < AVERAGE_EVERY - 2 * STALENESS:
            return True
        training.processes[rank].send_signal(signal.SIGCONT)
        return False

    wait_until(is_stopped, f"rank {rank} to be between two means", 60)


def a_rank_that_pauses_stops_nobody():
    """The others get further ahead than ranks that wait for each other's updates could. With
    freshness 2 every rank needs an update of every other rank within three steps."""
    paused = len(WORKERS) - 1
    with lab() as made, Cluster(made, PLAN, "af_packet", "400 Mbit/s", STALE) as c:
        training = Training(c, WORKERS, EPOCHS, "--require")

        def lead():
            return min(steps(training, rank) for rank in range(paused)) - steps(training, paused)

        for _ in range(PAUSES):
            pause(training, paused)
            wait_until(lambda: lead() >= STALENESS, "the others to go on")
            before = steps(training, paused)
            training.processes[paused].send_signal(signal.SIGCONT)
            wait_until(lambda: steps(training, paused) > before + STALENESS, "it to catch up", 60)
        training.finish()
        jobs = [c.status(name)["jobs"][-1] for name in WORKERS]
        for rank, job in enumerate(jobs):
            report = training.report(rank)
            expect(report["carried"]["exchange"] > 40, f"gradients were exchanged: {report}")
            expect(report["averages"] >= 2, f"the parameters were averaged: {report}")
            expect(report["fallen_back_ops"] == report["fallbacks"] == 0, f"no fallback: {report}")
            said = f"selective-ssp, staleness {STALENESS}"
            expect(training.errors(rank).count(said) == 1, f"it is said: {training.errors(rank)}")
            expect(job["updates_received"] > 0, f"updates came here: {job}")
        late = [job["updates_late"] for job in jobs]
        expect(sum(late[:paused]) > 0, f"some were in a later result: {late}")
        expect_all_have_learned(training)


class OneIsSlow(Cluster):
    """According to the files, one worker has a slow link. The others have room for all updates."""

    def config(self, name, **changes):
        node = f"{{name: {SLOW}, address: {self.lab.hosts[SLOW].dataplane_address}/24"
        slow = f"{node}, port: {{link_rate: {SLOW_RATE} bit/s}}"
        changes["replace"] = [(node, slow), *changes.get("replace", [])]
        return super().config(name, **changes)


def blocks_of_step(c, training, worker):
    """The mean number of blocks that a worker sends in a step, over two cycles of selections."""
    job = c.status(worker)["jobs"][0]
    begun = steps(training, 0)
    wait_until(lambda: steps(training, 0) >= begun + 6, "six steps", 60)
    return (c.status(worker)["jobs"][0]["blocks_sent"] - job["blocks_sent"]) / 6


def selections_spare_a_link_that_becomes_slow():
    links = {SLOW: netlab.Link(rate_bits=SLOW_RATE)}
    with netlab.Lab(RUN, WORKERS, netlab.Link(rate_bits=RATE), links=links) as made, \
            OneIsSlow(made, PLAN, "af_packet", "400 Mbit/s", FOLLOWING) as c:  # fmt: skip
        training = Training(c, WORKERS, 20, "--require")
        wait_until(lambda: steps(training, 0) > 8, "training to begin", 60)
        before = blocks_of_step(c, training, "w2")
        epoch = c.status("w2")["jobs"][0]["epoch"]
        made.set_link("w2", netlab.Link(rate_bits=SLOW_RATE))
        wait_until(lambda: c.status("w2")["jobs"][0]["epoch"] > epoch, "other selections", 90)
        expect("the network has changed, preparing epoch" in c.log("w1"), c.log("w1"))
        expect("for an exchange of 4 MiB" in c.log("w1"), c.log("w1"))
        after = wait_until(
            lambda: (now := blocks_of_step(c, training, "w2")) < 0.7 * before and [now],
            "it to send less", 90,
        )  # fmt: skip
        print(f"w2 sends {before:.0f} blocks in a step, and {after[0]:.0f} over the slow link")


CASES = [
    replicas_differ_and_are_averaged,
    updates_go_to_groups_where_the_switch_copies,
    what_is_lost_may_stay_lost,
    averages_go_on_over_gloo,
    a_rank_that_pauses_stops_nobody,
    selections_spare_a_link_that_becomes_slow,
]

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torch_training.skip_unless_possible()
    wanted = sys.argv[2:]
    sys.exit(cluster.run([case for case in CASES if not wanted or case.__name__ in wanted]))
