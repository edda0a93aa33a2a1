# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Ordinary DDP trainings. If ranks exchange gradients, their replicas differ."""

import os
import sys

import torch
import torch.distributed as dist
from rank_basics import RANK, WORLD, bits, end, say, start
from rank_programs import Net
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

SELECTIONS, EVERY = map(int, os.environ.get("GRADPLANE_TEST_SELECTIVE", "0:0").split(":")[:2])
MEASURE_EVERY = 100
SMALL = {"bucket_cap_mb": 0.02}


class Known(nn.Module):
    """A model whose gradients are its inputs, whatever its parameters are."""

    def __init__(self):
        super().__init__()
        self.long = nn.Parameter(torch.zeros(40000))
        self.short = nn.Parameter(torch.zeros(7))
        self.wide = nn.Parameter(torch.zeros(5, dtype=torch.float64))
        self.narrow = nn.Parameter(torch.zeros(9, dtype=torch.float16))
        self.turned = nn.Parameter(torch.zeros(3, 5).t())

    def forward(self, numbers):
        return sum((p.double() * x).sum() for p, x in zip(self.parameters(), numbers))


def gradient(step, rank):
    """One number for each parameter. It has few bits, so that all means are exact."""
    return [float((step * 7 + rank * 3 + i) % 5 - 1) for i in range(5)]


def mean(rows):
    return [sum(column) / len(rows) for column in zip(*rows)]


def sender_to(rank, selection):
    return (rank + WORLD - 1 - selection % (WORLD - 1)) % WORLD


class Predicted:
    """The expected parameters of all ranks."""

    def __init__(self):
        self.values = [[0.0] * 5 for _ in range(WORLD)]
        self.sizes = [40000, 7, 5, 9, 15]
        self.drifts = []

    def average(self, step, writes_back=True):
        middle = mean(self.values)
        distance = sum(n * (a - b) ** 2
                       for n, a, b in zip(self.sizes, self.values[RANK], middle)) ** 0.5
        norm = sum(n * b * b for n, b in zip(self.sizes, middle)) ** 0.5
        self.drifts.append([step, distance, norm])
        if writes_back:
            self.values = [list(middle) for _ in range(WORLD)]

    def update(self, step):
        for rank in range(WORLD):
            got = [gradient(step, rank)]
            if SELECTIONS:
                got.append(gradient(step, sender_to(rank, step % SELECTIONS)))
            else:
                got = [gradient(step, r) for r in range(WORLD)]
            for i, update in enumerate(mean(got)):
                self.values[rank][i] -= update


def known():
    """Checks each rank's parameters after each step against those that follow from the selections
    and averages."""
    start()
    model = DDP(Known(), **SMALL)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    predicted = Predicted()
    for step in range(int(sys.argv[2])):
        optimizer.zero_grad()
        loss = model(gradient(step, RANK))
        if EVERY and step and step % EVERY == 0:
            predicted.average(step)
        elif not EVERY and step and step % MEASURE_EVERY == 0:
            predicted.average(step, writes_back=False)
        loss.backward()
        optimizer.step()
        predicted.update(step)
        for p, want in zip(model.parameters(), predicted.values[RANK]):
            assert torch.equal(p, torch.full_like(p, want)), (step, p, want)
    say(drifts=predicted.drifts if SELECTIONS else [])


def known_long():
    """The training of known(), but a session may be lost. Afterwards the replicas are equal again.
    With `same`, all ranks have the same gradients at all times, so no gradient is lost."""
    start()
    own = (lambda step, rank: gradient(0, 0)) if "same" in sys.argv else gradient
    model = DDP(Known(), **SMALL)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    exact = [0.0] * 5
    for step in range(int(sys.argv[2])):
        optimizer.zero_grad()
        model(own(step, RANK)).backward()
        optimizer.step()
        update = mean([own(step, r) for r in range(WORLD)])
        exact = [a - b for a, b in zip(exact, update)]
    model(own(0, RANK))  # an average may be due at its beginning
    off = max(float((p - want).abs().max()) for p, want in zip(model.parameters(), exact))
    say(bits=bits(*model.parameters()), off=off)


def net_steps(model, steps, accumulate=1, use_all=lambda step: True):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = torch.Generator().manual_seed(100 + RANK)

    def loss(step):
        x = torch.randn(16, 20, generator=data)
        y = torch.randint(0, 5, (16,), generator=data)
        return nn.functional.cross_entropy(model(x, use_all(step)), y)

    for step in range(steps):
        optimizer.zero_grad()
        for _ in range(accumulate - 1):
            with model.no_sync():
                loss(step).backward()
        loss(step).backward()
        optimizer.step()
        yield bits(*model.parameters())
    loss(steps)  # a forward pass, at whose beginning an average may be due
    yield bits(*model.parameters())


VARIANTS = {
    "plain": ({}, {}),
    "views": ({"gradient_as_bucket_view": True}, {}),
    "unused": ({"find_unused_parameters": True}, {"use_all": lambda step: step % 2 == 0}),
    "no_sync": ({}, {"accumulate": 3}),
    "static": ({"static_graph": True}, {}),
}


def variant():
    """Six steps of DDP in one of its variants. Prints the parameters' bits after each step, and
    after a last forward pass."""
    start()
    options, more = VARIANTS[sys.argv[2]]
    torch.manual_seed(1)
    model = DDP(Net(), **SMALL, **options)
    say(bits=list(net_steps(model, 6, **more)))


def two_models():
    """Two DDP reducers in one group, in turn."""
    start()
    torch.manual_seed(1)
    steps = zip(*(net_steps(DDP(Net()), 4) for _ in range(2)))
    say(bits=[list(both) for both in steps])


def joined():
    """Ranks have data for different numbers of steps."""
    start()
    model = DDP(Known())
    with model.join():
        for step in range(5 + 2 * RANK):
            model(gradient(step, RANK)).backward()
    say(done=True)


def retained():
    """A graph from before an average can still be used. Each turn has two backward passes."""
    start()
    model = DDP(nn.Linear(4, 1))
    x = torch.ones(2, 4) * (RANK + 1)
    for _ in range(4):
        kept = sum((p * p).sum() for p in model.module.parameters())
        model(x).sum().backward()
        model(x)
        kept.backward()
    say(done=True)


def main():
    globals()[sys.argv[1]]()
    end()


if __name__ == "__main__":
    main()
