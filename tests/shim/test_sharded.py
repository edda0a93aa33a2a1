# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Programs whose ranks keep shards have the same results as with Gloo, and gradplane carries all of
their collectives."""

import os
import sys
import tempfile

from harness import (SKIP, TORCH, FakeDaemon, expect, expect_all_well, reports, run_all, run_ranks,
                     submitted_elements)

SOURCE = "sharded_programs.py"


def carried(program, world, env=None, args=(), well=True):
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        own = daemon.env(GRADPLANE_REPORT=os.path.join(folder, "report-%r"), **(env or {}))
        outcomes = run_ranks(program, world, env=own, args=args, source=SOURCE)
        if well:
            expect_all_well(outcomes, program)
        return outcomes, reports(folder, world)


def expect_as_gloo(program, world, counts, passed=None):
    plain = run_ranks(program, world, preload=False, source=SOURCE)
    outcomes, found = carried(program, world)
    expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
           plain + outcomes)
    for report in found:
        expect(report["fallbacks"] == 0 and report["failed_ops"] == 0, str(report), outcomes)
        expect(report["carried"] == counts, f"{report['carried']}, not {counts}", outcomes)
        expect(report["passed"] == (passed or {}), str(report["passed"]), outcomes)
    return found


def test_reduce_scatter():
    # Six types in five sizes, rows into columns, two at once, and an asynchronous one.
    for world in (2, 3):
        expect_as_gloo("reduce_scatters", world, {"reduce_scatter": 34})


def test_gathering_into_one_tensor():
    expect_as_gloo("gathers_into_tensors", 3, {"all_gather": 8})


def test_bytes_are_those_of_the_operation():
    # A sum of all shards would send the same bytes, but each rank would also receive all of them.
    whole, summed = 2 * (100 + 16384 * 3 + 7 + 9), 7  # of four bytes, and of eight
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        _, found = carried("scattered_run", 2, {"GRADPLANE_TEST_SUBMISSIONS": log}, args=("1",))
        for rank, report in enumerate(found):
            expect(report["carried"] == {"reduce_scatter": 3, "all_reduce": 1}, str(report))
            expect(report["carried_bytes"] == 4 * whole + 8 * summed, str(report))
            submitted = submitted_elements(f"{log}.{rank}")
            expect(submitted == {"reduce_scatter": whole, "all_reduce": summed}, str(submitted))


def test_means_are_gloos_sums_unless_asked():
    outcomes, _ = carried("means", 2)
    for outcome in outcomes:
        expect(outcome.said == {"value": 3.0, "again": 3.0}, "Gloo's sum", outcomes)
        expect(outcome.err.count("pytorch issue 162338") == 1, "said once", outcomes)
    outcomes, _ = carried("means", 2, env={"GRADPLANE_HEED_REDUCE_OP": "1"})
    for outcome in outcomes:
        expect(outcome.said == {"value": 1.5, "again": 1.5}, "the mean", outcomes)
        expect("162338" not in outcome.err, "nothing to say", outcomes)


def test_other_reductions_are_gloos_sums_unless_asked():
    expect_as_gloo("largest_and_smallest", 2, {"reduce_scatter": 3})
    outcomes, _ = carried("largest_and_smallest", 2, env={"GRADPLANE_HEED_REDUCE_OP": "1"})
    for rank, outcome in enumerate(outcomes):
        given = [[(3 * i + 17 * r) % 113 for i in range(7 * rank, 7 * rank + 7)] for r in range(2)]
        expect(outcome.said == {"largest": [max(pair) for pair in zip(*given)],
                                "smallest": [min(pair) for pair in zip(*given)],
                                "product": [a * b for a, b in zip(*given)]}, "as asked", outcomes)


def test_fsdp():
    expect_as_gloo("fsdp1", 2, FSDP1)


def test_fsdp2():
    if TORCH >= (2, 11):
        return "test_devices.py has it"
    expect_as_gloo("fsdp2", 2, FSDP2)
    return None


def test_tensor_parallel():
    # distribute_tensor() scatters, and that is never carried.
    expect_as_gloo("tensor_parallel", 2, TENSOR_PARALLEL, passed={"scatter": 1})


def test_session_lost_in_a_reduce_scatter():
    # A step has 6 rounds. Some ranks have their results, which no other rank has.
    for lost_round, results in ((0, 0), (1, 1), (2, 2), (8, 1), (14, 2)):
        outcomes, found = carried("scattered_run", 3, args=("8",),
                                  env={"GRADPLANE_TEST_FAKE": f"lose={lost_round}:{results}"})
        for report in found:
            what = f"lose={lost_round}:{results}: {report}"
            expect(report["fallbacks"] == 1 and report["failed_ops"] == 0, what, outcomes)
            done = [report["carried"].get(kind, 0) + report["fallen_back"].get(kind, 0)
                    for kind in ("reduce_scatter", "all_reduce")]
            expect(done == [24, 8], what, outcomes)


FSDP1 = {"reduce_scatter": 6, "all_gather": 6}
# Six steps with five blocks, and the whole of ten parameters at the end.
FSDP2 = {"reduce_scatter": 6 * 5, "all_gather": 6 * 5 + 10}
TENSOR_PARALLEL = {"reduce_scatter": 1, "all_reduce": 1}


if __name__ == "__main__":
    if TORCH < (2, 6):
        print("SKIP: Gloo of this PyTorch has no reduce_scatter; it needs 2.6")
        sys.exit(SKIP)
    run_all(globals())
