# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Further programs of DDP, each with plain sums."""

import sys

import torch
from rank_basics import RANK, end, say, start
from rank_programs import Net, bits, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

SMALL = {"bucket_cap_mb": 0.02}


def bfloat16_hook():
    """Compresses gradients to bf16, which Gloo of PyTorch 1.13 refuses to sum. DDP offers its own
    hook for bf16 only in builds with NCCL."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    start()

    def as_bfloat16(state, bucket):
        return default_hooks.bf16_compress_hook(state, bucket)

    def wrap(model):
        model = DDP(model, **SMALL)
        model.register_comm_hook(None, as_bfloat16)
        return model

    say(bits=train(wrap)[1])


def joined():
    """Ranks have data for different numbers of steps, and train until the last has none."""
    start()
    torch.manual_seed(1)
    model = DDP(Net(), **SMALL)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = torch.Generator().manual_seed(100 + RANK)
    steps = 0
    with model.join():
        for _ in range(4 + 2 * RANK):
            optimizer.zero_grad()
            x = torch.randn(16, 20, generator=data)
            y = torch.randint(0, 5, (16,), generator=data)
            nn.functional.cross_entropy(model(x, True), y).backward()
            optimizer.step()
            steps += 1
    # Ranks that ran out of data have the parameters of the rank that trained last.
    say(steps=steps, bits=bits(*model.module.parameters()))


def two_models():
    """Two models that are trained in turn, as a generator and its discriminator."""
    start()
    torch.manual_seed(1)
    models = [DDP(Net(), **SMALL) for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in models]
    data = torch.Generator().manual_seed(100 + RANK)
    for step in range(8):
        x = torch.randn(16, 20, generator=data)
        optimizers[step % 2].zero_grad()
        with torch.no_grad():
            goal = models[1 - step % 2](x, True)
        (models[step % 2](x, True) - goal).square().sum().backward()
        optimizers[step % 2].step()
    say(bits=[bits(*model.module.parameters()) for model in models])


if __name__ == "__main__":
    for program in sys.argv[1].split("+"):
        globals()[program]()
    end()
