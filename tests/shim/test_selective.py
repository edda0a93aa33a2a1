# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Ranks exchange gradients: replicas differ, and exact averages of the parameters are taken."""

import math
import os
import tempfile
from itertools import groupby

from harness import (EXACT, FakeDaemon, exact_counts, expect, expect_all_well, reports, run_all,
                     run_ranks)

PROGRAMS = "selective_programs.py"


def run(program, world, selective, env=None, args=(), timeout=120, **more):
    """Runs a program. Returns the outcomes and reports, and by rank the submissions and drifts."""
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        own = daemon.env(GRADPLANE_REPORT=os.path.join(folder, "report-%r"),
                         GRADPLANE_TEST_SUBMISSIONS=os.path.join(folder, "log"),
                         GRADPLANE_TEST_DRIFT=os.path.join(folder, "drift"),
                         GRADPLANE_TEST_SELECTIVE=selective, **(env or {}))
        outcomes = run_ranks(program, world, env=own, args=args, source=PROGRAMS, timeout=timeout,
                             **more)
        expect_all_well(outcomes, f"{program} {args} {selective} {env}")
        logs, drifts = ([lines_of(folder, name, rank) for rank in range(world)]
                        for name in ("log", "drift"))
        return outcomes, reports(folder, world), logs, drifts


def lines_of(folder, name, rank):
    path = os.path.join(folder, f"{name}.{rank}")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf8") as f:
        return [line.split() for line in f]


def sources(log):
    """The selections of the exchanges, in order. A run of equal ones counts once."""
    exchanges = [int(what.split("/")[1]) for what, *_ in log if what.startswith("exchange")]
    return [source for source, _ in groupby(exchanges)]


def expect_drifts(told, wanted, outcomes):
    expect(len(told) == len(wanted), f"{told}, not {wanted}", outcomes)
    for (step, distance, norm), want in zip(told, wanted):
        same = (int(step) == want[0] and math.isclose(float(distance), want[1], rel_tol=1e-9)
                and math.isclose(float(norm), want[2], rel_tol=1e-9))
        expect(same, f"{(step, distance, norm)}, not {want}", outcomes)


def test_gradients_are_exchanged_and_parameters_averaged():
    # Each rank predicts its parameters after each of 12 steps.
    outcomes, found, logs, drifts = run("known", 4, "3:5", args=("12",))
    for rank, report in enumerate(found):
        expect(report["averages"] == 2, str(report), outcomes)
        expect(report["carried"]["exchange"] == report["carried_buckets"], str(report), outcomes)
        expect(report["fallbacks"] == report["failed_ops"] == 0, str(report), outcomes)
        expect(sources(logs[rank]) == [step % 3 for step in range(12)], str(logs[rank]), outcomes)
        expect_drifts(drifts[rank], outcomes[rank].said["drifts"], outcomes)


def test_it_is_said_once():
    outcomes, _, _, _ = run("known", 4, "3:5", args=("3",))
    for outcome in outcomes:
        expect(outcome.err.count("ranks exchange their gradients") == 1, "once", outcomes)
        expect("averaged exactly every 5 steps" in outcome.err, "how often", outcomes)
        expect("(training.mode: selective-bsp)" in outcome.err, "the mode", outcomes)
        expect("older updates" not in outcome.err, "each of its step", outcomes)
        expect("docs/selective.md" in outcome.err, "where to read on", outcomes)
        expect("gradplane" not in outcome.out, "not to the program's output", outcomes)


def test_staleness_is_said():
    for staleness, steps in (("1", "1 step,"), ("4", "4 steps,")):
        outcomes, found, _, _ = run("known", 4, f"3:5:{staleness}", args=("3",))
        for outcome, report in zip(outcomes, found):
            mode = f"(training.mode: selective-ssp, staleness {staleness})"
            expect(outcome.err.count(mode) == 1, "once", outcomes)
            older = f"a result may hold older updates of other ranks, up to {steps}"
            expect(older in outcome.err, "what it means", outcomes)
            expect(report["carried"]["exchange"] > 0, str(report), outcomes)


