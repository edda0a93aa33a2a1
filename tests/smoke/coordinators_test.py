#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The coordinator of real daemons is killed: jobs go on, and the next coordinator knows them."""

import os
import signal
import sys

import cluster
from cluster import Cluster, expect, go_on, netlab, replan, run_until_open, wait_until

# The first node coordinates and has no part in the job. The second one sums.
HOSTS = ["boss", "agg", "w1", "w2", "w3"]
WORKERS = ["w1", "w2", "w3"]


def lab():
    link = netlab.Link(rate_bits=200_000_000)
    return netlab.Lab(f"co{os.getpid() % 100000}", HOSTS, link)


def role_is(c, host, text):
    wait_until(
        lambda: c.status(host)["role"].startswith(text),
        f"{host} to say '{text}'; it says '{c.status(host)['role']}'",
    )


def kill(c, host):
    c.daemons[host].send_signal(signal.SIGKILL)
    c.daemons[host].wait()


def a_coordinator_that_is_killed_is_replaced_while_rounds_go_on():
    with lab() as made, Cluster(made, rate="200 Mbit/s") as c:
        ranks = run_until_open(c, WORKERS, 16000)
        role_is(c, "w1", "follows boss (term 0")
        epoch = c.status("w1")["jobs"][0]["epoch"]
        kill(c, "boss")
        go_on(c, 50)
        for host in WORKERS:
            role_is(c, host, "follows agg (term 1")
        role_is(c, "agg", "coordinates the jobs (term 1")
        go_on(c, 50)
        expect(c.status("w1")["jobs"][0]["epoch"] == epoch, "the plan in force stays")
        wait_until(lambda: "taken over under epoch" in c.log("agg"), "agg to know the job")
        answer = replan(c, "w2", "--plan", "sharded", "--root", "agg", "w1")
        expect(answer.returncode == 0, f"it is done: {answer.stdout} {answer.stderr}")
        go_on(c, 50)
        c.start("boss")
        c.wait_ready("boss")
        role_is(c, "boss", "follows agg (term 1")
        answer = replan(c, "w3", "--plan", "star", "--root", "agg")
        expect(answer.returncode == 0, f"it is done: {answer.stdout} {answer.stderr}")
        for process in ranks:
            text = process.communicate(timeout=120)[0].strip()
            expect(process.returncode == 0, f"a rank finds every sum right: {text}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(cluster.run([a_coordinator_that_is_killed_is_replaced_while_rounds_go_on]))
