# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Programs whose tensors are on a GPU: a CUDA device, or the simulated one in GP_TEST_GPU, which
delays work and overwrites freed memory on purpose. Each prints its results, so that they can be
compared with those of a run over Gloo alone."""

import ctypes
import os
import sys
import time

SIMULATED = os.environ.get("GP_TEST_GPU")
if SIMULATED:
    ctypes.CDLL(SIMULATED)  # PyTorch 2.6 looks for GPUs when it is imported

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from rank_basics import RANK, WORLD, bits, end, say, start  # noqa: E402

TYPES = (torch.float32, torch.float64, torch.float16, torch.int32, torch.int64)
SIZES = (1, 1000, 100003)


class Simulated:
    def __init__(self):
        torch.ops.load_library(SIMULATED)
        self._ops = torch.ops.simulated_gpu

    def tensor(self, host):
        return self._ops.on_gpu(host)

    def late(self, host, milliseconds=60):
        """A tensor that the stream of this thread fills when it comes to that."""
        made = self._ops.on_gpu(torch.full_like(host, -1))
        self._ops.fill_later(made, float(host.flatten()[0]), milliseconds)
        return made

    def now(self, tensor):
        """The content of the tensor's memory now."""
        return self._ops.peek(tensor)

    def read(self, tensor):
        """The content of the tensor's memory after all queued work of this thread's stream."""
        return self._ops.read(tensor)

    def use_other_stream(self):
        self._ops.use_stream(8)

    def blocks_in_use(self):
        return self._ops.blocks_in_use()

    def hold(self):
        """Stops the stream of this thread until release()."""
        self._ops.hold()

    def release(self):
        self._ops.release()


class Cuda:
    def __init__(self):
        torch.cuda.set_device(0)
        self._aside = torch.cuda.Stream()

    def tensor(self, host):
        return host.cuda()

    def late(self, host, milliseconds=60):
        made = torch.full_like(host, -1, device="cuda")
        torch.cuda._sleep(milliseconds * 1500000)  # in cycles
        made.fill_(host.flatten()[0])
        return made

    def now(self, tensor):
        with torch.cuda.stream(self._aside):
            return tensor.cpu()

    def read(self, tensor):
        return tensor.cpu()

    def blocks_in_use(self):
        return torch.cuda.memory_stats()["allocation.all.current"]

    def hold(self):
        torch.cuda._sleep(3000 * 1500000)

    def release(self):
        pass

    def use_other_stream(self):
        torch.cuda.set_stream(torch.cuda.Stream())


gpu = None


def begin():
    global gpu
    start()
    gpu = gpu or (Simulated() if SIMULATED else Cuda())


def numbers(size, rank, dtype):
    return ((torch.arange(size) * 3 + 17 * rank) % 13).to(dtype)


def zeros(*sizes, dtype=torch.float32):
    return [gpu.tensor(torch.zeros(*sizes, dtype=dtype)) for _ in range(WORLD)]


def types():
    """Every type and operation, with sizes that do not fill whole blocks."""
    begin()
    results = []
    for dtype in TYPES:
        for size in SIZES:
            given = [numbers(size, rank, dtype) for rank in range(WORLD)]
            total, largest, copied = (gpu.tensor(given[RANK]) for _ in range(3))
            gathered = zeros(size, dtype=dtype)
            works = [dist.all_reduce(total, async_op=True),
                     dist.all_reduce(largest, op=dist.ReduceOp.MAX, async_op=True),
                     dist.broadcast(copied, WORLD - 1, async_op=True),
                     dist.all_gather(gathered, gpu.tensor(given[RANK]), async_op=True)]
            for work in works:
                work.wait()
            stacked = torch.stack(given)
            assert torch.equal(total.cpu(), stacked.sum(0).to(dtype)), (dtype, size, total.cpu())
            assert torch.equal(largest.cpu(), stacked.max(0).values), (dtype, size)
            assert torch.equal(copied.cpu(), given[-1]), (dtype, size)
            assert all(torch.equal(g.cpu(), e) for g, e in zip(gathered, given)), (dtype, size)
            results += [t.cpu() for t in (total, largest, copied, *gathered)]
    say(bits=bits(*results))


