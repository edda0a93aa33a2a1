# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Ordinary torch programs that do not know of gradplane. Each runs as one rank and prints
JSON."""

import atexit
import ctypes
import os
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from fork_programs import own_group_after_fork, parents_group_after_fork  # noqa: F401
from operation_programs import (coalesced, copied_views, copies, ddp_start, mixed_run,  # noqa: F401
                                mixture, outer_sums, reductions, refused_copies, uncarried,
                                uneven, zero_training)
from rank_basics import RANK, WORLD, bits, end, error_of, let_gloo_free, say, start
from recovery_programs import daemon_returns, long_run  # noqa: F401
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from waiting import wait_until


def dtypes():
    """Every carried type in several sizes. Values are small integers, so every sum is exact."""
    start()
    out = {}
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int32, torch.int64):
        results = []
        for size in (1, 2, 1000, 16384, 100003):
            t = (torch.arange(size) % 50 + RANK).to(dtype)
            dist.all_reduce(t)
            want = ((torch.arange(size) % 50) * WORLD + sum(range(WORLD))).to(dtype)
            assert torch.equal(t, want), (dtype, size, t, want)
            results.append(t)
        out[str(dtype)] = bits(*results)
    say(bits=out)


def bfloat16():
    start()
    t = torch.full((100,), float(RANK + 1), dtype=torch.bfloat16)
    error = error_of(lambda: dist.all_reduce(t))
    say(error=error, value=float(t[7]))


def ops_and_shapes():
    """Calls that pass through, between calls that may be carried."""
    start()
    results = []
    for op in (dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT, dist.ReduceOp.SUM):
        t = torch.arange(10.0) + RANK
        dist.all_reduce(t, op=op)
        results.append(t)
    mask = torch.tensor([6 + RANK])
    dist.all_reduce(mask, op=dist.ReduceOp.BAND)
    results.append(mask)
    matrix = (torch.arange(12.0) + RANK).view(3, 4)
    dist.all_reduce(matrix)
    results.append(matrix)
    transposed = (torch.arange(12.0) + RANK).view(3, 4).t()
    dist.all_reduce(transposed)
    results.append(transposed)
    one = torch.tensor(float(RANK))
    dist.all_reduce(one)
    results.append(one)
    flags = torch.tensor([RANK == 0, True], dtype=torch.bool).to(torch.uint8)
    dist.all_reduce(flags)
    results.append(flags)
    part = torch.zeros(100)
    part[10:20] = RANK + 1
    dist.all_reduce(part[10:20])
    results.append(part)
    bool(dist.broadcast(results[0], 0))
    gathered = [torch.zeros(3) for _ in range(WORLD)]
    dist.all_gather(gathered, torch.full((3,), float(RANK)))
    results += gathered
    pair = [torch.ones(3) * RANK, torch.ones(5) * RANK]
    dist.all_reduce_coalesced(pair)
    results += pair
    dist.barrier()
    say(bits=bits(*results))


def wrong_input():
    """Wrong input, with Gloo's exact error messages."""
    start()
    group = dist.distributed_c10d._get_default_group()
    options = dist.AllreduceOptions()
    sparse = torch.sparse_coo_tensor([[0]], [1.0], (3,))
    errors = [
        error_of(lambda: group.allreduce([], options).wait()),
        error_of(lambda: group.allreduce([torch.zeros(1), torch.zeros(2)], options).wait()),
        error_of(lambda: group.allreduce([torch.zeros(1), torch.zeros(1, dtype=torch.int)],
                                         options).wait()),
        error_of(lambda: dist.all_reduce(torch.zeros(3, dtype=torch.complex64))),
        error_of(lambda: dist.all_reduce(sparse, op=dist.ReduceOp.MAX)),
        error_of(lambda: dist.all_reduce(torch.zeros(3), op=dist.ReduceOp.AVG)),
        error_of(lambda: dist.all_reduce("no tensor")),
    ]
    t = torch.ones(4)
    dist.all_reduce(t)
    say(errors=errors, value=float(t[0]))


