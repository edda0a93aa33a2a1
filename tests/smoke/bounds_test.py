#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Loss bounds from the YAML to the sums: all daemons have the same table, and report losses."""

import collections
import json
import os
import re
import signal
import subprocess
import sys

import cluster
from cluster import CLI, Cluster, expect, netlab, wait_until

WORKERS = ["w1", "w2", "w3"]
HOSTS = ["agg", *WORKERS]
RUN = f"gb{os.getpid() % 100000}"
ROUNDS = 400
GATHER = """gather:
  preset: ltp
  bounds: {"layer.0.*": exact, "*.bias": 10 %}
  strict_rounds: 5
  compensation: rescale
"""


def lab(loss=0.0):
    return netlab.Lab(RUN, HOSTS, netlab.Link(rate_bits=200_000_000, loss=loss))


def ask(c, name, command, *options):
    answer = subprocess.run(
        [CLI, command, "--socket", c.socket(name), *options],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    expect(answer.returncode == 0, f"the {command} of {name}: {answer.stderr}")
    return answer.stdout


def bounds(c, name, *options):
    return json.loads(ask(c, name, "bounds", "--json", *options))


def rounds(c, name, *options):
    return json.loads(ask(c, name, "rounds", "--json", *options))


def table(page):
    return [(t["name"], t["elements"], t["blocks"], t["bound"], t["rule"]) for t in page["tensors"]]


def start_ranks(c, *options):
    return [c.rank(h, r, 3, "--rounds", ROUNDS, *options) for r, h in enumerate(WORKERS)]


def finish(ranks):
    for process in ranks:
        text = process.communicate(timeout=cluster.RANK_SECONDS)[0]
        expect(process.returncode == 0, f"a rank ends well: {text.strip()}")


def bounds_reach_every_node_and_are_used():
    with lab(loss=0.02) as made, Cluster(made, "star", rate="200 Mbit/s", extra=GATHER) as c:
        expect(bounds(c, "agg") == [], "there are no jobs yet")
        ranks = start_ranks(c, "--tensors", 8, "--elements", 80000)

        def known_everywhere():
            pages = [bounds(c, name) for name in HOSTS]
            return all(p and p[0]["tensors"] for p in pages) and [p[0] for p in pages]

        pages = wait_until(known_everywhere, "all nodes to have the bounds")
        for page in pages[1:]:
            expect(table(page) == table(pages[0]), f"one table: {table(page)} {table(pages[0])}")
        by_name = {t["name"]: t for t in pages[0]["tensors"]}
        expect(by_name["layer.0.bias"]["bound"] == 0, "the first pattern decides")
        expect(by_name["layer.1.bias"]["bound"] == 0.1, "the second one is next")
        expect(by_name["layer.1.weight"]["bound"] == 0.2, "the preset is last")

        def early_and_missing():
            page = bounds(c, "agg")[0]
            return page["closes"]["early"] > 0 and page

        page = wait_until(early_and_missing, "rounds that close early")
        expect(any(s["missing_blocks"] for s in page["sources"]), f"sources: {page['sources']}")
        expect({s["node"] for s in page["sources"]} == set(WORKERS), "every worker is a source")
        for tensor in page["tensors"]:
            share = tensor["missing_blocks"] / max(tensor["expected_blocks"], 1)
            expect(share <= tensor["bound"], f"no more than the bound is missing: {tensor}")
        wait_until(
            lambda: any(t["excluded_blocks"] for n in WORKERS for t in bounds(c, n)[0]["tensors"]),
            "workers that know which of their blocks did not enter",
        )
        job = c.status("agg")["jobs"][0]
        expect(job["rounds_closed_early"] > 0 and job["blocks_missing"] > 0, f"status: {job}")
        log = c.log("agg")
        expect("bounds: ltp: 8 tensors in 1 bucket, 2 exact" in log, f"the log says so: {log}")
        finish(ranks)


def a_rank_that_stops_is_gone_on_without_and_named():
    extra = GATHER + "  absent_after: 50 ms\n"
    with lab() as made, Cluster(made, "star", rate="200 Mbit/s", extra=extra) as c:
        ranks = start_ranks(c, "--tensors", 8, "--elements", 80000)
        # Tensors with bound 0 make a round wait only for ranks that have begun it.

        def rounds_are_counted():
            page = bounds(c, "agg")
            return page and page[0]["closes"]["full"] > 20

        wait_until(rounds_are_counted, "rounds under bounds")
        ranks[1].send_signal(signal.SIGSTOP)
        said = "without an absent rank; missing most: node w2 (rank 1) "
        wait_until(lambda: said in c.log("agg"), "the log of the root to name the rank")
        expect(bounds(c, "agg")[0]["closes"]["absent"] > 0, "the table counts it")
        ranks[1].send_signal(signal.SIGCONT)
        finish(ranks)


def missing_by(entries, key):
    """The number of blocks that are missing from all rounds together, by node or by tensor."""
    missing = collections.Counter()
    for entry in entries:
        missing[entry[key]] += entry["missing_blocks"]
    return {name: blocks for name, blocks in missing.items() if blocks}


def agree(page, counted, status):
    """Checks that single rounds add up to the counters of `bounds` and of the status."""
    told = page["rounds"]
    expect(page["closed"] == len(told) and page["lost"] == 0, f"every round is told: {page}")
    expect([r["number"] for r in told] == list(range(1, len(told) + 1)), "each of them once")
    for reason, count in counted["closes"].items():
        expect(sum(r["reason"] == reason for r in told) == count, f"{reason}: {count}; {told}")
    expect(sum(r["missing_blocks"] for r in told) == status["blocks_missing"], f"blocks: {told}")
    for key, name in (("sources", "node"), ("tensors", "name")):
        total = missing_by(counted[key], name)
        listed = missing_by([entry for r in told for entry in r[key]], name)
        expect(listed == total and total, f"{key}: {listed}, counted {total}")


def rounds_are_told_one_by_one():
    extra = GATHER + "log:\n  level: debug\n"
    with lab(loss=0.02) as made, Cluster(made, "star", rate="200 Mbit/s", extra=extra) as c:
        expect(ask(c, "agg", "rounds") == "no jobs\n", "there are no jobs yet")
        ranks = start_ranks(c, "--tensors", 8, "--elements", 160000)

        def some_are_partial():
            page = rounds(c, "agg", "--last", "128")
            return page and sum(r["reason"] != "full" for r in page[0]["rounds"]) > 3

        wait_until(some_are_partial, "rounds that close early")
        for process in ranks:
            process.send_signal(signal.SIGSTOP)

        def nothing_closed_meanwhile():
            page = rounds(c, "agg", "--last", "128")[0]
            totals = bounds(c, "agg")[0], c.status("agg")["jobs"][0]
            text = ask(c, "agg", "rounds", "--last", "3")
            return rounds(c, "agg")[0]["closed"] == page["closed"] and (page, *totals, text)

        page, counted, status, text = wait_until(
            nothing_closed_meanwhile, "the rounds in flight to end"
        )
        agree(page, counted, status)
        partial = [r for r in page["rounds"] if r["reason"] != "full"]
        for r in partial:
            expect(r["duration_ns"] > 0 and r["expected_blocks"] > r["missing_blocks"] > 0, f"{r}")
            for source in r["sources"]:
                number = int(source["node"][1:]) - 1
                expect(source["ranks"] == [number], f"a source has its ranks: {source}")
        newest = page["rounds"][-1]
        expect(f"3 of {page['closed']} rounds" in text, f"the newest three: {text}")
        expect(str(newest["round"]) in text.splitlines()[-2], f"the newest last: {text}")
        said = "nothing is gathered at this node; ask agg"
        expect(said in ask(c, "w1", "rounds"), "a worker of a star sends who asks to the root")
        follow_goes_on(c, page["closed"], ranks)
        finish(ranks)
        # The log must agree with the counters.
        wait_until(lambda: c.status("agg")["jobs"][0]["state"] == "ended", "the job to end")
        ended = c.status("agg")["jobs"][0]
        lines = re.findall(r"debug .* closed (\w+) after .* without (\d+) of", c.log("agg"))
        expect(sum(int(missing) for _, missing in lines) == ended["blocks_missing"], f"{lines}")
        early = sum(reason == "early" for reason, _ in lines)
        expect(early == ended["rounds_closed_early"], f"{early} lines, {ended}")


def follow_goes_on(c, closed, ranks):
    """`rounds --follow` prints the last round, and then new ones, until it is interrupted."""
    path = c.folder / "followed"
    with open(path, "wb") as out:
        follower = subprocess.Popen(
            [CLI, "rounds", "--follow", "--json", "--last", "1", "--socket", c.socket("agg")],
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            # Processes that a shell starts in the background ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip

    def numbers():
        whole = path.read_text().rpartition("\n")[0]
        return [r["number"] for line in whole.splitlines() for r in json.loads(line)["rounds"]]

    try:
        # A round that was in flight may have closed meanwhile.
        first = wait_until(numbers, "the last round that there is")[0]
        expect(first >= closed, f"it begins with the last round, {closed}: {first}")
        for process in ranks:
            process.send_signal(signal.SIGCONT)
        wait_until(lambda: numbers()[-1] >= closed + 20, "rounds that come later")
    finally:
        follower.send_signal(signal.SIGINT)
        code = follower.wait(timeout=20)
    expect(code == -signal.SIGINT, f"Ctrl-C ends it: {code}")
    told = numbers()
    expect(told == list(range(first, told[-1] + 1)), f"each round once, in order: {told}")


def a_job_that_is_not_there_is_refused_by_name():
    with lab() as made, Cluster(made, extra=GATHER) as c:
        for command in ("bounds", "rounds"):
            asked = subprocess.run(
                [CLI, command, "--job", "12ab", "--socket", c.socket("agg")],
                capture_output=True, text=True, timeout=20, check=False,
            )  # fmt: skip
            expect(asked.returncode == 1, "it fails")
            expect("no job 000012ab here; there are: none" in asked.stderr, asked.stderr)


def many_tensors_come_in_pages():
    with lab() as made, Cluster(made, "star", rate="200 Mbit/s", extra=GATHER) as c:
        ranks = start_ranks(c, "--tensors", 2000, "--elements", 40000)

        def all_of_them():
            page = bounds(c, "w2")
            return page and len(page[0]["tensors"]) == 2000 and page[0]

        page = wait_until(all_of_them, "the bounds of 2000 tensors")
        names = [t["name"] for t in page["tensors"]]
        expect(names[1998:] == ["layer.999.weight", "layer.999.bias"], f"in order: {names[-2:]}")
        expect(not page["more"], "nothing is left")
        finish(ranks)


def unlike_settings_are_told():
    with lab() as made, Cluster(made, extra=GATHER) as c:
        c.daemons["w1"].send_signal(signal.SIGTERM)
        c.daemons["w1"].wait(timeout=10)
        other = c.config("w1", replace=[("compensation: rescale", "compensation: carry")])
        with open(c.folder / "w1.log", "ab") as log:
            c.daemons["w1"] = subprocess.Popen(
                c.command("w1", other), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        c.wait_ready("w1")
        for process in start_ranks(c):
            text = process.communicate(timeout=30)[0]
            said = "gather.compensation is carry on node w1 and rescale on node agg"
            expect(process.returncode != 0 and said in text, f"every rank hears of it: {text}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(
        cluster.run(
            [
                bounds_reach_every_node_and_are_used,
                a_rank_that_stops_is_gone_on_without_and_named,
                rounds_are_told_one_by_one,
                a_job_that_is_not_there_is_refused_by_name,
                many_tensors_come_in_pages,
                unlike_settings_are_told,
            ]
        )
    )
