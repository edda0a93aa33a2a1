# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Process groups as torchft makes them, when ranks join and leave: one for each quorum, on a
prefix of one store, without init_process_group()."""

import datetime
import gc
import os
import subprocess
import sys

import torch
import torch.distributed as dist
from rank_basics import BACKEND, RANK, WORLD, import_backend, let_gloo_free, say, start

TIMEOUT = datetime.timedelta(seconds=60)
FIRST_QUORUMS = 6  # during which libraries allocate what they keep


def held():
    """The open files, threads and shared memory mappings of the process."""
    gc.collect()
    let_gloo_free()
    with open("/proc/self/maps", encoding="utf8") as f:
        shared = sum(1 for line in f if line.split()[1].endswith("s"))
    files, threads = (len(os.listdir("/proc/self/" + kind)) for kind in ("fd", "task"))
    return {"files": files, "threads": threads, "shared": shared}


def make_group(store, rank, size):
    """A group of Gloo, or of the backend whose name is asked for, as PyTorch itself makes it."""
    if BACKEND == "gloo":
        return dist.ProcessGroupGloo(store, rank, size, TIMEOUT)
    import_backend()
    return dist.Backend._plugins[BACKEND.upper()].creator_fn(store, rank, size, TIMEOUT)


def train(store, number, ranks):
    group = make_group(dist.PrefixStore(f"quorum/{number}", store), ranks.index(RANK), len(ranks))
    for step in range(3):
        t = torch.full((1000,), float(RANK + step))
        group.allreduce([t]).wait()
        assert float(t[0]) == sum(ranks) + step * len(ranks), f"quorum {number}: {t[0]}"


def short_groups():
    """Counts the threads of this process after the end of each of several groups."""
    start()
    threads = []
    for _ in range(5):
        group = dist.new_group(list(range(WORLD)))
        dist.all_reduce(torch.ones(3), group=group)
        dist.destroy_process_group(group)
        del group
        gc.collect()
        threads.append(len(os.listdir("/proc/self/task")))
    say(threads=threads)


def make_store(is_server):
    other = {} if torch.__version__ < "2" else {"use_libuv": False}
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), WORLD,
                         is_server, TIMEOUT, **other)


def dying_rank():
    """Connects a group as rank 1 of a quorum with the shim does, and ends before the ranks have
    agreed that they all have. It runs without the shim."""
    store = dist.PrefixStore(f"torn/{sys.argv[2]}", make_store(False))
    store.set("gradplane/hello/9/1", "1")  # as GlooSideGroup::say_hello()
    group = dist.ProcessGroupGloo(store, 1, 2, TIMEOUT)
    side = dist.ProcessGroupGloo(dist.PrefixStore("gradplane/side", store), 1, 2, TIMEOUT)
    assert group.size() == side.size() == 2


def torn_quorums():
    """In each quorum rank 1 dies while the group is made."""
    store = make_store(RANK == 0)
    errors = 0
    for number in range(int(sys.argv[2])):
        if RANK == 1:
            plain = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
            subprocess.run([sys.executable, __file__, "dying_rank", str(number)], env=plain,
                           check=True)
            continue
        try:
            dist.ProcessGroupGloo(dist.PrefixStore(f"torn/{number}", store), 0, 2, TIMEOUT)
        except RuntimeError:
            errors += 1
        if number == 0:
            before = held()
    if RANK == 0:
        say(errors=errors, before=before, after=held())
    else:
        say(done=True)
    train(store, "end", [0, 1])


def quorums():
    """Each rank in turn is missing from every other quorum."""
    store = make_store(RANK == 0)
    everyone = list(range(WORLD))
    for number in range(int(sys.argv[2])):
        absent = number // 2 % WORLD if number % 2 else None
        if RANK != absent:
            train(store, number, [rank for rank in everyone if rank != absent])
        if number == FIRST_QUORUMS:
            before = held()
    train(store, "last", everyone)
    say(before=before, after=held())
    train(store, "end", everyone)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    let_gloo_free()
