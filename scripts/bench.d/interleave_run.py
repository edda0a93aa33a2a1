# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Runs trainings of several jobs that share one link, for one contestant in a lab."""

import contextlib
import dataclasses
import itertools
import os
import pathlib
import statistics
import time

import contestants as peers
import gradplane_nodes
import netlab

BUCKETS = 4
START_SECONDS = 30
LEAD_SECONDS = 0.3
# Iterations of a lone job. The first is left out, because its connections and windows are new.
ALONE_ITERATIONS = 8
# All jobs must be done in this many times the time that they would take one after the other, and
# PATIENCE_SECONDS more.
PATIENCE = 3
PATIENCE_SECONDS = 20
FIRST_SEED = 1000
COMPENSATION = "rescale"
GATHER = f"gather: {{compensation: {COMPENSATION}, strict_rounds: 0, {peers.EXACT}}}\n"
# Exceptions that end the trainings of a contestant without a result. Their messages say why.
FAILURES = (OSError, RuntimeError, netlab.LabError)
_folders = itertools.count()


@dataclasses.dataclass(frozen=True)
class Contestant:
    """gradplane with `extra` in its YAML file and `port` in its section `port`, or the kernel's TCP
    with a congestion control."""

    name: str
    extra: str = ""
    port: str = ""
    tcp: str | None = None
    ecn_bytes: int = 0  # the queue length from which the switch marks; 0: never


@dataclasses.dataclass
class Plan:
    """The training of one job."""

    message_bytes: int
    iterations: int
    compute_s: float
    at_s: float = 0.0  # when it begins, after the first job
    jitter: float = 0.0
    seed: int = FIRST_SEED


@dataclasses.dataclass
class Trained:
    """The results of a job's training: when its all-reduces began and ended on the last rank, in
    seconds of CLOCK_MONOTONIC."""

    starts: list
    ends: list
    correct: bool
    late_s: float  # the largest delay from the end of computing to the start of its all-reduce


class Cluster:
    """A context in which jobs of one contestant can run: its daemons, or only the kernel."""

    def __init__(self, lab, contestant, rate_bits, logs):
        self._lab, self._contestant = lab, contestant
        self._rate_bits, self._logs = rate_bits, logs
        self._nodes = None

    def __enter__(self):
        self._logs.mkdir(parents=True, exist_ok=True)
        if self._contestant.tcp:
            self._lab.set_tcp(self._contestant.tcp)
            return self
        build = pathlib.Path(os.environ.get("GRADPLANE_BUILD", peers.ROOT / "build"))
        self._nodes = gradplane_nodes.GradplaneNodes(
            build, self._lab, next(iter(self._lab.hosts)), "star", self._rate_bits, self._logs,
            number=0, extra=GATHER + self._contestant.extra, port=self._contestant.port,
        )  # fmt: skip
        try:
            self._nodes.wait_until_up()
        except BaseException:
            self._nodes.end()
            raise
        return self

    def __exit__(self, *_):
        if self._nodes:
            self._nodes.end()

    @contextlib.contextmanager
    def jobs(self, count):
        """A context with so many jobs that are ready. Each has a rank on every host but the first.
        Raises if they do not end well."""
        made = [self._job() for _ in range(count)]
        try:
            for job in made:
                job.start(self._lab, self._rate_bits, self._logs / f"job{next(_folders)}")
            for job in made:
                job.ready(START_SECONDS)
            yield made
        except BaseException:
            for job in made:
                job.end()
            raise
        troubles = [trouble for job in made for trouble in job.end()]
        if troubles:
            raise peers.ContestantError("; ".join(troubles))

    def _job(self):
        if self._nodes:
            return peers.JobOfDaemons(self._contestant.name, self._nodes, COMPENSATION)
        return peers.ParameterServerContestant(self._contestant.tcp)

    def train(self, plans):
        """Trains. Returns the results of each job, or raises one of FAILURES."""
        seconds = sum(plan.iterations * plan.compute_s for plan in plans) + sum(
            plan.iterations * plan.message_bytes * 8 / self._rate_bits * len(self._lab.hosts)
            for plan in plans
        )
        deadline = time.monotonic() + PATIENCE * seconds + PATIENCE_SECONDS
        with self.jobs(len(plans)) as jobs:
            at_ns = time.monotonic_ns() + int(LEAD_SECONDS * 1e9)
            for job, plan in zip(jobs, plans):
                job.ask({
                    "do": "train", "seed": plan.seed, "bytes": plan.message_bytes,
                    "at_ns": at_ns + int(plan.at_s * 1e9), "iterations": plan.iterations,
                    "compute_ns": int(plan.compute_s * 1e9), "jitter": plan.jitter,
                    "buckets": BUCKETS,
                })  # fmt: skip
            return [sum_up(job.answers(max(0.0, deadline - time.monotonic()))) for job in jobs]

    def communication_alone(self, message_bytes, compute_s):
        """The median time of a lone job's all-reduce, in seconds."""
        (found,) = self.train([Plan(message_bytes, ALONE_ITERATIONS, compute_s)])
        if not found.correct:
            raise peers.ContestantError("a sum of the lone job was wrong")
        return statistics.median(e - s for s, e in list(zip(found.starts, found.ends))[1:])


def sum_up(answers):
    """The results of a job, from the answers of its ranks, and of its server if it has one."""
    errors = [str(answer["error"]) for answer in answers if "error" in answer]
    if errors:
        raise peers.ContestantError(errors[0])
    ranks = [answer for answer in answers if "end_ns" in answer]

    def last(key):
        return [max(times) / 1e9 for times in zip(*(rank[key] for rank in ranks))]

    return Trained(
        last("start_ns"),
        last("end_ns"),
        correct=all(answer.get("correct") is True for answer in answers),
        late_s=max(rank["late_ns"] for rank in ranks) / 1e9,
    )
