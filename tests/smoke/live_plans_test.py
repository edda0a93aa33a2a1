#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Real daemons whose job gets other plans while it runs. Roots and relays join and leave."""

import json
import os
import signal
import sys

import cluster
from cluster import (
    TREE, TREE_HOSTS, Cluster, all_are_right, expect, go_on, netlab, replan, rounds_of,
    run_until_open, wait_until,
)  # fmt: skip

WORKERS = ["w1", "w2", "w3"]
# Drop reasons that do not occur while all nodes agree about plans, rounds and keys.
CONTRADICTIONS = {
    "malformed", "unknown_node", "wrong_epoch", "bad_tag", "replayed", "not_peer", "bad_geometry",
    "mismatch", "bad_contributors", "bad_grant", "stale_plan",
}  # fmt: skip
GRANTS = "grants: {enabled: true, policy: mltcp}\n"


def lab(hosts=("agg", *WORKERS), loss=0.0):
    link = netlab.Link(rate_bits=200_000_000, loss=loss)
    return netlab.Lab(f"lp{os.getpid() % 100000}", list(hosts), link)


def trees_of(c, host):
    """The share of the blocks that each root of the current plan sums."""
    page = json.loads(c.tell(host, "topology", "--format", "json"))
    trees = page["jobs"][0]["trees"]
    return {tree["root"]: tree["weight"] for tree in trees}


def gives_its_part_up(c, host, times):
    wait_until(
        lambda: c.log(host).count("goes on without this node from now on") == times,
        f"{host} to give its part in the job up",
    )


def a_job_that_runs_gets_another_plan_twice():
    with lab() as made, Cluster(made, rate="200 Mbit/s") as c:
        ranks = run_until_open(c, WORKERS, 3000)
        epoch = c.status("w1")["jobs"][0]["epoch"]
        for host, kind, roots in (("w1", "sharded", ["agg", "w1"]), ("agg", "star", ["agg"])):
            answer = replan(c, host, "--plan", kind, "--root", *roots)
            expect(answer.returncode == 0, f"it is done: {answer.stdout} {answer.stderr}")
            go_on(c, 100)
            job = c.status("w1")["jobs"][0]
            expect(job["plan_kind"] == kind and job["epoch"] > epoch, str(job))
            epoch = job["epoch"]
        all_are_right(ranks)


def a_job_gets_trees_that_are_packed_and_a_star_again():
    # Both plans stay until an operator asks for another one.
    plan = "star\n  redraw: {enabled: false}"
    with lab(loss=0.01) as made, Cluster(made, plan, rate="200 Mbit/s") as c:
        ranks = run_until_open(c, WORKERS, 3000)
        epoch = c.status("w1")["jobs"][0]["epoch"]
        answer = replan(c, "w1", "--plan", "packed")
        expect(answer.returncode == 0, f"it is done: {answer.stdout} {answer.stderr}")
        go_on(c, 100)
        for host in WORKERS:
            job = c.status(host)["jobs"][0]
            expect(job["plan_kind"] == "packed" and job["epoch"] > epoch, f"{host}: {job}")
        trees = trees_of(c, "w1")
        expect(len(trees) > 1, f"one root would be the star that was: {trees}")
        print(f"roots and weights: {trees}")
        answer = replan(c, "agg", "--plan", "star", "--root", "agg")
        expect(answer.returncode == 0, f"it is done: {answer.stdout} {answer.stderr}")
        go_on(c, 100)
        expect(list(trees_of(c, "w1")) == ["agg"], f"the star again: {trees_of(c, 'w1')}")
        all_are_right(ranks)
        nobody_contradicts(c)