def late():
    """A collective comes after all that the program has queued on the device before, and before all
    that it queues after wait(), on any stream. Several collectives are in flight."""
    begin()
    for turn in range(2):
        if turn == 1:
            gpu.use_other_stream()
        tensors = [gpu.late(torch.full((5000 + i,), float(RANK + i))) for i in range(6)]
        works = [dist.all_reduce(t, async_op=True) for t in tensors]
        for i, (t, work) in enumerate(zip(tensors, works)):
            work.wait()
            found = gpu.read(t)
            expected = float(sum(range(WORLD)) + WORLD * i)
            assert bool((found == expected).all()), (turn, i, found, expected)
        gathered = zeros(3000)
        dist.all_gather(gathered, gpu.late(torch.full((3000,), float(RANK))))
        assert [float(gpu.read(t)[-1]) for t in gathered] == list(range(WORLD))
    say(ok=True)


def futures():
    """A callback of a future finds the results in memory, on any stream."""
    begin()
    gpu.use_other_stream()
    for late in (True, False):
        t = gpu.late(torch.full((70000,), float(RANK + 1)))
        work = dist.all_reduce(t, async_op=True)
        if late:
            future = work.get_future().then(lambda f: gpu.now(f.value()[0]))
            found = future.wait()
        else:
            while not work.is_completed():
                time.sleep(0.001)
            found = gpu.read(work.get_future().value()[0])
        assert bool((found == WORLD * (WORLD + 1) / 2).all()), (late, found)
    say(ok=True)


def crowded():
    """More collectives are in flight than a device has streams. All but the first wait for the
    program. The first must not wait for them."""
    begin()
    first = gpu.tensor(torch.full((3000,), float(RANK)))
    work = dist.all_reduce(first, async_op=True)
    others = [gpu.tensor(torch.full((100,), float(RANK + i))) for i in range(40)]
    later = gpu.tensor(torch.full((3000,), float(RANK)))
    told = dist.all_reduce(later, async_op=True)
    future = told.get_future()
    gpu.hold()
    works = [dist.all_reduce(t, async_op=True) for t in others]
    future.wait()
    found = gpu.now(future.value()[0])
    assert bool((found == sum(range(WORLD))).all()), found
    work.get_future()
    gpu.release()
    for i, (t, work) in enumerate(zip(others, works)):
        work.wait()
        assert bool((gpu.read(t) == sum(range(WORLD)) + WORLD * i).all()), i
    say(ok=True)


def inference():
    """Tensors that may be written only in inference mode."""
    begin()
    with torch.inference_mode():
        t = gpu.tensor(torch.full((3000,), float(RANK)))
        dist.all_reduce(t)
        one = gpu.tensor(torch.tensor(float(RANK)))
        dist.broadcast(one, WORLD - 1)
        places = zeros(50)
        dist.all_gather(places, gpu.tensor(torch.full((50,), float(RANK))))
        say(sums=t.cpu().tolist()[:2], one=one.cpu().item(),
            rows=[place.cpu()[0].item() for place in places])
        if tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 6):
            rows = [torch.zeros(7) for _ in range(WORLD)]
            dist.all_gather(rows, torch.full((7,), float(RANK)))
            say(host=[row[0].item() for row in rows])


def let_go():
    """The program frees a tensor while it is copied."""
    begin()
    for i in range(4):
        places = zeros(4000)
        given = gpu.late(torch.full((4000,), float(RANK + i)))
        work = dist.all_gather(places, given, async_op=True)
        del given
        work.wait()
        for rank, place in enumerate(places):
            assert bool((place.cpu() == float(rank + i)).all()), (i, rank, place.cpu())
        del places, place, work
    # A collective that was waited for keeps no memory on the device.
    before = gpu.blocks_in_use()
    t, places = gpu.tensor(torch.ones(100)), zeros(100)
    dist.all_gather(places, t)
    dist.all_reduce(t)
    del t, places
    assert gpu.blocks_in_use() == before, (before, gpu.blocks_in_use())
    say(ok=True)


def shapes():
    """Views: those without gaps are carried, and those with gaps go to Gloo."""
    begin()
    turned = gpu.tensor((torch.arange(12.0) * (RANK + 1)).view(3, 4)).t()
    dist.all_reduce(turned)
    one = gpu.tensor(torch.tensor(float(RANK)))
    dist.broadcast(one, WORLD - 1)
    part = gpu.tensor(torch.arange(100.0) + RANK)[10:40]
    dist.all_reduce(part)
    places = [t.t() for t in zeros(3, 4)]
    dist.all_gather(places, gpu.tensor((torch.arange(12.0) * (RANK + 1)).view(3, 4)).t())
    say(bits=bits(*(t.cpu() for t in (turned, one, part, *places))))


