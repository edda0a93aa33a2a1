# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Measures how far two cores are from each other now. The host of a virtual machine moves its
virtual CPUs, and then a transfer between two of them may take several times as long."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/tests/perf/core_distance"
LIMIT_SECONDS = 30
# By the time of a cache line there and back. Times of 80 ns, 200 ns and 400 ns were seen.
PLACES = ((130, "under 130 ns apart"), (300, "130 to 300 ns apart"))
FARTHEST = "over 300 ns apart"
UNKNOWN = "that moved"
TRIES = 4


def place(first, second):
    done = subprocess.run([str(PROGRAM), str(first), str(second)], capture_output=True, text=True,
                          check=True, timeout=LIMIT_SECONDS)  # fmt: skip
    ns = float(done.stdout)
    return next((name for limit, name in PLACES if ns < limit), FARTHEST)


def measure(first, second, sample):
    """Returns the place of the cores, and the result of `sample()`.

    If the place has changed meanwhile, it measures again, up to TRIES times.
    """
    for _ in range(TRIES):
        before = place(first, second)
        found = sample()
        if place(first, second) == before:
            return before, found
    return UNKNOWN, found
