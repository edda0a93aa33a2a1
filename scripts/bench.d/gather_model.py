# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A model of a root that gathers under loss bounds: no network, no time, one process.

The buckets (DDP's own rule), the blocks, the order in which a round sends them, the loss processes
and the compensation are as in gradplane. Only the close of a round is a model: it closes as early
as the bounds allow. Of the blocks that a rank has lost, those that were sent last are missing, as
many as the bounds of their tensors allow. The others count as repaired. A real round is repaired
while it waits, so it lacks less. The model has no deadline, by which a real round may lack more.
"""

import dataclasses
import math
import re

import bounds
import cases
import numpy
import torch
import torch.distributed

FLOAT_BYTES = 4
BLOCK_ELEMENTS = bounds.block_bytes() // FLOAT_BYTES
ROTATION = 7919  # docs/wire-protocol.md
MAX_BOUND = 0.5  # dataplane/model/loss_bounds.h
FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20  # DDP's defaults
STRICT_ROUNDS = 10  # gather.strict_rounds
PLOT_SLOPE = 0.8  # PLOT's step of the sequence, as a share of its largest
COMPENSATIONS = ("zero", "rescale", "carry")
WIRE_TYPES = ("bf16", "fp16", "int8")
LARGEST_INT8 = 127


@dataclasses.dataclass
class Tensor:
    name: str
    parameter: torch.nn.Parameter
    begin: int  # element of its bucket
    end: int

    @property
    def blocks(self):
        """The blocks that have elements of the tensor."""
        return range(self.begin // BLOCK_ELEMENTS, (self.end - 1) // BLOCK_ELEMENTS + 1)


class Bucket:
    """One round of each iteration."""

    def __init__(self, named):
        self.tensors = []
        end = 0
        for name, parameter in named:
            self.tensors.append(Tensor(name, parameter, end, end + parameter.numel()))
            end += parameter.numel()
        self.elements = end
        self.blocks = math.ceil(end / BLOCK_ELEMENTS)
        self.tensors_of = [[] for _ in range(self.blocks)]
        for index, tensor in enumerate(self.tensors):
            for block in tensor.blocks:
                self.tensors_of[block].append(index)

    def gradient(self):
        return torch.cat([tensor.parameter.grad.flatten() for tensor in self.tensors])

    def set_gradient(self, flat):
        for tensor in self.tensors:
            shape = tensor.parameter.shape
            tensor.parameter.grad = flat[tensor.begin : tensor.end].view(shape).clone()


def buckets_of(network):
    """The buckets that DDP makes after the first iteration, beginning with the last parameter."""
    named = list(network.named_parameters())[::-1]
    tensors = [parameter for _, parameter in named]
    limits = [FIRST_BUCKET_BYTES, BUCKET_BYTES]
    groups, _ = torch.distributed._compute_bucket_assignment_by_size(
        tensors, limits, [False] * len(tensors)
    )
    return [Bucket([named[index] for index in group]) for group in groups]


def uniform_bounds(network, bound):
    return dict.fromkeys((name for name, _ in network.named_parameters()), bound)


def layer_of(name):
    return name.rpartition(".")[0]


def block_of(name):
    """The repeated part of the network that has a parameter, else the parameter's layer."""
    found = re.match(r"(.*?\.)?\d+(?=\.)", name)
    return found.group() if found else layer_of(name)


def thresholds_of(count):
    """PLOT's thresholds: an arithmetic sequence that decreases with the depth, with the sum 1."""
    if count == 1:
        return [1.0]
    spread = count - 1 if count % 2 or count == 2 else count - 2
    step = PLOT_SLOPE * 2 / (count * spread)
    return [max(0.0, 1 / count + step * (spread / 2 - i)) for i in range(count)]


def plot_bounds(network, budget):
    """Bounds as in control/bounds/plot.h: the first and the last layer are exact, and the layers of
    each block between share its threshold of thresholds_of(). They are scaled so that `budget` of
    all elements may be missing. The models here have no names of layers that meet a residual
    connection."""
    sizes = {name: parameter.numel() for name, parameter in network.named_parameters()}
    layers = list(dict.fromkeys(map(layer_of, sizes)))
    inner = [name for name in sizes if layer_of(name) not in (layers[0], layers[-1])]
    layers_of = {}
    for name in inner:
        layers_of.setdefault(block_of(name), set()).add(layer_of(name))
    threshold = dict(zip(layers_of, thresholds_of(len(layers_of))))
    weights = {name: threshold[block_of(name)] / len(layers_of[block_of(name)]) for name in inner}
    return {**dict.fromkeys(sizes, 0.0), **share_out(sizes, weights, budget * sum(sizes.values()))}


def share_out(sizes, weights, wanted):
    """{name: bound}. Bounds are proportional to the weights, at most MAX_BOUND, and allow `wanted`
    elements in all to be missing."""
    capped = set()
    while True:
        rest = wanted - MAX_BOUND * sum(sizes[name] for name in capped)
        open_size = sum(weights[n] * sizes[n] for n in weights if n not in capped)
        scale = rest / open_size if open_size > 0 else 0
        over = {n for n in weights if n not in capped and scale * weights[n] > MAX_BOUND}
        if not over:
            return {n: MAX_BOUND if n in capped else scale * weights[n] for n in weights}
        capped |= over


def bound_in_all(network, bound_of):
    """The share of the whole model, by size, that the bounds allow to be missing."""
    sizes = {name: parameter.numel() for name, parameter in network.named_parameters()}
    return sum(bound_of[name] * size for name, size in sizes.items()) / sum(sizes.values())


class RandomLoss:
    """Loses every frame of every rank with the same probability."""

    def __init__(self, share, ranks, rng):
        self._shares, self._rng = [share] * ranks, rng

    def lost(self, rank, count):
        """Which of `count` frames, in the order of their sending, are lost."""
        return self._rng.random_sample(count) < self._shares[rank]


class OneSidedLoss(RandomLoss):
    """Loses as many frames in all, but only those of rank 0."""

    def __init__(self, share, ranks, rng):
        super().__init__(share, ranks, rng)
        self._shares = [min(1, share * ranks)] + [0] * (ranks - 1)


class BurstyLoss:
    """The model of Gilbert and Elliott, with the bursts of the other benchmarks. Each rank has its
    own bursts."""

    def __init__(self, share, ranks, rng):
        in_burst = share / cases.BURST_LOSS
        self._leave = 1 / cases.BURST_FRAMES
        self._enter = self._leave * in_burst / (1 - in_burst)
        self._bad, self._rng = [False] * ranks, rng

    def lost(self, rank, count):
        turns, drops = self._rng.random_sample((2, count))
        states = numpy.empty(count, dtype=bool)
        bad = self._bad[rank]
        for index, turn in enumerate(turns):
            bad = turn >= self._leave if bad else turn < self._enter
            states[index] = bad
        self._bad[rank] = bad
        return states & (drops < cases.BURST_LOSS)


LOSSES = {"random": RandomLoss, "bursty": BurstyLoss, "one-sided": OneSidedLoss}


def missing_blocks(bucket, allowed, order, lost):
    """The lost blocks of one rank that were not waited for. `allowed` has how many each tensor may
    lack."""
    left = list(allowed)
    missing = numpy.zeros(bucket.blocks, dtype=bool)
    for block in order[lost][::-1]:
        touched = bucket.tensors_of[block]
        if all(left[tensor] > 0 for tensor in touched):
            missing[block] = True
            for tensor in touched:
                left[tensor] -= 1
    return missing


def rounded(rows, wire):
    """Rows of fp32 after they went in a wire type: rounded to nearest, int8 with a scale for each
    block (dataplane/reduce). Gradients here are within the range of every type."""
    if wire != "int8":
        return rows.to({"bf16": torch.bfloat16, "fp16": torch.float16}[wire]).float()
    count = rows.shape[-1]
    padded = torch.nn.functional.pad(rows, (0, -count % BLOCK_ELEMENTS))
    blocks = padded.view(*rows.shape[:-1], -1, BLOCK_ELEMENTS)
    scale = blocks.abs().amax(-1, keepdim=True) / LARGEST_INT8
    whole = torch.where(scale > 0, (blocks / scale).round(), torch.zeros(()))
    return (whole * scale).view(padded.shape)[..., :count]


class Gather:
    """The rounds of one training. If `loss` is None, everything arrives. `wire` is the wire type of
    pushes and results, or None. With `carry` rounding errors of the root are carried, too, like
    those of ranks."""

    def __init__(self, buckets, bound_of, compensation, loss, ranks, wire=None):
        self._buckets, self._compensation, self._loss = buckets, compensation, loss
        self._ranks, self._wire = ranks, wire
        self._root_residual = [torch.zeros(bucket.elements) for bucket in buckets]
        self._allowed = [
            [math.floor(bound_of[t.name] * len(t.blocks) + 1e-6) for t in bucket.tensors]
            for bucket in buckets
        ]
        self._residual = [torch.zeros(ranks, bucket.elements) for bucket in buckets]
        self._rounds = 0
        self.missing_count = self.expected_count = 0
        self._errors = []

    @property
    def missing_share(self):
        return self.missing_count / max(1, self.expected_count)

    @property
    def error(self):
        """The error of the mean gradient: the mean of |result - exact|^2 / |exact|^2."""
        return sum(self._errors) / max(1, len(self._errors))

    def mean(self, index, gradients, iteration):
        """The mean that DDP gets for bucket `index`. `gradients` has a row for each rank."""
        bucket = self._buckets[index]
        exact = gradients.mean(0)
        self._rounds += 1
        if self._wire is not None:
            result = self._narrow(index, gradients)
        elif self._loss is None or iteration < STRICT_ROUNDS:
            return exact
        else:
            result = self._combine(index, gradients, self._present(bucket, self._allowed[index]))
        norm = exact.square().sum().item()
        if norm > 0:
            self._errors.append((result - exact).square().sum().item() / norm)
        return result

    def _present(self, bucket, allowed):
        start = ROTATION * self._rounds % bucket.blocks
        order = (numpy.arange(bucket.blocks) + start) % bucket.blocks
        rows = []
        for rank in range(self._ranks):
            lost = self._loss.lost(rank, bucket.blocks)
            rows.append(missing_blocks(bucket, allowed, order, lost))
        missing = torch.from_numpy(numpy.stack(rows))
        self.missing_count += int(missing.sum())
        self.expected_count += missing.numel()
        return ~missing.repeat_interleave(BLOCK_ELEMENTS, dim=1)[:, : bucket.elements]

    def _narrow(self, index, gradients):
        """The mean with a wire type. DDP divides by the number of ranks before it sums."""
        offered = gradients / self._ranks + self._residual[index]
        pushed = rounded(offered, self._wire)
        total = pushed.sum(0) + self._root_residual[index]
        result = rounded(total, self._wire)
        if self._compensation == "carry":
            self._residual[index] = offered - pushed
            self._root_residual[index] = total - result
        return result

    def _combine(self, index, gradients, present):
        if self._compensation == "carry":
            offered = gradients + self._residual[index]
            self._residual[index] = offered * ~present
            return (offered * present).sum(0) / self._ranks
        total = (gradients * present).sum(0)
        if self._compensation == "rescale":
            return total / present.sum(0).clamp(min=1)
        return total / self._ranks