def a_root_moves_to_another_aggregator_and_back():
    with lab(["agg", "agg2", *WORKERS], loss=0.01) as made:
        with Cluster(made, rate="200 Mbit/s", extra=GRANTS) as c:
            ranks = run_until_open(c, WORKERS, 4000)
            for times, (old, new) in enumerate(2 * [("agg", "agg2"), ("agg2", "agg")]):
                answer = replan(c, "w2", "--plan", "star", "--root", new)
                expect(answer.returncode == 0, f"it is done: {answer.stdout} {answer.stderr}")
                gives_its_part_up(c, old, 1 + times // 2)
                before = c.status(new)["jobs"][0]["rounds_completed"]
                go_on(c, 100)
                job = c.status(new)["jobs"][0]
                expect(job["rounds_completed"] > before, f"the new root sums: {job}")
            all_are_right(ranks)


def relays_leave_a_job_that_runs_and_join_it_again():
    workers = ["w1", "w2", "w3", "w4"]
    with lab(TREE_HOSTS) as made, Cluster(made, TREE, rate="200 Mbit/s") as c:
        ranks = run_until_open(c, workers, 3000)
        for times, plan in enumerate(2 * [("star", "--root", "agg"), ("manual",)]):
            answer = replan(c, "w1", "--plan", *plan)
            expect(answer.returncode == 0, f"it is done: {answer.stdout} {answer.stderr}")
            go_on(c, 200)
            for relay in ("r1", "r2"):
                gives_its_part_up(c, relay, (times + 2) // 2)
        all_are_right(ranks)


def leave(c, process, times, *plan):
    """Takes the rank on w3 out of the job, and waits until its node has left the job."""
    answer = replan(c, "w1", "--plan", *plan, "--without", "w3")
    expect(answer.returncode == 0, f"it is done: {answer.stdout} {answer.stderr}")
    text = process.communicate(timeout=60)[0]
    expect("goes on without the ranks of node w3" in text, f"it is told: {text}")
    gives_its_part_up(c, "w3", times)


def join(c, *options):
    """Starts a new process for the rank on w3. It begins with the first round of the next plan."""
    process = c.rank("w3", 2, 3, *options)
    line = process.stdout.readline()
    expect("begins with round" in line and "round 0" not in line, f"it joins: {line}")
    return process


def nobody_contradicts(c):
    for host in c.daemons:
        report = c.status(host)
        for where in (report["drops"], report["control_rejected"],
                      *(job["drops"] for job in report["jobs"])):  # fmt: skip
            found = {reason: where[reason] for reason in CONTRADICTIONS & where.keys()}
            expect(not found, f"what {host} refused: {found}")


def ranks_leave_a_job_that_runs_and_join_it_again():
    with lab(loss=0.01) as made:
        with Cluster(made, rate="200 Mbit/s", extra="ranks: {elastic: true}\n") as c:
            options = ("--rounds", 6000, "--elements", 5000, "--may-lack", 2)
            ranks = [c.rank(h, r, 3, *options) for r, h in enumerate(WORKERS)]
            wait_until(lambda: rounds_of(c, "w1") > 20, "rounds to go by")
            leave(c, ranks[2], 1, "star")
            go_on(c, 100)
            ranks[2] = join(c, *options)
            leave(c, ranks[2], 2, "sharded", "--root", "agg", "w1")
            expect(cluster.terminate(c.daemons["w3"]) == 0, "the daemon of w3 ends")
            c.start("w3")
            c.wait_ready("w3")
            go_on(c, 100)
            ranks[2] = join(c, *options)
            for text in all_are_right(ranks)[:2]:
                expect(" 0 without rank 2" not in text, f"some rounds lacked rank 2: {text}")
            nobody_contradicts(c)


def a_plan_that_is_refused_leaves_the_job_as_it_was():
    with lab() as made, Cluster(made, rate="200 Mbit/s") as c:
        run_until_open(c, WORKERS)
        job = c.status("w1")["jobs"][0]
        for command, reason in (
            (("--plan", "star", "--root", "w9"), "there is no node w9"),
            (("--plan", "manual"), "has no plan.trees"),
        ):
            answer = replan(c, "w1", *command)
            expect(answer.returncode == 1, f"it is refused: {answer.stdout} {answer.stderr}")
            expect(reason in answer.stderr, answer.stderr)
        before = c.status("w1")["jobs"][0]
        expect(before["epoch"] == job["epoch"] and before["plan_kind"] == "star", str(before))
        go_on(c, 50)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(
        cluster.run(
            [
                a_job_that_runs_gets_another_plan_twice,
                a_job_gets_trees_that_are_packed_and_a_star_again,
                a_root_moves_to_another_aggregator_and_back,
                relays_leave_a_job_that_runs_and_join_it_again,
                ranks_leave_a_job_that_runs_and_join_it_again,
                a_plan_that_is_refused_leaves_the_job_as_it_was,
            ]
        )
    )
