#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Programs that ask for the backend "gradplane" by name, over the fake daemon: without a preloaded
shim, and with one."""

import os
import shutil
import tempfile

from harness import (EXACT, PRELOAD, FakeDaemon, exact_counts, expect, expect_all_well, reports,
                     run_all, run_ranks)

PACKAGE = os.environ["GP_TEST_FAKE_BACKEND"]
BY_NAME = {"GP_TEST_BACKEND": "gradplane", "PYTHONPATH": PACKAGE}


def said(outcomes):
    """The output of all ranks. The backend's name in PyTorch's errors is replaced by Gloo's."""
    return [str(o.all_said).replace("ProcessGroup gradplane", "ProcessGroup gloo")
            for o in outcomes]  # fmt: skip


def by_name(program, world=2, env=None, rank_env=None, args=(), falls_back=False,
            source="rank_programs.py"):
    """Runs a program and returns the outcomes and the reports of all ranks."""
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        own = daemon.env(GRADPLANE_REPORT=os.path.join(folder, "report-%r"),
                         **{**BY_NAME, **(env or {})})  # fmt: skip
        outcomes = run_ranks(program, world, env=own, rank_env=rank_env, args=args, preload=False,
                             source=source, forked=False)  # fmt: skip
        expect_all_well(outcomes, program)
        found = reports(folder, world)
    for outcome in outcomes:
        expect(("goes through Gloo" in outcome.err) == falls_back, "a fallback", outcomes)
    return outcomes, found


def expect_as_gloo(program, world, counts):
    plain = run_ranks(program, world, preload=False)
    outcomes, found = by_name(program, world)
    expect(said(plain) == said(outcomes), "as Gloo's", plain + outcomes)
    for report in found:
        expect(report["fallbacks"] == 0 and report["failed_ops"] == 0, str(report), outcomes)
        expect(report["carried"] == counts, f"{report}, not {counts}", outcomes)


def test_programs_are_carried():
    for world in (2, 4):
        expect_as_gloo(EXACT, world, exact_counts(world))


def test_training_is_carried_without_names():
    outcomes, found = by_name("ddp", 3)
    expect(len({str(o.all_said) for o in outcomes}) == 1, "replicas have the same bits", outcomes)
    for report in found:
        expect(report["carried"]["all_reduce"] > 0, str(report), outcomes)
        # This backend does not learn what DDP knows of its gradients, so every sum is exact.
        expect(report["carried_buckets"] == 0, str(report), outcomes)


def test_groups_end_with_their_sessions():
    outcomes, _ = by_name("short_groups", source="quorum_programs.py")
    for outcome in outcomes:
        threads = outcome.said["threads"]
        expect(threads[-1] <= threads[0], str(threads), outcomes)


def test_session_that_is_lost():
    outcomes, found = by_name("long_run", 3, args=("16",), falls_back=True,
                              env={"GRADPLANE_TEST_FAKE": "lose=7:1"})  # fmt: skip
    expect(len({o.said["bits"] for o in outcomes}) == 1, "the same results", outcomes)
    for report in found:
        expect(report["fallbacks"] == 1 and report["carried_ops"] > 0, str(report), outcomes)


def test_without_a_daemon():
    plain = run_ranks("dtypes", preload=False)
    nobody = {**BY_NAME, "GRADPLANE_SOCKET": "/nonexistent/gradplane.sock"}
    ours = run_ranks("dtypes", preload=False, forked=False, env=nobody)
    expect_all_well(ours, "no daemon")
    expect(said(plain) == said(ours), "as Gloo's", plain + ours)
    for outcome in ours:
        expect(outcome.err.count("goes through Gloo") == 1, "announced once", ours)


def test_disabled():
    with tempfile.TemporaryDirectory() as folder:
        ours = run_ranks("dtypes", preload=False, forked=False,
                         env={**BY_NAME, "GRADPLANE_DISABLE": "1",
                              "GRADPLANE_REPORT": os.path.join(folder, "report-%r")})  # fmt: skip
        expect_all_well(ours, "GRADPLANE_DISABLE")
        expect(os.listdir(folder) == [], "gradplane has no part in it", ours)
    expect(all("gradplane" not in o.err for o in ours), "nothing is said", ours)


def test_preloaded_as_well():
    outcomes, found = by_name("ddp", env={"LD_PRELOAD": PRELOAD})
    for report in found:
        # Carried once, and with the bucket information that only the preloaded shim has.
        expect(report["carried_buckets"] > 0 and report["fallbacks"] == 0, str(report), outcomes)
        expect(report["passed"] == {}, str(report), outcomes)


def test_beside_a_preloaded_rank():
    outcomes, found = by_name("dtypes", rank_env={1: {"LD_PRELOAD": PRELOAD}})
    expect(len({str(o.all_said) for o in outcomes}) == 1, "the same results", outcomes)
    expect([r["carried"] for r in found] == [{"all_reduce": 25}] * 2, str(found), outcomes)


def test_no_module_for_this_torch():
    with tempfile.TemporaryDirectory() as folder:
        package = os.path.join(folder, "gradplane")
        os.mkdir(package)
        for name in ("__init__.py", "torch.py"):
            shutil.copy(os.path.join(PACKAGE, "gradplane", name), package)
        open(os.path.join(package, "_torch_0_4.cpython-39.so"), "w").close()
        ours = run_ranks("dtypes", 1, preload=False, forked=False,
                         env={**BY_NAME, "PYTHONPATH": folder})  # fmt: skip
        expect(ours[0].code == 1, "it ends", ours)
        for words in ("ImportError: gradplane has no module for PyTorch", "for PyTorch 0.4.",
                      "preloaded"):  # fmt: skip
            expect(words in ours[0].err, words, ours)


if __name__ == "__main__":
    run_all(globals())
