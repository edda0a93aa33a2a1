# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Lets FSDP2 train on the CPU with a PyTorch that has no events for the CPU, such as 2.6. Newer
versions have them. They do nothing, because the CPU does all work at once."""

import torch


class Event:
    def record(self, stream=None):
        pass

    def wait(self, stream=None):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True


class Stream(torch.cpu.Stream):
    def record_event(self, event=None):
        return event or Event()

    def wait_event(self, event):
        pass

    def wait_stream(self, stream):
        pass


def add():
    """Adds the events. Call it before the first fully_shard()."""
    if hasattr(torch.cpu.Stream, "record_event"):
        return
    stream = Stream()
    torch.cpu.Event, torch.cpu.Stream = Event, Stream
    torch.cpu.current_stream = lambda device=None: stream


def fully_shard(module, mesh):
    """FSDP2 for one module. If a pass freed parameters and gathered them again, PyTorch 2.6 would
    take them for changed ones on the CPU. So they stay until the end of a step."""
    add()
    if hasattr(torch.distributed.fsdp, "fully_shard"):
        from torch.distributed.fsdp import fully_shard as shard
    else:
        from torch.distributed._composable.fsdp import fully_shard as shard
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    options = {"reshard_after_forward": False} if version < (2, 11) else {}
    return shard(module, mesh=mesh, **options)
