# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A program for torchrun. In its first attempt rank 1 ends with an error after a sum."""

import os
import sys

import torch
import torch.distributed as dist
from rank_basics import RANK, let_gloo_free

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
values = torch.full((1000,), RANK + 1.0)
dist.all_reduce(values)
if attempt == 0 and RANK == 1:
    sys.exit(1)
print(f"{attempt}/{RANK}:{values[0].item()}", flush=True)
dist.all_reduce(torch.ones(3))
let_gloo_free()
