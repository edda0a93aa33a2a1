# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Tensors on a GPU, over the real daemon. The GPU is the simulated one in GP_TEST_GPU, or else that
of this machine."""

import os
import signal
import subprocess
import sys
import tempfile

from harness import PYTHON, SKIP, TORCH, expect, run_all, run_ranks
from test_daemon import Daemon, expect_survival, run

SOURCE = "device_programs.py"
SIMULATED = os.environ.get("GP_TEST_GPU")
# For one rank: the operations of device_programs.types(), and those of its views.
IN_TYPES = {"all_reduce": 2 * 5 * 3, "broadcast": 5 * 3, "all_gather": 5 * 3}
IN_SHAPES = {"all_reduce": 2, "broadcast": 1, "all_gather": 1}


def skip_without_gpu():
    if SIMULATED:
        return
    code = "import torch; assert torch.cuda.is_available()"
    if subprocess.run([PYTHON, "-c", code], capture_output=True, check=False).returncode != 0:
        print("SKIP: no GPU here, and none simulated (GP_TEST_GPU)")
        sys.exit(SKIP)


# A process that has already imported PyTorch 2.6 cannot add a GPU, so ranks are not forked then.
FORKED = {"source": SOURCE, "forked": not SIMULATED or TORCH < (2, 0)}


def carried(program, world, **options):
    with Daemon() as daemon:
        outcomes, found = run(daemon.socket, program, world, **{**FORKED, **options})
    for report in found:
        expect(report["fallbacks"] == report["failed_ops"] == 0, str(report), outcomes)
    return outcomes, found


def expect_as_gloo(program, world, **options):
    plain = run_ranks(program, world, preload=False, **{**FORKED, **options})
    outcomes, found = carried(program, world, **options)
    expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
           plain + outcomes)
    for report in found:
        expect(report["passed_through"] == {}, str(report), outcomes)
    return found


def test_types_and_shapes():
    expected = {name: count + IN_SHAPES[name] for name, count in IN_TYPES.items()}
    for world in (2, 3):
        for report in expect_as_gloo("types+shapes", world):
            expect(report["carried"] == expected, str(report))


def test_what_is_queued_before_and_after():
    _, found = carried("late", 3)
    for report in found:
        expect(report["carried"] == {"all_reduce": 12, "all_gather": 2}, str(report))


def test_without_a_daemon():
    with tempfile.TemporaryDirectory() as folder:
        outcomes, found = run(folder + "/nobody", "late+futures", 2, **FORKED)
    for report in found:
        expect(report["fallen_back"] == {"all_reduce": 14, "all_gather": 2}, str(report), outcomes)


def test_futures_find_results():
    _, found = carried("futures", 2)
    expect(all(report["carried"] == {"all_reduce": 2} for report in found), str(found))


def test_tensors_that_are_let_go():
    _, found = carried("let_go", 2)
    for report in found:
        expect(report["carried"] == {"all_gather": 5, "all_reduce": 1}, str(report))


def test_a_group_that_outlives_the_gpu():
    _, found = carried("left_open", 2, forked=False)
    expect(all(report["carried"] == {"all_reduce": 1} for report in found), str(found))


def test_gaps():
    for report in expect_as_gloo("gaps", 3):
        expect(report["carried"] == {"all_reduce": 1, "broadcast": 1}, str(report))


def test_more_collectives_than_streams():
    _, found = carried("crowded", 2)
    expect(all(report["carried"] == {"all_reduce": 42} for report in found), str(found))


def test_inference_mode():
    outcomes, found = carried("inference", 3)
    for outcome in outcomes:
        expect(outcome.said["sums"] == [3, 3] and outcome.said["one"] == 2, "sums", outcomes)
        expect(outcome.said["rows"] == [0, 1, 2], "rows", outcomes)
        expect(outcome.said.get("host", [0, 1, 2]) == [0, 1, 2], "of the host", outcomes)
    expect(all(report["passed_through"] == {} for report in found), str(found))


def test_reduce_scatter():
    if TORCH < (2, 6):
        return "its Gloo has none"
    for report in expect_as_gloo("scattered", 3):
        expect(report["carried"] == {"reduce_scatter": 6}, str(report))
    return None


def test_what_gloo_makes_of_other_reductions():
    if TORCH < (2, 11):
        return "its Gloo refuses means"
    for report in expect_as_gloo("averages", 3):
        expect(report["carried"] == {"all_reduce": 2, "reduce_scatter": 1}, str(report))
    return None


def test_ddp():
    if SIMULATED:
        return "a simulated GPU computes nothing"
    for program in ("ddp", "ddp_aside"):
        for report in expect_as_gloo(program, 2):
            expect(report["carried_buckets"] >= 8 * 2, str(report))
    return None


def test_fsdp2():
    if TORCH < (2, 11):
        return "test_sharded.py has it"
    for device in ("cpu",) if SIMULATED else ("cpu", "cuda"):
        for report in expect_as_gloo("fsdp2", 2, args=(device,)):
            expect(report["carried"]["reduce_scatter"] >= 8 * 7, str(report))
            expect(report["carried"]["all_gather"] >= 8 * 7, str(report))
    return None


def test_daemon_killed():
    steps = 1000 if SIMULATED else 30000  # some seconds on a real GPU
    expect_survival(signal.SIGKILL, steps=steps, ops_a_step=1, **FORKED)


if __name__ == "__main__":
    skip_without_gpu()
    run_all(globals())
