# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Steps of a large model over one real daemon: 1 GB of gradients, and 10 000 tensors, all in flight
at once. The sums must be exact, and no step may leak memory. Run by hand, it prints how long a step
took and how much memory was resident."""

import os
import sys

from harness import SKIP, expect, run_all
from test_daemon import Daemon, run

WORLD = 2
STEPS = int(os.environ.get("GP_TEST_STEPS", "4"))
NEEDED_KIB = 5 << 20  # two ranks, each with gradients, torch and a pattern, and a reserve
# Allocators keep or return some pages from one step to the next.
SLACK_KIB = 4 << 10


def skip_without_memory():
    with open("/proc/meminfo", encoding="utf8") as f:
        available = next(int(line.split()[1]) for line in f if line.startswith("MemAvailable:"))
    if available < NEEDED_KIB:
        print(f"SKIP: {available >> 10} MiB of memory are available, and {NEEDED_KIB >> 10} needed")
        sys.exit(SKIP)


def expect_large_steps(tensors, elements, config="", copying=1):
    with Daemon(config) as daemon:
        env = {"GP_TEST_DAEMON_PID": str(daemon.process.pid),
               "GRADPLANE_COPY_THREADS": str(copying)}
        outcomes, found = run(daemon.socket, "sums", WORLD, env=env, source="large_programs.py",
                              args=(str(tensors), str(elements), str(STEPS)), timeout=240)
    for rank, (outcome, report) in enumerate(zip(outcomes, found)):
        said = outcome.said
        seconds = [round(s, 3) for s in said["seconds"]]
        print(f"{tensors} tensors, rank {rank}: steps of {seconds} s, "
              f"resident {[k >> 10 for k in said['resident_kib']]} MiB, "
              f"daemon {[k >> 10 for k in said['daemon_kib']]} MiB")
        expect(said["wrong"] == 0, "every element of every sum is right", outcomes)
        # The progress thread is the first that copies.
        expect(said["copying"] == copying - 1, f"{said['copying']} more threads copy", outcomes)
        for resident in (said["resident_kib"], said["daemon_kib"]):
            expect(resident[-1] <= resident[0] + SLACK_KIB, "memory is steady", outcomes)
        expect(report["carried"]["all_reduce"] == STEPS * tensors, str(report), outcomes)
        expect(report["carried_bytes"] == STEPS * tensors * elements * 4, str(report), outcomes)
        for none in ("fallbacks", "fallen_back_ops", "partial_rounds"):
            expect(report[none] == 0, str(report), outcomes)


def test_a_gigabyte_of_gradients():
    expect_large_steps(tensors=40, elements=(25 << 20) // 4)  # the default size of DDP's buckets


def test_rounds_that_three_threads_copy():
    expect_large_steps(tensors=10, elements=(25 << 20) // 4, copying=3,
                       config="rounds: {bytes: 4 MiB}\n")


def test_ten_thousand_tensors():
    expect_large_steps(tensors=10_000, elements=100)


if __name__ == "__main__":
    skip_without_memory()
    run_all(globals())
