#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The programs that `scripts/bench reach` measures: a model of train_job.py, trained in other ways
than by plain DDP. They know nothing of gradplane, and print what train_job.py prints.

  ddp     gradients are summed in each step
  zero    the same, and each rank has the optimizer's state of its own part of the parameters
          (ZeroRedundancyOptimizer), which it sends to the others after each step
  fsdp    each rank has its own part of parameters, gradients and optimizer's state, and gathers the
          parameters for each pass (FullyShardedDataParallel); PyTorch 2.6 or later
  fsdp2   the same by fully_shard(), for each layer by itself; PyTorch 2.6 or later
  mpi4py  gradients are summed by MPI_Allreduce, as one vector, and PyTorch knows of one rank alone;
          mpirun starts the ranks
  diloco  each rank trains alone, and every few steps the ranks average how far they came; an outer
          Nesterov momentum follows that (DiLoCo: Douillard et al., 2023, algorithm 1)
"""

import argparse
import copy
import os
import pathlib
import sys
import time

import torch
import torch.distributed
import train_job
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

PEERS = pathlib.Path(__file__).resolve().parents[2] / "tests/peers"


class Learner:
    """`network` is what evaluation sees."""

    def epoch(self, batches):
        return [self.step(batch) for batch in batches]


class Ddp(Learner):
    def __init__(self, task):
        self._replica = DistributedDataParallel(task.network())
        self.network = self._replica.module
        self._optimizer = self.optimizer(task)
        self._loss = task.loss

    def optimizer(self, task):
        return task.optimizer(self._replica.parameters())

    def step(self, batch):
        return train_job.step(self._replica, self._optimizer, self._loss, batch)


class Zero(Ddp):
    def optimizer(self, task):
        plain = task.optimizer(self._replica.parameters())
        chosen = {k: v for k, v in plain.defaults.items() if k in ("lr", "momentum", "betas")}
        return ZeroRedundancyOptimizer(self._replica.parameters(), type(plain), **chosen)


class Fsdp(Learner):
    def __init__(self, task):
        from torch.distributed.fsdp import FullyShardedDataParallel  # of this program alone

        self.network = task.network()
        self._sharded = FullyShardedDataParallel(copy.deepcopy(self.network),
                                                 device_id=torch.device("cpu"))  # fmt: skip
        self._whole = FullyShardedDataParallel.summon_full_params
        self._optimizer = task.optimizer(self._sharded.parameters())
        self._loss = task.loss

    def step(self, batch):
        return train_job.step(self._sharded, self._optimizer, self._loss, batch)

    def epoch(self, batches):
        steps = super().epoch(batches)
        with torch.no_grad(), self._whole(self._sharded, writeback=False):
            for own, learned in zip(self.network.parameters(), self._sharded.parameters()):
                own.copy_(learned)
        return steps


class Fsdp2(Learner):
    def __init__(self, task):
        sys.path.append(str(PEERS))
        import host_streams  # of this program alone
        from torch.distributed.device_mesh import init_device_mesh

        self.network = task.network()
        self._sharded = copy.deepcopy(self.network)
        mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        for module in [*self._layers(), self._sharded]:
            host_streams.fully_shard(module, mesh)
        self._optimizer = task.optimizer(self._sharded.parameters())
        self._loss = task.loss

    def _layers(self):
        for module in self._sharded.children():
            yield from module if isinstance(module, nn.ModuleList) else [module]

    def step(self, batch):
        return train_job.step(self._sharded, self._optimizer, self._loss, batch)

    def epoch(self, batches):
        steps = super().epoch(batches)
        with torch.no_grad():
            for own, learned in zip(self.network.parameters(), self._sharded.parameters()):
                own.copy_(learned.full_tensor())
        return steps


class Mpi4py(Learner):
    def __init__(self, task):
        from mpi4py import MPI  # of this program alone

        self._world, self._in_place = MPI.COMM_WORLD, MPI.IN_PLACE
        self.network = task.network()
        self._optimizer = task.optimizer(self.network.parameters())
        self._loss = task.loss

    def step(self, batch):
        begun = time.monotonic()
        self._optimizer.zero_grad()
        self._loss(self.network(batch[0]), batch[1]).backward()
        gradients = [parameter.grad for parameter in self.network.parameters()]
        vector = nn.utils.parameters_to_vector(gradients)
        self._world.Allreduce(self._in_place, vector.numpy())
        nn.utils.vector_to_parameters(vector / self._world.Get_size(), gradients)
        self._optimizer.step()
        return time.monotonic() - begun


class DiLoCo(Learner):
    INNER_STEPS = 8
    OUTER_RATE = 0.7
    OUTER_MOMENTUM = 0.9

    def __init__(self, task):
        self.network = task.network()  # of the outer optimizer, the same on every rank
        start = self._vector(self.network)
        torch.distributed.broadcast(start, 0)
        nn.utils.vector_to_parameters(start.clone(), self.network.parameters())
        self._own = task.network()
        self._own.load_state_dict(self.network.state_dict())
        self._optimizer = task.optimizer(self._own.parameters())
        self._loss = task.loss
        self._momentum = torch.zeros_like(self._vector(self.network))
        self._steps = 0

    @staticmethod
    def _vector(network):
        return nn.utils.parameters_to_vector(network.parameters()).detach()

    def step(self, batch):
        begun = time.monotonic()
        train_job.step(self._own, self._optimizer, self._loss, batch)
        self._steps += 1
        if self._steps % self.INNER_STEPS == 0:
            self._outer_step()
        return time.monotonic() - begun

    def _outer_step(self):
        outer = self._vector(self.network)
        gradient = outer - self._vector(self._own)
        torch.distributed.all_reduce(gradient)
        gradient /= torch.distributed.get_world_size()
        self._momentum = self.OUTER_MOMENTUM * self._momentum + gradient
        outer -= self.OUTER_RATE * (gradient + self.OUTER_MOMENTUM * self._momentum)
        for network in (self.network, self._own):
            nn.utils.vector_to_parameters(outer.clone(), network.parameters())


PROGRAMS = {"ddp": Ddp, "zero": Zero, "fsdp": Fsdp, "fsdp2": Fsdp2, "diloco": DiLoCo,
            "mpi4py": Mpi4py}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", choices=list(PROGRAMS), required=True)
    parser.add_argument("--model", choices=list(train_job.TASKS), required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    is_mpi = arguments.program == "mpi4py"
    names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") if is_mpi else ("RANK", "WORLD_SIZE")
    rank, ranks = (int(os.environ[name]) for name in names)
    task = train_job.TASKS[arguments.model](arguments.seed, rank, ranks)
    if not is_mpi:
        torch.distributed.init_process_group("gloo")
    learner = PROGRAMS[arguments.program](task)
    local_s = train_job.local_step_seconds(task, learner.network)
    train_job.tell_of(task, rank, arguments.epochs, learner, learner.network, local_s)
    if not is_mpi:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
