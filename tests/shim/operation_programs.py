# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Programs with broadcasts and all_gathers, alone and beside all_reduce."""

import hashlib
import os
import sys
import time

import torch
import torch.distributed as dist
from rank_basics import RANK, WORLD, bits, error_of, say, start
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

COPIED = (torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8, torch.int32,
          torch.int64)
SIZES = (1, 3, 1000, 16387, 100003)


def numbers(size, rank, dtype):
    return ((torch.arange(size) * 3 + 17 * rank) % 113).to(dtype)


def zeros(*sizes, dtype=torch.float32):
    """A tensor for each rank's contribution."""
    return [torch.zeros(*sizes, dtype=dtype) for _ in range(WORLD)]


def copies():
    """Every type that Gloo copies, from each root; sizes do not fill whole blocks."""
    start()
    for dtype in COPIED:
        for i, size in enumerate(SIZES):
            t = numbers(size, RANK, dtype)
            dist.broadcast(t, i % WORLD)
            assert torch.equal(t, numbers(size, i % WORLD, dtype)), (dtype, size, t)
            gathered = zeros(size, dtype=dtype)
            dist.all_gather(gathered, numbers(size, RANK, dtype))
            for rank, part in enumerate(gathered):
                assert torch.equal(part, numbers(size, rank, dtype)), (dtype, size, rank, part)
    # NaNs keep their bits.
    nan = torch.tensor([0x7fa00001, 0x7f800001 + RANK, -1], dtype=torch.int32).view(torch.float32)
    gathered = zeros(3)
    dist.all_gather(gathered, nan)
    dist.broadcast(nan, WORLD - 1)
    assert nan.view(torch.int32)[1] == 0x7f800001 + WORLD - 1
    say(bits=bits(nan, *gathered))


def copied_views():
    """Views and shapes: a broadcast sends consecutive elements from a view's first one on, and an
    all_gather sends the elements in the view."""
    start()
    results = []
    matrix = (torch.arange(12.0) + 100 * RANK).view(3, 4)
    turned = matrix.t()
    dist.broadcast(turned, WORLD - 1)
    results.append(matrix)
    wide = (torch.arange(40.0) + 100 * RANK).view(4, 10)
    dist.broadcast(wide[1], 0)
    # Gloo broadcasts this view's run of memory, not only its elements
    dist.broadcast(wide[:, ::3], 0)
    results.append(wide)
    one = torch.tensor(float(RANK))
    dist.broadcast(one, WORLD - 1)
    places = [torch.zeros(3, 4).t() for _ in range(WORLD)]
    dist.all_gather(places, (torch.arange(12.0) * (RANK + 1)).view(3, 4).t())
    scalars = [torch.zeros(()) for _ in range(WORLD)]
    dist.all_gather(scalars, torch.tensor(float(RANK)))
    same = zeros(4)
    dist.all_gather(same, torch.full((1,), float(RANK)).expand(4))
    whole = torch.zeros(WORLD, 5)
    whole[RANK] = RANK + 1
    dist.all_gather(list(whole), whole[RANK])
    taught = zeros(3)
    dist.all_gather(taught, torch.full((3,), float(RANK), requires_grad=True))
    assert not taught[0].requires_grad
    pairs = [torch.zeros(2, dtype=torch.complex64) for _ in range(WORLD)]
    dist.all_gather(pairs, torch.full((2,), complex(RANK, 1)))
    results += [one, *places, *scalars, *same, whole, *taught]
    say(bits=bits(*results, *(torch.view_as_real(p) for p in pairs)))


def mixture():
    """Many operations of each kind in flight; waits in another order, futures, and a barrier."""
    start()
    works, checks = [], []
    for i in range(12):
        total = torch.full((700 + i,), float(RANK + i))
        copied = torch.full((20000 + i,), float(RANK + i))
        gathered = zeros(300 + i)
        works.append(dist.all_reduce(total, async_op=True))
        works.append(dist.broadcast(copied, i % WORLD, async_op=True))
        works.append(dist.all_gather(gathered, torch.full((300 + i,), float(RANK * i)),
                                     async_op=True))
        checks.append((total, copied, gathered))
    chained = works[2].get_future().then(lambda f: [t + 1 for t in f.value()])
    for work in reversed(works):
        assert work.wait()
    assert all(w.is_completed() and w.is_success() for w in works)
    assert torch.equal(works[1].result()[0], checks[0][1])
    assert [float(t[0]) for t in chained.wait()] == [1.0] * WORLD
    for i, (total, copied, gathered) in enumerate(checks):
        assert bool((total == sum(range(WORLD)) + WORLD * i).all()), (i, total)
        assert bool((copied == i % WORLD + i).all()), (i, copied)
        for rank, part in enumerate(gathered):
            assert bool((part == rank * i).all()), (i, rank, part)
    group = dist.distributed_c10d._get_default_group()
    copied, gathered = torch.full((90000,), float(RANK)), zeros(50000)
    group.broadcast(copied, 0)
    group.allgather([gathered], [torch.full((50000,), float(RANK))])
    group.barrier().wait()
    assert bool((copied == 0).all())
    assert [float(t[-1]) for t in gathered] == list(range(WORLD))
    say(bits=bits(copied, *gathered))