def scattered():
    """Rows, a transposed input, an output that is a column, and an input that is filled late."""
    begin()
    results = []
    for size in (1, 1000, 100003):
        out = zeros(size)[0]
        dist.reduce_scatter_tensor(out, gpu.tensor(numbers(size * WORLD, RANK, torch.float32)))
        results.append(out.cpu())
    columns = zeros(6, 8)[0]
    given = gpu.tensor(numbers(6 * WORLD * 4, RANK, torch.float32).view(4, 6 * WORLD)).t()
    dist.reduce_scatter_tensor(columns[:, ::2], given)
    out = zeros(2000)[0]
    work = dist.reduce_scatter_tensor(out, gpu.late(torch.full((2000 * WORLD,), RANK + 1.0)),
                                      async_op=True)
    work.wait()
    results += [columns.cpu(), out.cpu()]
    dist.reduce_scatter_tensor(out, gpu.tensor(torch.full((2000 * WORLD,), RANK + 1.0)),
                               op=dist.ReduceOp.AVG)
    say(bits=bits(*results, out.cpu()))


def gaps():
    """For a view with gaps, Gloo sums as many consecutive elements from the view's first one as the
    view has, and writes back those that are in the view."""
    begin()
    wide = gpu.tensor(torch.arange(40.0).view(4, 10) + RANK)
    dist.all_reduce(wide[:, ::3])
    say(bits=bits(wide.cpu()))
    # Beyond that run, a broadcast writes back memory that Gloo has never read.
    own = torch.arange(40.0).view(4, 10) + 100 * RANK
    sent = gpu.tensor(own)
    dist.broadcast(sent[:, 1::2], WORLD - 1)
    expected = own.clone()
    for row in range(4):
        for column in range(1, 10, 2):
            if 10 * row + column - 1 < 20:
                expected[row, column] += 100 * (WORLD - 1 - RANK)
    if os.environ.get("LD_PRELOAD"):
        assert torch.equal(sent.cpu(), expected), (sent.cpu(), expected)


def left_open():
    """A group that lives as long as the process."""
    begin()
    t = gpu.tensor(torch.full((1000,), float(RANK)))
    work = dist.all_reduce(t, async_op=True)
    while not work.is_completed():  # wait() would free what this program leaves open
        time.sleep(0.001)
    group = dist.distributed_c10d._get_default_group()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
    say(ok=True)
    sys.exit(0)


def model_on(device):
    torch.manual_seed(1)
    blocks = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(6)]
    return torch.nn.Sequential(*blocks, torch.nn.Linear(64, 5)).to(device)


def train(model, device, steps=8):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        generator = torch.Generator().manual_seed(100 * step + RANK)
        x = torch.randn(16, 64, generator=generator).to(device)
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def ddp():
    """DDP with buckets of some kilobytes, so that several are in flight."""
    begin()
    model = torch.nn.parallel.DistributedDataParallel(model_on("cuda"), bucket_cap_mb=0.03)
    train(model, "cuda")
    say(bits=bits(*(p.cpu() for p in model.parameters())))


def ddp_aside():
    """DDP on another stream than the default one."""
    begin()
    with torch.cuda.stream(torch.cuda.Stream()):
        ddp()


def fsdp2():
    from torch.distributed.fsdp import fully_shard
    start()
    device = sys.argv[2]
    mesh = dist.device_mesh.init_device_mesh(device, (WORLD,))
    model = model_on(device)
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, device)
    # PyTorch 2.11 crashes when it gathers whole tensors on a GPU over Gloo.
    say(bits=bits(*(p.to_local().cpu() for p in model.parameters())))


def averages():
    """Averages, which Gloo has from PyTorch 2.11 on."""
    begin()
    t = gpu.tensor(torch.full((1000,), RANK + 1.0))
    dist.all_reduce(t, op=dist.ReduceOp.AVG)
    host = torch.full((1000,), RANK + 1.0)
    dist.all_reduce(host, op=dist.ReduceOp.AVG)
    out = gpu.tensor(torch.zeros(500))
    dist.reduce_scatter_tensor(out, gpu.tensor(torch.arange(500.0 * WORLD) + RANK),
                               op=dist.ReduceOp.MAX)
    say(bits=bits(t.cpu(), host, out.cpu()), mean=t.cpu()[0].item(), largest=out.cpu()[0].item())


def long_run():
    begin()
    checksum = 0.0
    for step in range(int(sys.argv[2])):
        t = gpu.tensor(torch.full((20000,), float(RANK + step)))
        dist.all_reduce(t)
        found = t.cpu()
        assert bool((found == float(sum(range(WORLD)) + WORLD * step)).all()), (step, found)
        checksum += float(found[-1])
    say(bits=checksum)


if __name__ == "__main__":
    for program in sys.argv[1].split("+"):
        globals()[program]()
    end()