def test_updates_on_their_way_are_not_told_as_missing():
    for selective, counted, other in (("3:5:4", "early", "partial"), ("3:5", "partial", "early")):
        outcomes, found, _, _ = run("known", 4, selective, args=("6",),
                                    env={"GRADPLANE_TEST_FAKE": "partial=2"})
        for report in found:
            rounds = report[f"{counted}_rounds"]
            expect(rounds >= report["carried"]["exchange"], f"{selective}: {report}", outcomes)
            expect(report[f"{counted}_blocks"] == 2 * rounds, f"{selective}: {report}", outcomes)
            expect(report[f"{other}_rounds"] == 0, f"{selective}: {report}", outcomes)


def test_the_report_has_the_last_drift():
    outcomes, found, _, drifts = run("known", 4, "3:5", args=("12",))
    for report, told in zip(found, drifts):
        _, distance, norm = map(float, told[-1])
        expect(report["last_drift_ppm"] == int(1e6 * distance / norm), str(report), outcomes)


def test_without_averages_the_drift_is_measured():
    outcomes, found, _, drifts = run("known", 4, "3:0", args=("202",))
    for rank, report in enumerate(found):
        expect(report["averages"] == 0, str(report), outcomes)
        expect_drifts(drifts[rank], outcomes[rank].said["drifts"], outcomes)
        expect(len(drifts[rank]) == 2, str(drifts[rank]), outcomes)


def test_exact_jobs_are_as_before():
    outcomes, found, logs, drifts = run("known", 4, "0:5", args=("12",))
    for rank, report in enumerate(found):
        expect("exchange" not in report["carried"] and report["averages"] == 0, str(report),
               outcomes)
        expect(not drifts[rank] and not sources(logs[rank]), "nothing of it", outcomes)
        expect("exchange" not in outcomes[rank].err, "no word", outcomes)


def test_ranks_that_are_told_differently_sum():
    env = {r: {"GRADPLANE_TEST_SELECTIVE": "3:5" if r == 1 else "2:5"} for r in range(3)}
    outcomes, found, _, _ = run("variant", 3, "2:5", args=("plain",), rank_env=env)
    expect(all("exchange" not in r["carried"] for r in found), str(found), outcomes)
    expect(len({str(o.said["bits"]) for o in outcomes}) == 1, "as without", outcomes)


def test_all_but_gradients_is_as_gloos():
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        env = daemon.env(GRADPLANE_REPORT=os.path.join(folder, "report-%r"),
                         GRADPLANE_TEST_SELECTIVE="3:2")
        plain = run_ranks(EXACT, 2, preload=False)
        outcomes = run_ranks(EXACT, 2, env=env)
        expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
               plain + outcomes)
        for report in reports(folder, 2):
            expect(report["carried"] == exact_counts(2), str(report), outcomes)


def expect_alike_when_averaged(outcomes, every):
    """Checks that replicas are equal only after the last forward pass, and only if it began with an
    average."""
    for step in range(7):
        alike = len({o.said["bits"][step] for o in outcomes}) == 1
        # After a step, parameters are what the optimizer made of the average before it.
        expect(alike == (step == 6 and 6 % every == 0), f"after step {step}: {alike}", outcomes)


def test_ddp_in_its_variants():
    for name in ("plain", "views", "unused", "no_sync", "static"):
        outcomes, found, logs, _ = run("variant", 3, "2:3", args=(name,))
        expect_alike_when_averaged(outcomes, 3)
        for rank, report in enumerate(found):
            expect(report["averages"] == 2 and report["failed_ops"] == 0, f"{name}: {report}",
                   outcomes)
            expect(sources(logs[rank]) == [0, 1] * 3, f"{name}: {sources(logs[rank])}", outcomes)


def test_replicas_are_not_averaged_too_often():
    outcomes, found, _, _ = run("variant", 3, "2:4", args=("plain",))
    expect_alike_when_averaged(outcomes, 4)
    expect(all(r["averages"] == 1 for r in found), str(found), outcomes)