REDUCED = (torch.float32, torch.float64, torch.float16, torch.int32, torch.int64)


def signs(size, rank, dtype):
    """Values whose products are exact in every type."""
    return (((torch.arange(size) + rank) % 3 - 1) * 2).to(dtype)


def reductions():
    """Maximum, minimum and product in every type, also of zeros and NaNs."""
    start()
    results = []
    for dtype in REDUCED:
        for size in SIZES:
            given = [numbers(size, rank, dtype) - 50 for rank in range(WORLD)]
            factors = [signs(size, rank, dtype) for rank in range(WORLD)]
            largest, smallest = given[RANK].clone(), given[RANK].clone()
            product = factors[RANK].clone()
            works = [dist.all_reduce(largest, op=dist.ReduceOp.MAX, async_op=True),
                     dist.all_reduce(smallest, op=dist.ReduceOp.MIN, async_op=True),
                     dist.all_reduce(product, op=dist.ReduceOp.PRODUCT, async_op=True)]
            for work in works:
                work.wait()
            assert torch.equal(largest, torch.stack(given).max(0).values), (dtype, size, largest)
            assert torch.equal(smallest, torch.stack(given).min(0).values), (dtype, size, smallest)
            expected = torch.stack(factors).float().prod(0).to(dtype)
            assert torch.equal(product, expected), (dtype, size, product)
            results += [largest, smallest, product]
    say(bits=bits(*results))


def coalesced():
    """Several tensors in one call."""
    start()
    results = []
    for dtype in (torch.float32, torch.int64):
        tensors = [numbers(size, RANK, dtype) for size in SIZES]
        dist.all_reduce_coalesced(tensors)
        results += tensors
    turned = (torch.arange(12.0) + RANK).view(3, 4).t()
    wide = (torch.arange(40.0) + RANK).view(4, 10)
    work = dist.all_reduce_coalesced([turned, wide[:, ::3]], async_op=True)
    work.wait()
    places = [[torch.zeros(size) for size in SIZES] for _ in range(WORLD)]
    places[0][2] = torch.zeros(2 * SIZES[2])[::2]
    dist.all_gather_coalesced(places, [numbers(size, RANK, torch.float32) for size in SIZES])
    twice, other = torch.ones(3) * RANK, torch.ones(2)
    dist.all_reduce_coalesced([twice, twice])  # passes to Gloo
    dist.all_reduce_coalesced([other], op=dist.ReduceOp.MAX)
    errors = [error_of(lambda: dist.all_reduce_coalesced([torch.ones(2), torch.ones(2).int()])),
              error_of(lambda: dist.all_reduce_coalesced([torch.ones(2, requires_grad=True)]))]
    for of_rank in places:
        results += of_rank
    say(bits=bits(*results, turned, wide, twice, other), errors=errors)


def refused_copies():
    """Calls that Gloo refuses, with its exact error messages."""
    start()
    group = dist.distributed_c10d._get_default_group()
    wrong_root, wrong_place = dist.BroadcastOptions(), dist.BroadcastOptions()
    wrong_root.rootRank, wrong_place.rootTensor = WORLD, 1
    leaf = torch.zeros(2, requires_grad=True)
    calls = [
        lambda: dist.broadcast(torch.zeros(3, dtype=torch.bool), 0),
        lambda: dist.broadcast(torch.zeros(3, dtype=torch.bfloat16), 0),
        lambda: dist.broadcast(torch.sparse_coo_tensor([[0]], [1.0], (3,)), 0),
        lambda: group.broadcast([torch.zeros(1)], wrong_root).wait(),
        lambda: group.broadcast([torch.zeros(1)], wrong_place).wait(),
        lambda: group.broadcast([], dist.BroadcastOptions()).wait(),
        lambda: dist.broadcast(torch.zeros(0), 0),
        lambda: dist.all_gather(zeros(3, dtype=torch.int16), torch.zeros(3, dtype=torch.int16)),
        lambda: dist.all_gather(zeros(3)[1:], torch.zeros(3)),
        lambda: dist.all_gather(zeros(3), torch.zeros(4)),
        lambda: dist.all_gather(zeros(3), torch.zeros(3, 1)),
        lambda: group.allgather([zeros(3), zeros(3)], [torch.zeros(3)]).wait(),
        lambda: group.allgather([], []).wait(),
        # Carried, then PyTorch refuses.
        lambda: dist.all_gather([leaf, *zeros(2)[1:]], torch.ones(2)),
        lambda: dist._all_gather_base(torch.zeros(3 * WORLD), torch.zeros(3)),
        lambda: dist.reduce_scatter(torch.zeros(3), zeros(3)),
        lambda: dist._reduce_scatter_base(torch.zeros(3), torch.zeros(3 * WORLD)),
    ]
    errors = [error_of(call) for call in calls]
    pair = [torch.full((2,), float(RANK)), torch.full((2,), float(RANK + 5))]
    group.broadcast(pair, dist.BroadcastOptions()).wait()
    several = [[torch.zeros(2) for _ in range(2 * WORLD)] for _ in range(2)]
    group.allgather(several, pair).wait()
    say(errors=errors, pair=[t.tolist() for t in pair], several=bits(*several[0], *several[1]))


