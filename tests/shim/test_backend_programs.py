#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Programs other than DDP that ask for the backend "gradplane" by name, without a preloaded shim:
ZeRO, FSDP, tensor parallelism and groups for each quorum. PyTorch 2 also takes "cpu:gradplane"."""

import os
import tempfile

from harness import (EXACT, TORCH, FakeDaemon, exact_counts, expect, expect_all_well, reports,
                     run_all, run_ranks)
from test_backend import by_name, said
from test_sharded import FSDP1, FSDP2, TENSOR_PARALLEL
from test_sharded import SOURCE as SHARDED

FOR_PROCESSORS = {"GP_TEST_BACKEND": "cpu:gradplane"}
QUORUMS = 24


def expect_carried(found, counts, outcomes, passed=None):
    for report in found:
        expect(report["fallbacks"] == 0 and report["failed_ops"] == 0, str(report), outcomes)
        expect(report["carried"] == counts, f"{report}, not {counts}", outcomes)
        expect(report["passed"] == (passed or {}), str(report), outcomes)


def expect_as_gloo(program, counts, source="rank_programs.py", env=None, passed=None):
    plain = run_ranks(program, preload=False, source=source)
    outcomes, found = by_name(program, source=source, env=env)
    expect(said(plain) == said(outcomes), "as Gloo's", plain + outcomes)
    expect_carried(found, counts, outcomes, passed)


def carried_by_preload(program):
    """What the preloaded shim carries of a program of two ranks."""
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        env = daemon.env(GRADPLANE_REPORT=os.path.join(folder, "report-%r"))
        expect_all_well(run_ranks(program, env=env), program)
        return reports(folder, 2)[0]["carried"]


def test_a_sharded_optimizer():
    program = "ddp_start+zero_training"
    counts = carried_by_preload(program)
    expect(set(counts) == {"all_reduce", "broadcast", "all_gather"}, str(counts))
    expect_as_gloo(program, counts)


def test_sharded_parameters():
    if TORCH < (2, 6):
        return "FSDP needs PyTorch 2.6"
    expect_as_gloo("fsdp1", FSDP1, SHARDED)
    if TORCH < (2, 11):
        expect_as_gloo("fsdp2", FSDP2, SHARDED)
    expect_as_gloo("tensor_parallel", TENSOR_PARALLEL, SHARDED, passed={"scatter": 1})
    return None


def test_groups_for_each_quorum():
    outcomes, found = by_name("quorums", 3, args=(str(QUORUMS),), source="quorum_programs.py")
    for rank, (outcome, report) in enumerate(zip(outcomes, found)):
        expect(outcome.said["before"] == outcome.said["after"], "nothing is left", outcomes)
        absent = sum(number // 2 % 3 == rank for number in range(1, QUORUMS, 2))
        expect_carried([report], {"all_reduce": 3 * (QUORUMS + 2 - absent)}, outcomes)


def test_for_processors():
    if TORCH < (2, 0):
        return "PyTorch 1.13 knows no backends by device"
    outcomes, found = by_name(EXACT, 2, env=FOR_PROCESSORS)
    plain = run_ranks(EXACT, preload=False)
    expect(said(plain) == said(outcomes), "as Gloo's", plain + outcomes)
    for report in found:
        expect(report["carried"] == exact_counts(2), str(report), outcomes)
    if TORCH >= (2, 6):
        expect_as_gloo("fsdp1", FSDP1, SHARDED, env=FOR_PROCESSORS)
    return None


if __name__ == "__main__":
    run_all(globals())
