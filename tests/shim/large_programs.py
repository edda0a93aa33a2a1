# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Steps of a large model without the model: the sums of its gradients, all in flight at
once."""

import os
import sys
import time

import torch
import torch.distributed as dist
from rank_basics import RANK, WORLD, end, say, start


def resident_kib(process):
    with open(f"/proc/{process}/status", encoding="utf8") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def thread_names():
    names = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/comm", encoding="utf8") as f:
            names.append(f.read().strip())
    return names


def sums(tensor_count, elements, steps):
    """Prints how long each step took, how much memory was resident after it, and how many elements
    of all sums were wrong. Values are small integers, so every sum is exact. They differ between
    tensors and steps, so exchanged results would show."""
    pattern = (torch.arange(elements, dtype=torch.float32) * 7) % 1009
    tensors = [torch.empty(elements) for _ in range(tensor_count)]
    seconds, own, daemon, wrong = [], [], [], 0
    for step in range(steps):
        for number, t in enumerate(tensors):
            torch.add(pattern, RANK + number + step, out=t)
        dist.barrier()
        begin = time.perf_counter()
        for work in [dist.all_reduce(t, async_op=True) for t in tensors]:
            work.wait()
        seconds.append(time.perf_counter() - begin)
        for number, t in enumerate(tensors):
            # In place, because a copy would also be resident.
            t.sub_(pattern, alpha=WORLD).sub_(WORLD * (number + step) + sum(range(WORLD)))
            wrong += int(t.count_nonzero())
        own.append(resident_kib("self"))
        daemon.append(resident_kib(os.environ["GP_TEST_DAEMON_PID"]))
    say(seconds=seconds, resident_kib=own, daemon_kib=daemon, wrong=wrong,
        copying=thread_names().count("gp-copy"))


def main():
    torch.set_num_threads(1)
    start()
    sums(*map(int, sys.argv[2:]))
    end()


if __name__ == "__main__":
    main()