def asynchronous():
    """Many operations in flight, with waits in another order, futures and callbacks."""
    start()
    tensors = [torch.full((1000 + 7 * i,), float(RANK + i)) for i in range(40)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    chained = works[3].get_future().then(lambda f: f.value()[0] * 2)
    for work in reversed(works):
        assert work.wait()
    assert all(w.is_completed() and w.is_success() for w in works)
    assert works[5].result()[0] is not None
    assert torch.equal(chained.wait(), tensors[3] * 2)
    for i, t in enumerate(tensors):
        assert torch.equal(t, torch.full_like(t, float(sum(range(WORLD)) + WORLD * i))), i
    say(bits=bits(*tensors))


def wait_in_callback():
    """PowerSGD's hook waits for a second all_reduce inside the callback of the first."""
    start()

    def second(f):
        t = f.value()[0] + 1
        dist.all_reduce(t, async_op=True).get_future().wait()
        return t

    values = []
    for i in range(4):
        work = dist.all_reduce(torch.full((10,), float(i)), async_op=True)
        values.append(float(work.get_future().then(second).wait()[0]))
    assert values == [WORLD * (WORLD * i + 1) for i in range(4)], values
    say(values=values)


def barrier_implies_wait():
    start()
    group = dist.distributed_c10d._get_default_group()
    tensors = [torch.full((5000,), float(i * 100 + RANK)) for i in range(20)]
    for t in tensors:
        group.allreduce(t)
    group.barrier().wait()
    for i, t in enumerate(tensors):
        assert torch.equal(t, torch.full_like(t, float(i * 100 * WORLD + sum(range(WORLD))))), i
    say(done=True)


def groups():
    """Subgroups, overlapping groups, several groups at once, and groups that come and go."""
    start()
    halves = [dist.new_group(list(range(i, WORLD, 2))) for i in range(2)]
    everyone = dist.new_group(list(range(WORLD)))
    mine = halves[RANK % 2]
    results = []
    for i in range(5):
        ts = [torch.full((300,), float(RANK + i)) for _ in range(3)]
        works = [dist.all_reduce(ts[0], group=mine, async_op=True),
                 dist.all_reduce(ts[1], group=everyone, async_op=True),
                 dist.all_reduce(ts[2], async_op=True)]
        for work in reversed(works):
            work.wait()
        results += ts
    same_half = [r for r in range(WORLD) if r % 2 == RANK % 2]
    assert float(results[0][0]) == sum(same_half), results[0]
    assert float(results[2][0]) == sum(range(WORLD))
    own, parts = torch.full((10,), float(RANK)), [torch.zeros(10) for _ in same_half]
    dist.all_gather(parts, own, group=mine)
    # Its rank in the world, which is not its rank in the group.
    dist.broadcast(own, same_half[-1], group=mine)
    assert [float(t[0]) for t in parts] == same_half and float(own[0]) == same_half[-1]
    dist.destroy_process_group(everyone)
    again = dist.new_group(list(range(WORLD)))
    t = torch.ones(10)
    dist.all_reduce(t, group=again)
    assert float(t[0]) == WORLD
    say(bits=bits(*results))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 64)
        self.norm = nn.BatchNorm1d(64)
        self.middle = nn.Linear(64, 64)
        self.sometimes = nn.Linear(64, 64)
        self.last = nn.Linear(64, 5)

    def forward(self, x, use_all=True):
        x = torch.relu(self.norm(self.first(x)))
        x = torch.relu(self.middle(x))
        if use_all:
            x = torch.relu(self.sometimes(x))
        return self.last(x)


