#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The training that `scripts/bench train` measures: PyTorch DDP, and nothing else.

Start one process per rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set. The models:

  digits         a convolutional network on scikit-learn's handwritten digits, SGD with momentum
  digits-small   the same with a quarter of the parameters, and less than half of the batch
  text           a causal transformer, character by character, on the licences of a Debian system,
                 Adam

A rank prints lines of JSON: one when it begins, one after every epoch, one at its end. Times are
CLOCK_MONOTONIC. The time in which rank 0 evaluates does not count.

The time in synchronisation is the time of a step minus the median of LOCAL_STEPS local steps. All
ranks make these at the same time before the first step, with a copy of the network and without
synchronisation. So it has the time that the network adds, and the time by which ranks that share a
CPU slow each other down more than in local steps.
"""

import argparse
import contextlib
import copy
import hashlib
import json
import math
import os
import pathlib
import statistics
import string
import time

import numpy
import torch
import torch.distributed
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

LOCAL_STEPS = 8
LICENCES = pathlib.Path("/usr/share/common-licenses")
# In this order, so that the part that is held out, the tail, is the end of the GPL of version 3.
LICENCE_NAMES = ("Apache-2.0", "Artistic", "GFDL-1.3", "MPL-1.1", "MPL-2.0", "LGPL-2.1", "GPL-2",
                 "GPL-3")  # fmt: skip


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=list(TASKS), default="digits")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", type=int, metavar="RANK",
                        help="sum at a server beside this rank")  # fmt: skip
    parser.add_argument("--compute-ms", type=float, default=0, metavar="MS",
                        help="each step computes for so long, or waits for the rest")  # fmt: skip
    parser.add_argument("--slow", type=int, metavar="RANK", help="a rank that computes slower")
    parser.add_argument("--slow-factor", type=float, default=3, help="so many times")
    parser.add_argument("--local-steps", type=int, metavar="STEPS",
                        help="sum no gradients, but average the parameters each so many steps")
    parser.add_argument("--averaged", action="store_true",
                        help="begin another forward pass at the end of each epoch, at which what "
                        "lets replicas differ takes the mean of their parameters, if it is due")
    return parser.parse_args()


class Digits:
    """Images of 8x8 pixels. An epoch has all training images, each on one rank."""

    MEASURE = "accuracy"
    TEST_IMAGES = 360
    BATCH = 32  # images per rank and step
    WIDTH = 560

    def __init__(self, seed, rank, ranks):
        from sklearn.datasets import load_digits  # the other model does not need it

        digits = load_digits()
        images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
        labels = torch.tensor(digits.target)
        order = torch.tensor(numpy.random.RandomState(seed).permutation(len(labels)))
        train = order[self.TEST_IMAGES :]
        self._train = images[train], labels[train]
        self._test = images[order[: self.TEST_IMAGES]], labels[order[: self.TEST_IMAGES]]
        self._seed, self._rank, self._ranks = seed, rank, ranks

    def about(self):
        return {"training_samples": len(self._train[1]), "test_samples": self.TEST_IMAGES}

    def network(self):
        """A network of 0.37 million parameters. Its fully connected layers are convolutions over
        the whole image, because Debian's torch multiplies plain matrices ten times slower."""
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 40, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(40, self.WIDTH, 4), nn.ReLU(),
            nn.Conv2d(self.WIDTH, 10, 1), nn.Flatten(),
        )  # fmt: skip

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, 0.1, momentum=0.9)

    def batches(self, epoch):
        images, labels = self._train
        shuffle = numpy.random.RandomState(1000 * self._seed + epoch)
        order = torch.tensor(shuffle.permutation(len(labels)))
        # All ranks make equally many steps.
        for step in range(len(labels) // (self.BATCH * self._ranks)):
            begin = (step * self._ranks + self._rank) * self.BATCH
            mine = order[begin : begin + self.BATCH]
            yield images[mine], labels[mine]

    def loss(self, output, labels):
        return functional.cross_entropy(output, labels)

    def evaluate(self, network):
        images, labels = self._test
        return (network(images).argmax(1) == labels).sum().item() / len(labels)


class SmallDigits(Digits):
    """The same, but so small that two CPUs can train eight ranks. An epoch has twelve steps."""

    BATCH = 14
    WIDTH = 140


def normed(norm, hidden):
    """Normalises only over the width, because later places of a window must not have an effect."""
    return norm(hidden.transpose(1, 2)).transpose(1, 2)


class Block(nn.Module):
    """Attention and a perceptron, each with a residual connection. Linear maps are convolutions of
    width 1, as in GPT-2, because Debian's torch multiplies plain matrices ten times slower."""

    def __init__(self, width, heads):
        super().__init__()
        self._heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.query_key_value = nn.Conv1d(width, 3 * width, 1)
        self.joined = nn.Conv1d(width, width, 1)
        self.perceptron = nn.Sequential(
            nn.Conv1d(width, 4 * width, 1), nn.GELU(), nn.Conv1d(4 * width, width, 1)
        )

    def _attend(self, hidden, future):
        windows, width, length = hidden.shape
        split = self.query_key_value(hidden).view(windows, 3, self._heads, -1, length)
        query, key, value = split.transpose(3, 4).unbind(1)
        scores = query @ key.transpose(2, 3) / math.sqrt(width // self._heads) + future
        attended = scores.softmax(-1) @ value
        return self.joined(attended.transpose(2, 3).reshape(windows, width, length))

    def forward(self, hidden, future):  # (window, width, place)
        hidden = hidden + self._attend(normed(self.norms[0], hidden), future)
        return hidden + self.perceptron(normed(self.norms[1], hidden))


class CausalTransformer(nn.Module):
    """A network of 0.53 million parameters. Without dropout the seed alone decides its training."""

    def __init__(self, characters, window, width=144, heads=4, blocks=2):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Parameter(torch.zeros(window, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.output = nn.Conv1d(width, characters, 1)
        self.register_buffer("future", torch.full((window, window), -math.inf).triu(1))

    def forward(self, text):
        hidden = (self.characters(text) + self.positions).transpose(1, 2)
        for block in self.blocks:
            hidden = block(hidden, self.future)
        return self.output(normed(self.norm, hidden))  # (window, character, place)


class Text:
    """A text, of which every rank reads windows at random places of its own part."""

    MEASURE = "loss"
    ALPHABET = string.printable
    WINDOW = 24  # characters
    BATCH = 16  # windows per rank and step
    STEPS = 4  # of an epoch
    HELD_OUT = 12_000  # characters at the end, from which the test windows come
    TEST_WINDOWS = 64

    def __init__(self, seed, rank, ranks):
        names = [LICENCES / name for name in LICENCE_NAMES]
        text = "".join(path.read_text(errors="replace") for path in names)
        index = {character: number for number, character in enumerate(self.ALPHABET)}
        codes = torch.tensor([index.get(character, index["?"]) for character in text])
        self._train, self._test = codes[: -self.HELD_OUT], codes[-self.HELD_OUT :]
        part = len(self._train) // ranks
        self._mine = self._train[rank * part : (rank + 1) * part]
        self._seed, self._rank = seed, rank

    def about(self):
        """A description, with the loss of a model that knows only the frequencies of characters."""
        counts = torch.bincount(self._train, minlength=len(self.ALPHABET)).float() + 1
        surprise = -(counts / counts.sum()).log()
        return {
            "training_samples": len(self._train),
            "test_samples": len(self._test),
            "unigram_loss": surprise[self._test].mean().item(),
        }

    def network(self):
        return CausalTransformer(len(self.ALPHABET), self.WINDOW)

    def optimizer(self, parameters):
        return torch.optim.Adam(parameters, 3e-3)

    def _windows(self, text, begins):
        windows = torch.stack([text[begin : begin + self.WINDOW + 1] for begin in begins])
        return windows[:, :-1], windows[:, 1:]

    def batches(self, epoch):
        places = numpy.random.RandomState([self._seed, epoch, self._rank])
        for _ in range(self.STEPS):
            begins = places.randint(len(self._mine) - self.WINDOW, size=self.BATCH)
            yield self._windows(self._mine, begins)

    def loss(self, output, targets):
        return functional.cross_entropy(output, targets)

    def evaluate(self, network):
        last = len(self._test) - self.WINDOW - 1
        begins = numpy.linspace(0, last, self.TEST_WINDOWS).astype(int)
        inputs, targets = self._windows(self._test, begins)
        return self.loss(network(inputs), targets).item()


TASKS = {"digits": Digits, "digits-small": SmallDigits, "text": Text}


def step(network, optimizer, loss, batch):
    """Makes one step of training. Returns its seconds."""
    begun = time.monotonic()
    optimizer.zero_grad()
    loss(network(batch[0]), batch[1]).backward()
    optimizer.step()
    return time.monotonic() - begun


def local_step_seconds(task, network):
    """The median seconds of steps without other ranks. They train a copy of the network."""
    own = copy.deepcopy(network)
    optimizer = task.optimizer(own.parameters())
    batch = next(iter(task.batches(0)))
    return statistics.median(
        step(own, optimizer, task.loss, batch) for _ in range(LOCAL_STEPS)
    )


def digest(network):
    """A hash that is equal on two ranks if all parameters have the same bits."""
    found = hashlib.sha256()
    for parameter in network.parameters():
        found.update(parameter.detach().numpy().tobytes())
    return found.hexdigest()


def percentile(samples, share):
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def say(**what):
    print(json.dumps(what), flush=True)


def server_hook(server, rank, ranks):
    """A hook of DDP that sends each bucket to one rank, which sends back the mean."""
    others = [other for other in range(ranks) if other != rank]

    def wait_for(works):
        for work in list(works):
            work.wait()

    def serve(mine):
        parts = [torch.empty_like(mine) for _ in others]
        wait_for([torch.distributed.irecv(p, src=o) for p, o in zip(parts, others)])
        for part in parts:
            mine += part
        mine /= ranks
        wait_for([torch.distributed.isend(mine, dst=o) for o in others])

    def hook(_, bucket):
        mine = bucket.buffer()
        if rank == server:
            serve(mine)
        else:
            torch.distributed.send(mine, dst=server)
            torch.distributed.recv(mine, src=server)
        done = torch.futures.Future()
        done.set_result(mine)
        return done

    return hook


def average(network):
    """Averages the parameters over all ranks, as local SGD does."""
    flat = nn.utils.parameters_to_vector(network.parameters()).detach()
    torch.distributed.all_reduce(flat)
    flat /= torch.distributed.get_world_size()
    nn.utils.vector_to_parameters(flat, network.parameters())


class Learner:
    """Makes steps as the arguments say. `rest_s` is a pause in each step, which stands for
    computing on another machine."""

    def __init__(self, network, optimizer, loss, arguments, rest_s):
        self._network, self._optimizer, self._loss = network, optimizer, loss
        self._local_steps, self._averaged = arguments.local_steps, arguments.averaged
        self._rest_s = rest_s
        self._steps = 0

    def step(self, batch):
        """Makes a step. Returns its seconds."""
        begun = time.monotonic()
        time.sleep(self._rest_s)
        alone = self._network.no_sync() if self._local_steps else contextlib.nullcontext()
        with alone:
            step(self._network, self._optimizer, self._loss, batch)
        self._steps += 1
        if self._local_steps and self._steps % self._local_steps == 0:
            average(self._network)
        return time.monotonic() - begun

    def epoch(self, batches):
        batch = None
        steps = []
        for batch in batches:
            steps.append(self.step(batch))
        if self._averaged:
            self._network(batch[0])
        return steps


def rest_seconds(arguments, rank, local_s):
    factor = arguments.slow_factor if rank == arguments.slow else 1
    return max(0.0, factor * arguments.compute_ms / 1000 - local_s)


def train(task, rank, arguments, hook=None):
    network = DistributedDataParallel(task.network())
    if hook:
        network.register_comm_hook(None, hook)
    optimizer = task.optimizer(network.parameters())
    local_s = local_step_seconds(task, network.module)
    rest_s = rest_seconds(arguments, rank, local_s)
    learner = Learner(network, optimizer, task.loss, arguments, rest_s)
    tell_of(task, rank, arguments.epochs, learner, network.module, local_s + rest_s)


def tell_of(task, rank, epochs, learner, network, local_s):
    """Trains. `learner` has epoch(batches), which trains `network` and returns the seconds of each
    step. After an epoch `network` is the same on every rank."""
    parameters = sum(parameter.numel() for parameter in network.parameters())
    begin_ns, begin_cpu_s = time.monotonic_ns(), time.process_time()
    say(begin_ns=begin_ns, local_step_s=local_s, parameters=parameters,
        gradient_bytes=4 * parameters, **task.about())  # fmt: skip
    evaluating_s = 0.0
    for epoch in range(1, epochs + 1):
        steps = learner.epoch(task.batches(epoch))
        paused = time.monotonic()
        report = {"epoch": epoch, "seconds": paused - begin_ns / 1e9 - evaluating_s,
                  "digest": digest(network), "step_seconds": steps,
                  "mean_s": statistics.mean(steps), "p50_s": percentile(steps, 0.5),
                  "p99_s": percentile(steps, 0.99),
                  "sync_s": sum(max(0.0, seconds - local_s) for seconds in steps)}  # fmt: skip
        if rank == 0:
            with torch.no_grad():
                report[task.MEASURE] = task.evaluate(network)
        say(**report)
        evaluating_s += time.monotonic() - paused
    say(end_ns=time.monotonic_ns(), cpu_s=time.process_time() - begin_cpu_s)


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    task = TASKS[arguments.model](arguments.seed, rank, ranks)
    torch.distributed.init_process_group("gloo")
    hook = None
    if arguments.server is not None:
        hook = server_hook(arguments.server, rank, ranks)
    train(task, rank, arguments, hook)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
