# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Without a daemon everything works as without gradplane, and one line says that."""

import json
import os
import tempfile

from harness import (ADAPTER, EXACT, FAKE_ADAPTER_DIR, expect, expect_all_well, reports, run_all,
                     run_ranks)

NO_DAEMON = {"GRADPLANE_ADAPTER_DIR": FAKE_ADAPTER_DIR, "GRADPLANE_SOCKET": "/nonexistent/socket"}


def expect_as_gloo(program, world=2):
    plain = run_ranks(program, world, preload=False)
    expect_all_well(plain, f"{program} over plain Gloo")
    ours = run_ranks(program, world, env=NO_DAEMON)
    expect_all_well(ours, f"{program} with the shim and no daemon")
    expect([o.all_said for o in plain] == [o.all_said for o in ours], "as Gloo's", plain + ours)
    for outcome in ours:
        count = outcome.err.count("goes through Gloo")
        expect(count == 1, f"{program}: announced once, not {count} times", ours)


def test_everything_is_gloos():
    expect_as_gloo("ddp+" + EXACT, world=2)
    expect_as_gloo("ddp+" + EXACT, world=4)


def test_bfloat16_is_summed():
    # Gloo of 1.13 refuses it, but gradplane carries it, and a fallback ends no training.
    ours = run_ranks("bfloat16", 4, env=NO_DAEMON)
    for outcome in ours:
        expect(outcome.said == {"error": "", "value": 10.0}, "1 + 2 + 3 + 4", ours)


def test_under_torchs_own_wrapper():
    ours = run_ranks("dtypes+ddp", env={**NO_DAEMON, "TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    expect_all_well(ours, "TORCH_DISTRIBUTED_DEBUG=DETAIL")


def test_wait_in_callback():
    expect_all_well(run_ranks("wait_in_callback", env=NO_DAEMON), "waiting inside a callback")


def test_exit_without_wait():
    expect_all_well(run_ranks("no_wait_exit", env=NO_DAEMON), "an exit beside an operation")


def test_disabled():
    ours = run_ranks("dtypes", env={**NO_DAEMON, "GRADPLANE_DISABLE": "1"})
    expect_all_well(ours, "GRADPLANE_DISABLE")
    expect(all("gradplane" not in o.err for o in ours), "nothing is said", ours)


def test_required():
    for program in ("repeat_failing", "repeat_failing_copies"):
        ours = run_ranks(program, env={**NO_DAEMON, "GRADPLANE_REQUIRE": "1"})
        expect_all_well(ours, "GRADPLANE_REQUIRE")
        for outcome in ours:
            for error in outcome.said["errors"]:
                cause = "rank 0 reports: no daemon: /nonexistent/socket"
                expect(cause in error and "REQUIRE" in error,
                       "every rank and every operation names the cause", ours)


def test_required_by_one_rank_alone():
    ours = run_ranks("repeat_failing", env=NO_DAEMON, rank_env={1: {"GRADPLANE_REQUIRE": "1"}})
    expect(all("no daemon" in e for o in ours for e in o.said["errors"]), "all fail alike", ours)


def test_required_without_adapter():
    env = {"GRADPLANE_ADAPTER_DIR": "/nonexistent", "GRADPLANE_REQUIRE": "1"}
    for program in ("repeat_failing", "repeat_failing_copies"):
        ours = run_ranks(program, env=env)
        expect_all_well(ours, "no adapter and GRADPLANE_REQUIRE")
        expect(all("no adapter for libtorch" in e for o in ours for e in o.said["errors"]),
               f"an exception names the cause: {program}", ours)


def test_no_adapter():
    ours = run_ranks("dtypes", env={"GRADPLANE_ADAPTER_DIR": "/nonexistent"})
    expect_all_well(ours, "no adapter")
    version = ADAPTER.removeprefix("libgradplane_torch_").removesuffix(".so")
    for outcome in ours:
        expect(outcome.err.count(f"no adapter for libtorch {version}") == 1, "said once", ours)


def test_a_rank_without_the_shim():
    ours = run_ranks("groups", 4, env=NO_DAEMON, rank_env={2: {"LD_PRELOAD": ""}})
    expect_all_well(ours, "one rank without the preload object")
    expect(ours[0].err.count("run without gradplane") == 1, "a group with that rank says so", ours)
    # Ranks 1 and 3 also have a group of their own, which lacks a daemon. A process says the cause
    # that it finds first.
    for rank in (1, 3):
        causes = [ours[rank].err.count(c) for c in ("run without gradplane", "no daemon")]
        expect(sum(causes) == 1, f"rank {rank} says one cause", ours)
    expect(len({o.said["bits"] for o in (ours[0], ours[2])}) == 1, "sums agree", ours)


def test_timeout_is_gloos():
    ours = run_ranks("late_peer", env=NO_DAEMON)
    expect("Timed out waiting 2000ms" in ours[0].said["error"], "Gloo's words", ours)
    expect(ours[0].said["again"] != "", "the group stays broken", ours)
    expect(ours[0].said["seconds"] < 7, "one timeout, not two", ours)


def test_peer_that_exits():
    ours = run_ranks("peer_exits", env=NO_DAEMON)
    expect_all_well(ours, "a peer that leaves")
    expect("RuntimeError" in ours[0].said["error"], "the next operation fails", ours)


def test_report_and_unknown_variables():
    with tempfile.TemporaryDirectory() as folder:
        env = {**NO_DAEMON, "GRADPLANE_REPORT": os.path.join(folder, "report-%r"),
               "GRADPLANE_REQIURE": "1", "GRADPLANE_VERBOSE": "1",
               "GRADPLANE_ATTACH_TIMEOUT_MS": "soon", "GRADPLANE_COPY_THREADS": "17"}
        ours = run_ranks("ops_and_shapes", env=env)
        expect_all_well(ours, "a report")
        for rank, report in enumerate(reports(folder, 2)):
            expect(report["carried_ops"] == 0 and report["fallbacks"] == 1, str(report), ours)
            expect(report["fallen_back"] == {"all_reduce": 10, "broadcast": 1,
                                            "all_gather": 1}, str(report), ours)
            expect(report["passed_through"] ==
                   {"reduce_op": 1, "element_type": 1}, str(report), ours)
            expect("no daemon" in report["fallback_cause"], str(report), ours)
            expect(report["rank"] == str(rank), json.dumps(report), ours)
        for outcome in ours:
            expect(outcome.err.count("GRADPLANE_REQIURE") == 1, "the misspelt one is named", ours)
            expect('GRADPLANE_ATTACH_TIMEOUT_MS is "soon"' in outcome.err, "the bad one too", ours)
            expect('GRADPLANE_COPY_THREADS is "17"; expected 1 to 16' in outcome.err,
                   "and too many threads", ours)
            expect('"carried_ops": 0' in outcome.err, "GRADPLANE_VERBOSE prints the counters", ours)


if __name__ == "__main__":
    run_all(globals())
