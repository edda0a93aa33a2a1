# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A program of mpi4py that does not know of gradplane. Rank 0 prints the results of all
ranks."""

import hashlib

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
lines = []


def said(name, array):
    lines.append(f"{rank} {name} {hashlib.sha256(array.tobytes()).hexdigest()}")


for dtype in (np.float32, np.float64, np.int32, np.int64):
    given = (np.arange(40000) * (rank + 1) % 97).astype(dtype)
    result = np.empty_like(given)
    world.Allreduce(given, result)
    said(f"sum of {given.dtype}", result)
given = np.arange(5000, dtype=np.float64) - 100 * rank
for name, op in (("largest", MPI.MAX), ("smallest", MPI.MIN)):
    result = given.copy()
    world.Allreduce(MPI.IN_PLACE, result, op)
    said(name, result)
requests, results = [], []
for turn in range(3):
    results.append(np.full(30000, rank + turn, dtype=np.float32))
    requests.append(world.Iallreduce(MPI.IN_PLACE, results[-1]))
MPI.Request.Waitall(requests)
for result in results:
    said("under way", result)
given = np.arange(2000 * size, dtype=np.int64) + rank
shard = np.empty(2000, dtype=np.int64)
world.Reduce_scatter_block(given, shard)
said("shard", shard)
world.Reduce_scatter_block(MPI.IN_PLACE, given)
said("shard in place", given[:2000])
# mpi4py pickles objects, and MPI carries them itself.
lines.append(f"{rank} {world.allreduce(rank)} {world.bcast('x' if rank == 0 else None)}")
for said_by_rank in world.gather(lines) or ():
    print("\n".join(said_by_rank))
