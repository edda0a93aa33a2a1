# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Further DDP programs: their results are right, and gradplane carried them."""

import os
import tempfile

from harness import FakeDaemon, expect, expect_all_well, reports, run_all, run_ranks

SOURCE = "ddp_programs.py"


def carried(program, world, buckets=True):
    """Runs a program, of which nothing may pass through, fall back or fail. `buckets`: whether
    rounds are of registered buckets. Returns the outcomes and the reports."""
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        env = daemon.env(GRADPLANE_REPORT=os.path.join(folder, "report-%r"))
        outcomes = run_ranks(program, world, env=env, source=SOURCE)
        expect_all_well(outcomes, program)
        found = reports(folder, world)
    for report in found:
        expect(report["fallbacks"] == report["failed_ops"] == 0, str(report), outcomes)
        expect(report["passed"] == {}, str(report), outcomes)
        expect((report["carried_buckets"] > 0) == buckets, str(report), outcomes)
    return outcomes, found


def expect_alike(outcomes):
    said = [o.said["bits"] for o in outcomes]
    expect(all(s == said[0] for s in said), "the replicas have the same bits", outcomes)


def expect_as_gloo(program):
    """Compares with Gloo on two ranks, whose sums are rounded once in either order."""
    plain = run_ranks(program, 2, preload=False, source=SOURCE)
    outcomes, found = carried(program, 2)
    expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
           plain + outcomes)
    return found


def test_bfloat16_hook():
    for world in (2, 4):
        # The hook sums a tensor of its own, which is not one of DDP's buckets.
        outcomes, found = carried("bfloat16_hook", world, buckets=False)
        expect_alike(outcomes)
        for report in found:
            expect(report["carried"]["all_reduce"] >= 6, str(report), outcomes)


def test_join():
    found = expect_as_gloo("joined")
    expect(found[0]["carried"] == found[1]["carried"], "rank 0 goes on for the other", ())
    outcomes, _ = carried("joined", 3)
    expect([o.said["steps"] for o in outcomes] == [4, 6, 8], "steps", outcomes)
    expect_alike(outcomes)


def test_two_models():
    expect_as_gloo("two_models")
    expect_alike(carried("two_models", 4)[0])


if __name__ == "__main__":
    run_all(globals())
