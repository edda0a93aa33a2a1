# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Programs whose ranks keep shards: reduce_scatter, FSDP and tensor parallelism. They need PyTorch
2.6 or later."""

import os
import sys

import torch
import torch.distributed as dist
from rank_basics import RANK, WORLD, bits, end, say, start
from torch import nn
from torch.distributed.distributed_c10d import _coalescing_manager
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor import DTensor, Shard, distribute_tensor, init_device_mesh

SUMMED = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64)
SIZES = (1, 3, 1000, 16387, 100003)


def numbers(size, rank, dtype):
    return ((torch.arange(size) * 3 + 17 * rank) % 113).to(dtype)


def shard_of_sum(size, dtype):
    whole = sum(numbers(size * WORLD, rank, torch.int64) for rank in range(WORLD))
    return whole[RANK * size:(RANK + 1) * size].to(dtype)


def reduce_scatters():
    start()
    for dtype in SUMMED:
        for size in SIZES:
            given = numbers(size * WORLD, RANK, dtype)
            kept = given.clone()
            out = torch.zeros(size, dtype=dtype)
            dist.reduce_scatter_tensor(out, given)
            assert torch.equal(out, shard_of_sum(size, dtype)), (dtype, size, out)
            assert torch.equal(given, kept), "what a rank gives is only read"
    # Rows of a matrix, a transposed input, and an output that is a column.
    given = numbers(6 * WORLD * 4, RANK, torch.float32).view(4, 6 * WORLD).t()
    columns = torch.zeros(6, 8)
    dist.reduce_scatter_tensor(columns[:, ::2], given)
    # Several at once, of two sizes and types.
    outputs = [torch.zeros(5), torch.zeros(77, dtype=torch.float64)]
    with _coalescing_manager(async_ops=True) as manager:
        for out in outputs:
            dist.reduce_scatter_tensor(out, numbers(len(out) * WORLD, RANK, out.dtype))
    manager.wait()
    later = torch.zeros(4)
    work = dist.reduce_scatter_tensor(later, torch.ones(4 * WORLD), async_op=True)
    work.wait()
    say(bits=bits(columns, *outputs, later))


def largest_and_smallest():
    start()
    found = {}
    for name, op in (("largest", dist.ReduceOp.MAX), ("smallest", dist.ReduceOp.MIN),
                     ("product", dist.ReduceOp.PRODUCT)):
        out = torch.zeros(7)
        dist.reduce_scatter_tensor(out, numbers(7 * WORLD, RANK, torch.float32), op=op)
        found[name] = out.tolist()
    say(**found)


def gathers_into_tensors():
    start()
    for dtype in (*SUMMED, torch.uint8, torch.bool):
        out = torch.zeros(33 * WORLD, dtype=dtype)
        dist.all_gather_into_tensor(out, numbers(33, RANK, dtype))
        for rank in range(WORLD):
            assert torch.equal(out[33 * rank:33 * (rank + 1)], numbers(33, rank, dtype)), dtype
    say(done=True)


def means():
    """AVG, of which Gloo may make a sum, or the mean that was asked for."""
    start()
    out = torch.zeros(4)
    dist.reduce_scatter_tensor(out, torch.full((4 * WORLD,), RANK + 1.0), op=dist.ReduceOp.AVG)
    again = torch.zeros(4)
    dist.reduce_scatter_tensor(again, torch.full((4 * WORLD,), RANK + 1.0), op=dist.ReduceOp.AVG)
    say(value=out[0].item(), again=again[0].item())


def model_of_blocks():
    torch.manual_seed(1)
    return nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(4)),
                         nn.Linear(32, 5))


def train(model, optimizer, steps=6, inputs=32):
    for step in range(steps):
        generator = torch.Generator().manual_seed(100 * step + RANK)
        x = torch.randn(8, inputs, generator=generator)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def fsdp1():
    start()
    model = FullyShardedDataParallel(model_of_blocks(), device_id=torch.device("cpu"))
    train(model, torch.optim.SGD(model.parameters(), lr=0.1))
    say(bits=bits(*model.parameters()))


def fsdp2():
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.append(os.path.join(tests, "peers"))
    import host_streams
    start()
    mesh = init_device_mesh("cpu", (WORLD,))
    model = model_of_blocks()
    for block in model:
        host_streams.fully_shard(block, mesh)
    host_streams.fully_shard(model, mesh)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1))
    say(bits=bits(*(p.full_tensor() for p in model.parameters())))


def tensor_parallel():
    start()
    mesh = init_device_mesh("cpu", (WORLD,))
    whole = numbers(8 * 4 * WORLD, 0, torch.float32).view(4 * WORLD, 8)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    assert isinstance(rows, DTensor)
    product = rows.t() @ rows  # each rank has a partial sum
    scattered = product.redistribute(mesh, [Shard(0)])
    say(bits=bits(scattered.to_local(), product.full_tensor()))


def scattered_run():
    """Steps with three reduce_scatters of one or four rounds, and an all_reduce."""
    start()
    results = []
    for step in range(int(sys.argv[2])):
        works = []
        for size in (100, 16384 * 3 + 7, 9):
            out = torch.zeros(size, dtype=torch.int32)
            works.append(dist.reduce_scatter_tensor(
                out, numbers(size * WORLD, RANK + step, torch.int32), async_op=True))
            results.append((step, out))
        total = torch.full((7,), RANK + step)
        dist.all_reduce(total)
        assert total[0] == sum(range(step, step + WORLD)), total
        for work in works:
            work.wait()
    for step, out in results:
        whole = sum(numbers(len(out) * WORLD, rank + step, torch.int32) for rank in range(WORLD))
        assert torch.equal(out, whole[RANK * len(out):(RANK + 1) * len(out)]), (step, len(out))
    say(done=True)


def main():
    for program in sys.argv[1].split("+"):
        globals()[program]()
    end()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
