#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Trains a small convolutional network on scikit-learn's handwritten digits with PyTorch DDP.

Start one process per rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set. Each prints JSON
lines: {"iteration": ...} after every step and {"epoch": ...} after every epoch.
"""

import argparse
import contextlib
import hashlib
import json
import statistics
import time

import numpy
import torch
import torch.distributed
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

TEST_SAMPLES = 360
BASELINE_STEPS = 5


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="samples per rank and step")
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def load(seed):
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.tensor(numpy.random.RandomState(seed).permutation(len(labels)))
    train, test = order[TEST_SAMPLES:], order[:TEST_SAMPLES]
    return TensorDataset(images[train], labels[train]), (images[test], labels[test])


def make_network():
    """A network of about 1.1 million parameters, so with 4.4 MB of gradients in each step."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1024, 1024), nn.ReLU(),
        nn.Linear(1024, 10),
    )  # fmt: skip


class Trainer:
    def __init__(self, arguments):
        torch.manual_seed(arguments.seed)
        dataset, self.test = load(arguments.seed)
        self.sampler = DistributedSampler(dataset, shuffle=True, seed=arguments.seed)
        self.loader = DataLoader(dataset, arguments.batch, sampler=self.sampler)
        self.network = DistributedDataParallel(make_network())
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.network.parameters(), arguments.rate, momentum=0.9)

    def step(self, images, labels, synchronised=True):
        """Makes one step of training. Returns the seconds of its backward pass and of all of it."""
        context = contextlib.nullcontext() if synchronised else self.network.no_sync()
        begun = time.perf_counter()
        with context:
            self.optimizer.zero_grad()
            loss = self.loss(self.network(images), labels)
            before_backward = time.perf_counter()
            loss.backward()
            backward = time.perf_counter() - before_backward
        if synchronised:
            self.optimizer.step()
        return backward, time.perf_counter() - begun

    def backward_without_sync(self):
        """The seconds of a backward pass without synchronisation. No parameter changes."""
        images, labels = next(iter(self.loader))
        times = [self.step(images, labels, False)[0] for _ in range(BASELINE_STEPS)]
        return statistics.median(times)

    def accuracy(self):
        images, labels = self.test
        with torch.no_grad():
            return (self.network.module(images).argmax(1) == labels).float().mean().item()

    def parameters_hash(self):
        digest = hashlib.sha256()
        for parameter in self.network.parameters():
            digest.update(parameter.detach().numpy().tobytes())
        return digest.hexdigest()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    trainer = Trainer(arguments)
    baseline = trainer.backward_without_sync()
    for epoch in range(1, arguments.epochs + 1):
        trainer.sampler.set_epoch(epoch)
        step_seconds, sync_seconds = [], []
        for iteration, (images, labels) in enumerate(trainer.loader, start=1):
            backward, whole = trainer.step(images, labels)
            step_seconds.append(whole)
            sync_seconds.append(max(0.0, backward - baseline))
            progress = {"epoch": epoch, "of": len(trainer.loader), "seconds": whole}
            print(json.dumps({"iteration": iteration, **progress}), flush=True)
        report = {
            "epoch": epoch,
            "accuracy": trainer.accuracy(),
            "parameters_sha256": trainer.parameters_hash(),
            "step_seconds": step_seconds,
            "sync_seconds": sync_seconds,
        }
        print(json.dumps(report), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
