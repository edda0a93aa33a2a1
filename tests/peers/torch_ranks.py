#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""All ranks of one torch.distributed job over Gloo, each in its own network namespace.

The parent imports torch once and forks a child for each rank, so eight ranks cost one import. Rank
R reads commands from DIR/rank-R.in, answers on DIR/rank-R.out and logs to DIR/rank-R.log. The FIFOs
must exist before. scripts/bench.d/ranks.py describes commands and answers.
"""

import argparse
import contextlib
import ctypes
import datetime
import functools
import json
import os
import signal
import sys
import time
import zlib

import numpy
import torch
import torch.distributed as dist

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
SPIN_NS = 100_000
MAX_ERROR_CHARACTERS = 1000
INDEX_FACTOR, SEED_FACTOR, RANK_FACTOR = 2654435761, 40503, 97
FLOAT_BYTES = 4

libc = ctypes.CDLL(None, use_errno=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespaces", required=True, help="one for each rank, with commas")
    parser.add_argument("--master", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--interface", required=True, help="of Gloo's connections, as dp0")
    parser.add_argument("--fifos", required=True, metavar="DIR")
    parser.add_argument("--gradplane-sockets", default="", help="one for each rank, with commas")
    parser.add_argument("--timeout-s", type=int, default=120, help="of each collective")
    arguments = parser.parse_args()
    arguments.namespaces = arguments.namespaces.split(",")
    arguments.sockets = [s for s in arguments.gradplane_sockets.split(",") if s]
    if arguments.sockets and len(arguments.sockets) != len(arguments.namespaces):
        parser.error("--gradplane-sockets: as many as namespaces")
    return arguments


@functools.lru_cache(maxsize=1)
def index_part(count):
    return numpy.arange(count, dtype=numpy.uint32) * numpy.uint32(INDEX_FACTOR)


def contribution(count, seed, rank):
    """Small integers, so that their sum is the same in any order."""
    offset = numpy.uint32((seed * SEED_FACTOR + rank * RANK_FACTOR) & 0xFFFFFFFF)
    return ((index_part(count) + offset) >> numpy.uint32(24)).astype(numpy.float32)


def is_of_first(result, seed):
    return bool(numpy.array_equal(result, contribution(len(result), seed, 0)))


def is_sum(result, seed, world):
    expected = numpy.zeros(len(result), dtype=numpy.float32)
    for rank in range(world):
        expected += contribution(len(result), seed, rank)
    return bool(numpy.array_equal(result, expected))


def wait_until(at_ns):
    with contextlib.suppress(ValueError):  # the time is over already
        time.sleep((at_ns - SPIN_NS - time.monotonic_ns()) / 1e9)
    while time.monotonic_ns() < at_ns:
        pass


def all_reduce(tensor, buckets):
    if buckets == 1:
        dist.all_reduce(tensor)
        return
    works = [dist.all_reduce(part, async_op=True) for part in tensor.tensor_split(buckets)]
    for work in works:
        work.wait()


def run_round(command, rank, world):
    first_cpu_ns = time.process_time_ns()
    count, seed = command["bytes"] // FLOAT_BYTES, command["seed"]
    is_broadcast = command.get("op") == "broadcast"
    tensor = torch.from_numpy(contribution(count, seed, rank))
    wait_until(command["at_ns"])
    start_ns, start_cpu_ns = time.monotonic_ns(), time.process_time_ns()
    if is_broadcast:
        dist.broadcast(tensor, 0)
    else:
        all_reduce(tensor, command.get("buckets", 1))
    end_ns, end_cpu_ns = time.monotonic_ns(), time.process_time_ns()
    if command.get("spoil"):  # for tests: the check must find it
        tensor[0] += 1
    result = tensor.numpy()
    answer = {
        "rank": rank,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "correct": is_of_first(result, seed) if is_broadcast else is_sum(result, seed, world),
        "crc": f"{zlib.crc32(result):08x}",
    }
    # Preparing and checking the data is not measured.
    last_cpu_ns = time.process_time_ns()
    answer["other_cpu_ns"] = start_cpu_ns - first_cpu_ns + last_cpu_ns - end_cpu_ns
    return answer


def follow_commands(commands, answer, rank, world):
    for line in commands:
        command = json.loads(line)
        if command["do"] == "end":
            return
        answer(run_round(command, rank, world))


def enter_namespace(name):
    """Moves only the calling thread, so the process must have no other."""
    with open(f"/run/netns/{name}", "rb") as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"network namespace {name}: {os.strerror(error)}")


def set_environment(arguments, rank):
    """Sets what gradplane's shim and Gloo read when the process group is made."""
    address, port = arguments.master.rsplit(":", 1)
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(len(arguments.namespaces)),
        MASTER_ADDR=address, MASTER_PORT=port, GLOO_SOCKET_IFNAME=arguments.interface,
        USE_LIBUV="0",  # Debian 13's PyTorch lacks libuv
    )  # fmt: skip
    if arguments.sockets:
        os.environ["GRADPLANE_SOCKET"] = arguments.sockets[rank]


def run_rank(arguments, rank):
    """Runs a rank in a child process. Returns its exit code."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    base = f"{arguments.fifos}/rank-{rank}"
    log = os.open(f"{base}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    with open(f"{base}.in", encoding="utf-8") as commands, open(
        f"{base}.out", "w", encoding="utf-8"
    ) as answers:

        def answer(message):
            answers.write(json.dumps(message) + "\n")
            answers.flush()

        try:
            enter_namespace(arguments.namespaces[rank])
            set_environment(arguments, rank)
            dist.init_process_group(
                "gloo", timeout=datetime.timedelta(seconds=arguments.timeout_s)
            )
            dist.all_reduce(torch.zeros(1))  # makes and uses every connection
            answer({"ready": True, "rank": rank})
            follow_commands(commands, answer, rank, len(arguments.namespaces))
            dist.destroy_process_group()
            return 0
        except Exception as error:  # an exception of a collective is this rank's answer
            answer({"rank": rank, "error": f"{error!r}"[:MAX_ERROR_CHARACTERS]})
            return 1


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)
    ranks = {}
    for rank in range(len(arguments.namespaces)):
        pid = os.fork()
        if pid == 0:
            sys.exit(run_rank(arguments, rank))
        ranks[pid] = rank
    failed = 0
    while ranks:
        pid, status = os.wait()
        if status != 0:
            code = os.waitstatus_to_exitcode(status)
            print(f"rank {ranks[pid]} ended with code {code}", file=sys.stderr, flush=True)
            failed += 1
        del ranks[pid]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