def test_under_torchs_own_wrapper():
    outcomes, found, _, _ = run("variant", 3, "2:3", args=("plain",),
                                env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    expect_alike_when_averaged(outcomes, 3)
    expect(all(r["averages"] == 2 for r in found), str(found), outcomes)


def test_each_reducer_counts_its_own_steps():
    outcomes, found, logs, _ = run("two_models", 3, "2:2")
    for step in range(5):
        alike = len({str(o.said["bits"][step]) for o in outcomes}) == 1
        expect(alike == (step == 4), f"after step {step}: {alike}", outcomes)
    for rank, report in enumerate(found):
        expect(report["averages"] == 4, str(report), outcomes)
        # Both have the same selection in each turn, so a run of equal selections is from both.
        expect(sources(logs[rank]) == [0, 1, 0, 1], str(sources(logs[rank])), outcomes)


def test_ranks_without_data():
    outcomes, found, _, _ = run("joined", 3, "2:2")
    expect(len({r["averages"] for r in found}) == 1, str(found), outcomes)
    expect(found[0]["averages"] == 4, str(found), outcomes)


def test_graphs_that_outlive_an_average():
    _, found, _, _ = run("retained", 2, "1:2")
    expect(all(r["averages"] == 3 for r in found), str(found))


def expect_one_model(outcomes, what):
    expect(len({o.said["bits"] for o in outcomes}) == 1, f"{what}: one model", outcomes)
    expect(all(o.said["off"] < 8 for o in outcomes), f"{what}: near the exact one", outcomes)


def test_session_lost_in_a_training():
    # A step has 6 rounds: 3 for the long parameter, whose rest is in a slice with the next
    # parameter.
    for world, lost_round, results in ((3, 40, 0), (4, 43, 1), (3, 45, 2)):
        what = f"lose={lost_round}:{results} of {world}"
        outcomes, found, _, _ = run("known_long", world, "1:1000", args=("20",),
                                    env={"GRADPLANE_TEST_FAKE": f"lose={lost_round}:{results}"})
        expect_one_model(outcomes, what)
        for rank, report in enumerate(found):
            expect(report["fallbacks"] == 1 and report["failed_ops"] == 0, f"{what}: {report}",
                   outcomes)
            lacked = 1 if 0 < results < world and rank + results < world else 0
            expect(report["recovered_rounds"] == lacked, f"{what}: rank {rank}: {report}", outcomes)
            expect(report["averages"] == 1, f"{what}: {report}", outcomes)


def test_session_lost_where_nobody_wants_averages():
    outcomes, found, _, _ = run("known_long", 3, "2:0", args=("20",),
                                env={"GRADPLANE_TEST_FAKE": "lose=50:1"})
    expect_one_model(outcomes, "never")
    expect(all(r["averages"] == 1 for r in found), str(found), outcomes)


def test_others_that_went_far_ahead():
    # The others go further than any arena remembers. The rank behind continues with its own
    # updates.
    outcomes, found, _, _ = run("known_long", 3, "2:1000", args=("30", "same"),
                                env={"GRADPLANE_TEST_FAKE": "absent=40:50"})
    expect_one_model(outcomes, "far ahead")
    # A third is not exact in floating point.
    expect(all(o.said["off"] < 0.1 for o in outcomes), "no update is lost", outcomes)
    expect([r["recovered_rounds"] for r in found] == [0, 0, 50], str(found), outcomes)
    expect(all(r["failed_ops"] == 0 and r["averages"] == 1 for r in found), str(found), outcomes)


def test_session_lost_in_an_average():
    # With an average at every step, one in three rounds belongs to an average: 3 rounds of fp32 and
    # one of fp64.
    for lost_round in range(40, 52, 4):
        outcomes, found, _, _ = run("known_long", 3, "2:1", args=("12",),
                                    env={"GRADPLANE_TEST_FAKE": f"lose={lost_round}:1"})
        expect_one_model(outcomes, f"lose={lost_round}")
        expect(len({r["averages"] for r in found}) == 1, str(found), outcomes)
        expect(all(r["failed_ops"] == 0 for r in found), str(found), outcomes)


if __name__ == "__main__":
    run_all(globals())