def train(wrap, steps=6, use_all=lambda step: True, accumulate=1):
    torch.manual_seed(1)
    model = wrap(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = torch.Generator().manual_seed(100 + RANK)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(accumulate):
            x = torch.randn(16, 20, generator=data)
            y = torch.randint(0, 5, (16,), generator=data)
            if part + 1 < accumulate:
                with model.no_sync():
                    nn.functional.cross_entropy(model(x, use_all(step)), y).backward()
            else:
                nn.functional.cross_entropy(model(x, use_all(step)), y).backward()
        optimizer.step()
    return bits(*model.state_dict().values()), bits(*model.module.parameters())


def ddp():
    """DDP in its variants. The parameters of all replicas must have the same bits."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    start()
    out = {}
    small = dict(bucket_cap_mb=0.02)
    out["plain"] = train(lambda m: DDP(m))[1]
    out["buckets"] = train(lambda m: DDP(m, **small))[1]
    out["unused"] = train(lambda m: DDP(m, find_unused_parameters=True, **small),
                          use_all=lambda step: step % 2 == 0)[1]
    out["views"] = train(lambda m: DDP(m, gradient_as_bucket_view=True, **small))[1]
    out["no_sync"] = train(lambda m: DDP(m, **small), accumulate=3)[1]
    out["static"] = train(lambda m: DDP(m, static_graph=True, **small))[1]

    def compressed(model):
        model = DDP(model, **small)
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        return model

    def builtin(model):
        model = DDP(model, **small)
        model._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
        return model

    out["fp16_hook"] = train(compressed)[1]
    out["builtin_hook"] = train(builtin)[1]
    say(bits=out)


def powersgd():
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
    start()

    def wrap(model):
        model = DDP(model)
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        return model

    say(bits=train(wrap)[1])


def one_bucket():
    """Three small DDP steps, for the names in the bucket."""
    start()
    model = DDP(Net())
    for _ in range(3):
        model(torch.ones(4, 20)).sum().backward()
    say(done=True)


def late_peer():
    """Rank 1 never issues its second all_reduce."""
    start(seconds=2)
    t = torch.ones(10)
    dist.all_reduce(t)
    if RANK == 0:
        begin = time.monotonic()
        error = error_of(lambda: dist.all_reduce(t))
        again = error_of(lambda: dist.all_reduce(t))
        say(error=error, again=again, seconds=time.monotonic() - begin)
    else:
        time.sleep(8)
        say(error=error_of(lambda: dist.all_reduce(t)))


def peer_exits():
    """Rank 1 leaves after the first all_reduce. Rank 0 continues."""
    start(seconds=5)
    t = torch.ones(10)
    dist.all_reduce(t)
    if RANK == 0:
        say(error=error_of(lambda: dist.all_reduce(t)))
    say(done=True)
    let_gloo_free()


def peer_killed():
    """Rank 1 is killed between two operations. The fake daemon does not notice that, or, with the
    argument `dead`, dies afterwards. Rank 1 must be gone by then, or it could still agree with the
    others to continue over Gloo. A shell sees by its standard input that rank 1 is gone."""
    start(seconds=5)
    t = torch.ones(10)
    dist.all_reduce(t)
    if RANK == 1:
        if "dead" in sys.argv:
            flag = os.path.join(os.environ["GRADPLANE_SOCKET"], "dead")
            subprocess.Popen(["sh", "-c", 'cat; : > "$0"', flag], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.kill(os.getpid(), 9)
    say(error=error_of(lambda: dist.all_reduce(t)))


def repeat_failing():
    """Prints the error of each of several all_reduces."""
    start(seconds=20)
    say(errors=[error_of(lambda: dist.all_reduce(torch.ones(10))) for _ in range(3)])


def repeat_failing_copies():
    start(seconds=20)
    parts = [torch.zeros(2) for _ in range(WORLD)]
    say(errors=[error_of(lambda: dist.broadcast(torch.ones(10), 0)),
                error_of(lambda: dist.all_gather(parts, torch.ones(2)))])


def late_rank():
    """The last rank begins when all others have logged for whom they wait."""
    start()
    flags = [os.environ["GP_TEST_FOLDER"] + f"/said-{r}" for r in range(WORLD - 1)]
    if RANK == WORLD - 1:
        wait_until(lambda: all(map(os.path.exists, flags)))
    else:
        said = (lambda: b"has waited" in os.pread(2, 65536, 0), flags[RANK])
        threading.Thread(target=wait_until, args=said, daemon=True).start()
    dist.all_reduce(torch.ones(10))


def forks():
    """A data loader with workers, and a child that uses torch, beside carried operations."""
    start()
    loader = torch.utils.data.DataLoader(torch.arange(40.0), batch_size=5, num_workers=2)
    total = torch.zeros(1)
    for batch in loader:
        t = batch.sum().view(1).clone()
        dist.all_reduce(t)
        total += t
    pid = os.fork()
    if pid == 0:
        os._exit(0 if float(torch.ones(3).sum()) == 3 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    t = torch.ones(5)
    dist.all_reduce(t)
    say(total=float(total), value=float(t[0]))


def no_wait_exit():
    """Ends with an operation in flight and the group alive."""
    start()
    dist.all_reduce(torch.ones(10))
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    say(done=True, completed=work is not None)


def exit_beside_a_result():
    """The result arrives while Python ends. Only the operation still refers to the tensor."""
    start()
    flag = os.environ["GP_TEST_FOLDER"] + "/ends"
    if RANK == 1:
        wait_until(lambda: os.path.exists(flag))
        dist.all_reduce(torch.ones(10))
        return

    # usleep() holds Python's lock from before the result until Python ends, because ctypes.PyDLL
    # does not release it and no Python code runs afterwards.
    atexit._clear()
    atexit.register(ctypes.PyDLL(None).usleep, 500000)
    atexit.register(lambda: open(flag, "w").close())
    dist.all_reduce(torch.ones(10), async_op=True)


def main():
    """Runs the named program, or several in one process, as in a+b."""
    for program in sys.argv[1].split("+"):
        globals()[program]()
    if any(p in sys.argv[1] for p in ("asynchronous", "callback", "groups", "ddp", "powersgd",
                                         "mixture", "zero")):
        # torch aborts when Python ends while a callback is still ending.
        end()
    elif "exit" not in sys.argv[1]:
        let_gloo_free()


if __name__ == "__main__":
    main()
