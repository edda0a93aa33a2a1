# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Torch programs in which the last rank falls behind after a few operations."""

import datetime
import os
import sys
import threading

import torch
import torch.distributed as dist
from waiting import wait_until

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
OTHERS = [os.environ["GP_TEST_FOLDER"] + f"/flag-{rank}" for rank in range(WORLD - 1)]
LATE = RANK == WORLD - 1
BEFORE, BEHIND = 3, 9


def wait_for_others():
    if LATE:
        wait_until(lambda: all(map(os.path.exists, OTHERS)))


def behind():
    """The last rank continues when all others have logged that they wait for it."""
    if not LATE:
        said = (lambda: b"has waited" in os.pread(2, 65536, 0), OTHERS[RANK])
        threading.Thread(target=wait_until, args=said, daemon=True).start()
    for step in range(BEFORE + BEHIND):
        if step == BEFORE:
            wait_for_others()
        dist.all_reduce(torch.ones(10))


def never():
    """The last rank continues when all others have given up."""
    try:
        for step in range(BEFORE + BEHIND):
            if step == BEFORE:
                wait_for_others()
            dist.all_reduce(torch.ones(10))
    except RuntimeError as e:
        print("gave up:", e, file=sys.stderr, flush=True)
    if not LATE:
        open(OTHERS[RANK], "w").close()


def has_spoken_or_gone(flag):
    """Whether the process whose id is in the file has logged that it waits, or has ended."""
    try:
        with open(flag, encoding="utf8") as f, open(f"/proc/{f.read()}/fd/2", "rb") as said:
            return b"has waited" in said.read()
    except OSError:
        return os.path.exists(flag)


def tell_others(name):
    with open(name + "-new", "w", encoding="utf8") as f:
        f.write(str(os.getpid()))
    os.rename(name + "-new", name)


def die_when_others_are_done():
    """The first rank ends the daemon when each of the others has all of its sums.

    A rank that lacked a sum would wait in the recovery for the last rank, which waits for the log
    of that rank.
    """
    open(OTHERS[RANK] + "-done", "w").close()
    if RANK == 0:
        wait_until(lambda: all(os.path.exists(flag + "-done") for flag in OTHERS))
        open(os.environ["GRADPLANE_SOCKET"] + "/dead", "w").close()


def end(late_from, daemon_dies):
    """The last rank waits before one operation until the others have ended theirs."""
    for step in range(BEFORE + BEHIND):
        if LATE and step == late_from:
            wait_until(lambda: all(map(has_spoken_or_gone, OTHERS)))
        dist.all_reduce(torch.ones(10))
    if not LATE:
        if daemon_dies:
            die_when_others_are_done()
        tell_others(OTHERS[RANK])


def end_lost():
    """All sessions are lost while the last rank is behind."""
    end(4, True)


def end_late():
    end(4, False)


def end_later():
    end(10, False)


def end_destroyed():
    """The last rank is behind, and the program destroys the group."""
    end(4, False)
    dist.destroy_process_group()


def end_together():
    """The last rank does its operations without a pause, and stays while the others end."""
    end(BEFORE + BEHIND, False)
    if LATE:
        wait_until(lambda: all(map(has_spoken_or_gone, OTHERS)))


def end_killed():
    """The last rank ends without notice to the other ranks."""
    end(BEFORE + BEHIND, False)
    if LATE:
        os._exit(0)


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=int(sys.argv[2])))
    globals()[sys.argv[1]]()
