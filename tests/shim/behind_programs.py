# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Torch programs of which the last rank falls behind after a few operations."""

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
    """It comes when all others have said for whom they wait."""
    if not LATE:
        said = (lambda: b"has waited" in os.pread(2, 65536, 0), OTHERS[RANK])
        threading.Thread(target=wait_until, args=said, daemon=True).start()
    for step in range(BEFORE + BEHIND):
        if step == BEFORE:
            wait_for_others()
        dist.all_reduce(torch.ones(10))


def never():
    """It comes when all others have given up."""
    try:
        for step in range(BEFORE + BEHIND):
            if step == BEFORE:
                wait_for_others()
            dist.all_reduce(torch.ones(10))
    except RuntimeError as e:
        print("gave up:", e, file=sys.stderr, flush=True)
    if not LATE:
        open(OTHERS[RANK], "w").close()


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=int(sys.argv[2])))
    {"behind": behind, "never": never}[sys.argv[1]]()
