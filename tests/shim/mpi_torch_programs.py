# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A program of PyTorch with PyTorch's own `mpi` backend. It does not know of gradplane."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()

for dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
    given = torch.arange(100000, dtype=dtype)
    result = given * (rank + 1)
    dist.all_reduce(result)
    assert result.equal(given * (size * (size + 1) // 2)), dtype
result = torch.full((1000,), float(rank))
dist.all_reduce(result, op=dist.ReduceOp.MAX, async_op=True).wait()
assert result.eq(size - 1).all()
# With all ranks, because PyTorch 2.6 hangs in new_group() of some ranks over MPI.
everyone = dist.new_group()
result = torch.ones(10)
dist.all_reduce(result, group=everyone)
assert result.eq(size).all()

# Two steps with one bucket each.
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(100, 10))
for step in range(2):
    model.zero_grad()
    model(torch.full((4, 100), float(rank + step))).sum().backward()
    gradient = model.module.weight.grad
    expected = 4 * (step + (size - 1) / 2)
    assert torch.allclose(gradient, torch.full_like(gradient, expected)), gradient
dist.barrier()
