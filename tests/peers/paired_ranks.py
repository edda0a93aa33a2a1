#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""One rank of an unmodified PyTorch program that times all_reduces over Gloo, or over what replaces
Gloo. It needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as any such program.

Each command is a line of JSON, and each answer, too:

  {"bytes": N, "rounds": R}               one all_reduce after the other; answers seconds of each
  {"bytes": N, "rounds": R, "every_ms": P}  one in each period of the clock that ranks share
  {"bytes": N, "rounds": R, "depth": D}   D all_reduces in flight; answers seconds of all
  {"bytes": N, ..., "depth": D, "repeats": T}  the same T times; answers seconds of each time
"""

import json
import sys
import time

import torch
import torch.distributed as dist

LAST_PART_SECONDS = 0.0003


def await_period(period_s):
    """Returns at the next multiple of the period. So all ranks go on at the same moment. The end
    of a sleep is up to 0.1 ms late, so the last part of the time is spent without one."""
    begin = (time.monotonic() // period_s + 1) * period_s
    time.sleep(max(0, begin - time.monotonic() - LAST_PART_SECONDS))
    while time.monotonic() < begin:
        pass


def one_after_another(data, rounds, period_s):
    """Sums one tensor in place. It is filled again before each sum, so that nothing overflows."""
    seconds = []
    for _ in range(rounds):
        data.fill_(1)
        if period_s:
            await_period(period_s)
        begin = time.perf_counter()
        dist.all_reduce(data)
        seconds.append(time.perf_counter() - begin)
    return seconds


def side_by_side(tensors, rounds):
    begin = time.perf_counter()
    for first in range(0, rounds, len(tensors)):
        chosen = tensors[: rounds - first]
        for one in chosen:
            one.fill_(1)
        for work in [dist.all_reduce(one, async_op=True) for one in chosen]:
            work.wait()
    return time.perf_counter() - begin


def answer(command):
    rounds, depth = command["rounds"], command.get("depth", 1)
    tensors = [torch.ones(command["bytes"] // 4) for _ in range(depth)]
    dist.barrier()
    if depth > 1:
        seconds = [side_by_side(tensors, rounds) for _ in range(command.get("repeats", 1))]
    else:
        seconds = one_after_another(tensors[0], rounds, command.get("every_ms", 0) / 1000)
    sums = [bool((one == dist.get_world_size()).all()) for one in tensors[:rounds]]
    return {"seconds": seconds, "correct": all(sums)}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    dist.all_reduce(torch.zeros(1))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
