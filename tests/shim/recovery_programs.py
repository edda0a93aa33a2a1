# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Programs during which a daemon may die and come back."""

import hashlib
import os
import sys
import time

import torch
import torch.distributed as dist
from rank_basics import RANK, WORLD, bits, say, start


def long_step(step, digest):
    """Three small operations and one of several rounds. The digest gets the sums. From each of them
    GP_TEST_ABSENT ranks may be missing."""
    least = WORLD - int(os.environ.get("GP_TEST_ABSENT", "0"))
    tensors = [torch.full((200 + 13 * i,), 1.0 / (3 + RANK + step + i)) for i in range(3)]
    tensors.append(torch.full((50000,), 1.0 / (7 + RANK + step)))
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for work in works:
        work.wait()
    for t in tensors:
        digest.update(bits(t).encode())
        first = 7 + step if t.numel() == 50000 else 3 + step + (t.numel() - 200) // 13
        wants = [sum(1.0 / (first + r) for r in range(n)) for n in range(least, WORLD + 1)]
        assert bool(sum((t - want).abs() < 1e-5 for want in wants).all()), (step, t, wants)


def long_run():
    """Runs as many steps as the argument says."""
    start()
    digest = hashlib.sha256()
    for step in range(int(sys.argv[2])):
        long_step(step, digest)
    say(bits=digest.hexdigest())


def carried_again():
    """Whether rank 0 sees that the fake daemon has a job. The answer is the same on all ranks."""
    jobs = [n for n in os.listdir(os.environ["GRADPLANE_SOCKET"]) if n.startswith("job-")]
    seen = torch.tensor([len(jobs) if RANK == 0 else 0], dtype=torch.uint8)
    dist.all_reduce(seen)  # passes through to Gloo
    return bool(seen[0])


def daemon_returns():
    """The fake daemon is dead for one step of 31. The program continues until it is carried again,
    and for ten more steps. A step takes as many seconds as the argument says."""
    pause = float(sys.argv[2])
    dead = os.path.join(os.environ["GRADPLANE_SOCKET"], "dead")
    start()
    digest = hashlib.sha256()
    for step in range(30):
        long_step(step, digest)
    if RANK == 0:
        open(dead, "w").close()
    long_step(30, digest)
    if RANK == 0:
        os.remove(dead)
    deadline = time.monotonic() + 60
    step = 31
    while not carried_again() and time.monotonic() < deadline:
        time.sleep(pause)
        long_step(step, digest)
        step += 1
    for more in range(10):
        long_step(step + more, digest)
    say(bits=digest.hexdigest())
