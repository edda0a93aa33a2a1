# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Lets FSDP2 train on the CPU with PyTorch 2.6.

Its streams of the CPU lack two functions that FSDP2 calls, and that newer versions have. They do
nothing there either, because the CPU does all work at once. Its Gloo also makes a sum of the mean
that FSDP2 asks for (pytorch issue 162338), over gradplane too, so gradients are as many times too
large as there are ranks.
"""

import torch
from torch.distributed.fsdp import fully_shard as shard

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


def fully_shard(module, mesh):
    """FSDP2 for one module. Where a pass frees parameters and gathers them again, PyTorch 2.6 takes
    them for changed ones on the CPU, so there they stay until the end of a step."""
    if not hasattr(torch.cpu.Stream, "record_event"):
        torch.cpu.Stream.record_event = lambda self, event=None: event or torch.cpu.Event()
        torch.cpu.Stream.wait_event = lambda self, event: None
    options = {"reshard_after_forward": False} if VERSION < (2, 11) else {}
    return shard(module, mesh=mesh, **options)
