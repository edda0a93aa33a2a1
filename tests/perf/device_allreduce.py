#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Times all_reduce of CUDA tensors with two ranks on this machine's GPU, in turn with Gloo and with
gradplane over one daemon on its loopback port. Needs a PyTorch with CUDA and an adapter for it:

    GP_TEST_PYTHON=PYTHON GP_TEST_DAEMON=gradplaned GP_TEST_PRELOAD=libgradplane_preload.so \\
        tests/perf/device_allreduce.py

where GP_TEST_FAKE_ADAPTER_DIR is the folder of the adapter.
"""

import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHIM = os.path.join(os.path.dirname(HERE), "shim")
sys.path.insert(0, SHIM)
# Bytes of a call, and number of calls in flight.
SHAPES = ((4, 1), (65536, 1), (1 << 20, 1), (16 << 20, 1), (64 << 20, 1), (4 << 20, 16))
TURNS = 3
ROUNDS = 30
SECONDS = 3


def measure():
    """Runs one rank. Prints the seconds of each shape's rounds, until sums are on the device."""
    import torch
    import torch.distributed as dist
    from rank_basics import RANK, end, say, start
    torch.cuda.set_device(0)
    start()
    for size, in_flight in SHAPES:
        tensors = [torch.ones(size // 4, device="cuda") for _ in range(in_flight)]
        times = []
        begun = time.monotonic()
        for number in range(ROUNDS + 3):
            late = torch.tensor([float(time.monotonic() - begun > SECONDS)])
            dist.broadcast(late, 0)
            if late.item() and number > 6:
                break
            torch.cuda.synchronize()
            dist.barrier()
            at = time.monotonic()
            for work in [dist.all_reduce(t, async_op=True) for t in tensors]:
                work.wait()
            torch.cuda.synchronize()
            times.append(time.monotonic() - at)
            for t in tensors:
                t.fill_(1)
        if RANK == 0:
            say(size=size, in_flight=in_flight, seconds=times[3:])
    end()


def contest():
    from harness import FAKE_ADAPTER_DIR, expect_all_well, run_ranks
    from test_daemon import Daemon
    found = {}
    for _ in range(TURNS):
        for name in ("gloo", "gradplane"):
            with Daemon() as daemon:
                env = {"GRADPLANE_SOCKET": daemon.socket, "GRADPLANE_REQUIRE": "1",
                       "GRADPLANE_ADAPTER_DIR": FAKE_ADAPTER_DIR}
                outcomes = run_ranks("measure", 2, env=env, preload=name == "gradplane",
                                     here=HERE, source=os.path.basename(__file__), forked=False)
            expect_all_well(outcomes, name)
            for said in outcomes[0].all_said:
                shape = (said["size"], said["in_flight"])
                found.setdefault(shape, {}).setdefault(name, []).extend(said["seconds"])
    print(f"{'bytes':>10} {'in flight':>9} {'Gloo p50 us':>12} {'gradplane':>10} {'ratio':>6}")
    for (size, in_flight), of_name in found.items():
        gloo, ours = (1e6 * statistics.median(of_name[n]) for n in ("gloo", "gradplane"))
        print(f"{size:>10} {in_flight:>9} {gloo:>12.0f} {ours:>10.0f} {ours / gloo:>6.2f}")
    print(json.dumps([{"bytes": size, "in_flight": n, **of} for (size, n), of in found.items()]),
          file=sys.stderr)


if __name__ == "__main__":
    measure() if "RANK" in os.environ else contest()
