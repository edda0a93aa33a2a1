# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Tensors on a GPU, over the real daemon: on the simulated one of GP_TEST_GPU, or, without it, on
that of this machine."""

import os
import signal
import subprocess
import sys

from harness import PYTHON, SKIP, TORCH, expect, run_all, run_ranks
from test_daemon import Daemon, expect_survival, run

SOURCE = "device_programs.py"
# Of one rank, by device_programs.types() and by views.
IN_TYPES = {"all_reduce": 2 * 5 * 3, "broadcast": 5 * 3, "all_gather": 5 * 3}
IN_SHAPES = {"all_reduce": 2, "broadcast": 1, "all_gather": 1}


def skip_without_gpu():
    if os.environ.get("GP_TEST_GPU"):
        return
    code = "import torch; assert torch.cuda.is_available()"
    if subprocess.run([PYTHON, "-c", code], capture_output=True, check=False).returncode != 0:
        print("SKIP: no GPU here, and none simulated (GP_TEST_GPU)")
        sys.exit(SKIP)


def carried(program, world, **options):
    with Daemon() as daemon:
        outcomes, found = run(daemon.socket, program, world, source=SOURCE, **options)
    for report in found:
        expect(report["fallbacks"] == report["failed_ops"] == 0, str(report), outcomes)
    return outcomes, found


def test_types_and_shapes():
    for world in (2, 3):
        plain = run_ranks("types+shapes", world, preload=False, source=SOURCE)
        outcomes, found = carried("types+shapes", world)
        expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
               plain + outcomes)
        for report in found:
            expected = {name: count + IN_SHAPES[name] for name, count in IN_TYPES.items()}
            expect(report["carried"] == expected and report["passed"] == {}, str(report), outcomes)


def test_what_is_queued_before_and_after():
    _, found = carried("late", 3)
    for report in found:
        expect(report["carried"] == {"all_reduce": 12, "all_gather": 2}, str(report))


def test_futures_find_results():
    _, found = carried("futures", 2)
    expect(all(report["carried"] == {"all_reduce": 2} for report in found), str(found))


def test_tensors_that_are_let_go():
    _, found = carried("let_go", 2)
    expect(all(report["carried"] == {"all_gather": 4} for report in found), str(found))


def test_gaps_pass():
    _, found = carried("gaps", 2)
    for report in found:
        expect(report["carried"] == {}, str(report))
        expect(report["passed_through"] == {"overlap": 1}, str(report))


def test_reduce_scatter():
    if TORCH < (2, 6):
        return  # its Gloo has none
    plain = run_ranks("scattered", 3, preload=False, source=SOURCE)
    outcomes, found = carried("scattered", 3)
    expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
           plain + outcomes)
    expect(all(report["carried"] == {"reduce_scatter": 6} for report in found), str(found))


def test_daemon_killed():
    expect_survival(signal.SIGKILL, steps=1000, ops_a_step=1, source=SOURCE)


if __name__ == "__main__":
    skip_without_gpu()
    run_all(globals())