def uneven():
    """Ranks call with different sizes. All calls must end, with an error or without."""
    start(seconds=5)
    size = int(sys.argv[2]) + RANK
    dist.broadcast(torch.zeros(4), 0)
    begin = time.monotonic()
    error = error_of(lambda: dist.all_gather(zeros(size), torch.ones(size)))
    again = error_of(lambda: dist.broadcast(torch.zeros(4), 0))
    say(error=error, again=again, seconds=time.monotonic() - begin)


def outer_sums():
    """Sums of a program without DDP: two of one length and two of another, short ones, and of
    integers."""
    start()
    results = []
    for step in range(2):
        for size in (3000, 2000, 500):
            t = torch.full((size,), float(RANK + step))
            dist.all_reduce(t)
            results.append(float(t[1]))
        dist.all_reduce(torch.full((7000,), RANK))
    say(results=results)


def uncarried():
    """Operations that gradplane never carries."""
    start()
    t = torch.full((5,), float(RANK))
    dist.reduce(t, 0)
    rows = [torch.zeros(5) for _ in range(WORLD)] if RANK == 0 else None
    dist.gather(t, rows, 0)
    dist.scatter(t, rows, 0)
    dist.all_to_all_single(torch.zeros(WORLD), torch.ones(WORLD))
    for source in (0, None):
        dist.send(t, 1) if RANK == 0 else dist.recv(t, source)
    dist.all_reduce(t)
    say(done=True)


def small_net():
    torch.manual_seed(RANK)  # DDP makes the replicas equal at its start
    return nn.Sequential(nn.Linear(20, 300), nn.ReLU(), nn.BatchNorm1d(300), nn.Linear(300, 5))


def ddp_start():
    start()
    say(bits=bits(*DDP(small_net()).state_dict().values()))


def zero_training():
    """Each rank updates its part of the parameters and broadcasts it."""
    start()
    out = {}
    for flat in (False, True):
        model = DDP(small_net(), bucket_cap_mb=0.02)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01,
                                            parameters_as_bucket_view=flat)
        data = torch.Generator().manual_seed(100 + RANK)
        for _ in range(6):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(torch.randn(16, 20, generator=data)),
                                               torch.randint(0, 5, (16,), generator=data))
            loss.backward()
            optimizer.step()
        optimizer.consolidate_state_dict(0)
        states = optimizer.state_dict()["state"] if RANK == 0 else {}
        out[f"flat={flat}"] = [bits(*model.parameters()),
                               bits(*(s["exp_avg"] for s in states.values()))]
    say(bits=out)


KINDS = ("broadcast", "all_gather", "all_reduce")


def mixed_step(step, digest, kinds):
    """A large operation of several rounds and a small one of each kind. Updates the digest."""
    works, results = [], []
    for size in (60001, 77):
        if "broadcast" in kinds:
            t = torch.full((size,), float(RANK * 1000 + step))
            works.append(dist.broadcast(t, step % WORLD, async_op=True))
            results.append((t, torch.full((size,), float(step % WORLD * 1000 + step))))
        if "all_gather" in kinds:
            parts = zeros(size)
            own = torch.full((size,), float(RANK * 1000 + step))
            works.append(dist.all_gather(parts, own, async_op=True))
            results += [(part, torch.full((size,), float(rank * 1000 + step)))
                        for rank, part in enumerate(parts)]
        if "all_reduce" in kinds:
            t = torch.full((size,), float(RANK + step))
            works.append(dist.all_reduce(t, async_op=True))
            results.append((t, torch.full((size,), float(sum(range(WORLD)) + WORLD * step))))
        if "largest" in kinds:
            t = torch.full((size,), float(RANK * 1000 + step))
            works.append(dist.all_reduce(t, op=dist.ReduceOp.MAX, async_op=True))
            results.append((t, torch.full((size,), float((WORLD - 1) * 1000 + step))))
    for work in works:
        work.wait()
    for t, want in results:
        assert torch.equal(t, want), (step, t, want)
        digest.update(bits(t).encode())


def mixed_run():
    """Runs as many steps as the argument says, with the kinds of operations in GP_TEST_KINDS."""
    kinds = os.environ.get("GP_TEST_KINDS", "+".join(KINDS)).split("+")
    start()
    digest = hashlib.sha256()
    for step in range(int(sys.argv[2])):
        mixed_step(step, digest, kinds)
    say(bits=digest.hexdigest())
