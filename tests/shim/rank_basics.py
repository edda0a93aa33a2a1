# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The functions that all programs of ranks share."""

import datetime
import hashlib
import json
import os
import time

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
BACKEND = os.environ.get("GP_TEST_BACKEND", "gloo")


def say(**what):
    print(json.dumps(what), flush=True)


def bits(*tensors):
    digest = hashlib.sha256()
    for t in tensors:
        digest.update(bytes(t.detach().contiguous().view(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


def import_backend():
    """What a program does that asks for the backend by name, as "gradplane" or "cpu:gradplane"."""
    if "gradplane" in BACKEND:
        import gradplane.torch  # noqa: F401


def start(seconds=int(os.environ.get("GP_TEST_GROUP_SECONDS", "60"))):
    if dist.is_initialized():
        return  # when several programs run in one process
    import_backend()
    dist.init_process_group(BACKEND, timeout=datetime.timedelta(seconds=seconds))


def let_gloo_free():
    """Gives Gloo's threads time to free the tensors of their last works, for which they need
    Python's lock. A thread that waits for the lock while Python ends is terminated in a
    destructor, and that ends the process. PyTorch does so with gradplane and without."""
    time.sleep(0.2)


def end():
    """Destroys all groups. PyTorch 2.6 joins Gloo's threads while it holds Python's lock, and would
    hang if one of them waited for the lock."""
    let_gloo_free()
    dist.destroy_process_group()


def error_of(function):
    try:
        function()
    except (RuntimeError, ValueError, TypeError) as e:
        return f"{type(e).__name__}: {e}"
    return ""
