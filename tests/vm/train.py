# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A small training with DDP for a slow machine. Prints a digest of the replica's parameters."""

import hashlib

import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 10
WIDTH = 256

torch.set_num_threads(1)
torch.manual_seed(1)
torch.distributed.init_process_group("gloo")
network = DistributedDataParallel(
    nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
)
optimizer = torch.optim.SGD(network.parameters(), 0.01)
torch.manual_seed(100 + torch.distributed.get_rank())
for _ in range(STEPS):
    optimizer.zero_grad()
    inputs = torch.randn(8, WIDTH)
    nn.functional.mse_loss(network(inputs), inputs.sum(1, keepdim=True)).backward()
    optimizer.step()
digest = hashlib.sha256()
for parameter in network.parameters():
    digest.update(parameter.detach().numpy().tobytes())
print(f"parameters {digest.hexdigest()}", flush=True)
torch.distributed.destroy_process_group()
