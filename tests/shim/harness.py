# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Starts the ranks of a torch program as processes and collects their output."""

import contextlib
import glob
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from rank_starts import PYTHON, fork, may_be_forked

# Torch programs that run one after the other in one process, because importing torch takes most of
# a run. wrong_input is last, because Gloo sometimes shows a failed operation to a barrier right
# after it.
EXACT = ("dtypes+ops_and_shapes+barrier_implies_wait+asynchronous+forks+groups+copies+copied_views+"
         "mixture+refused_copies+wrong_input")

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")
PRELOAD = os.environ.get("GP_TEST_PRELOAD", BUILD + "/trainer-shim/preload/libgradplane_preload.so")
FAKE_ADAPTER_DIR = os.environ.get("GP_TEST_FAKE_ADAPTER_DIR", BUILD + "/tests/shim")
# The name of an adapter's file contains the version of its libtorch.
ADAPTER = os.path.basename("".join(glob.glob(FAKE_ADAPTER_DIR + "/libgradplane_torch_*.so")[:1]))
TORCH = tuple(int(n) for n in re.findall(r"\d+", ADAPTER))  # the version, such as (2, 6)
SKIP = 77


def exact_ops(world):
    """The carried operations of EXACT. With two ranks, each half in `groups` is one rank."""
    return sum(exact_counts(world).values())


def exact_counts(world):
    counts = {"all_reduce": 25 + 10 + 20 + 40 + 9 + (16 if world >= 4 else 11) + 12 + 2,
              "broadcast": 1 + 36 + 4 + 13 + (world >= 4),
              "all_gather": 1 + 36 + 6 + 13 + 1 + (world >= 4)}
    if TORCH >= (2, 6):  # copies bf16 and bool, too, and has forms with one tensor
        counts["broadcast"] += 2
        counts["all_gather"] += 1
        counts["reduce_scatter"] = 1
    if TORCH >= (2, 11):  # has means, and a reduce_scatter of lists, which Gloo refused before
        counts["all_reduce"] += 1 + world
    return counts


def skip_without_torch():
    code = "import torch.distributed as d; assert d.is_gloo_available()"
    probe = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True)
    if probe.returncode != 0:
        print("SKIP: python3-torch with Gloo is not installed for", PYTHON)
        sys.exit(SKIP)


def free_port():
    """A free port below the kernel's range of ephemeral ports, so no other process is given it."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


def copy_for_any_user(folder):
    """Copies a rank's files to where a user can read them who may not read this checkout."""
    os.chmod(folder, 0o755)
    build = os.path.dirname(os.path.dirname(PRELOAD))
    adapter = os.path.join(build, "torch", ADAPTER)
    programs = [f"{HERE}/{name}" for name in os.listdir(HERE) if name.endswith(".py")]
    for path in (PRELOAD, adapter, *programs):
        shutil.copy(path, folder)
    return {"LD_PRELOAD": os.path.join(folder, os.path.basename(PRELOAD))}


class Outcome:
    def __init__(self, process, out, err):
        self.code = process.returncode
        self.out = out
        self.err = err

    @property
    def all_said(self):
        """The JSON objects that the rank printed."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    @property
    def said(self):
        """The same objects, merged into one."""
        return {key: value for one in self.all_said for key, value in one.items()}


def run_ranks(program, world=2, env=None, rank_env=None, preload=True, timeout=120, args=(),
              user=None, here=HERE, source="rank_programs.py", forked=True):
    """Runs PROGRAM of `source` on `world` ranks, and returns one Outcome for each rank.

    Each rank is a process. Unless `forked` is False, it is forked from a process that has imported
    torch, if that makes no difference to the rank.
    """
    port = free_port()
    processes = []
    for rank in range(world):
        own = {k: v for k, v in os.environ.items() if not k.startswith("GRADPLANE_")}
        own.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port), OMP_NUM_THREADS="1", USE_LIBUV="0")
        if preload:
            own["LD_PRELOAD"] = PRELOAD
        own.update(env or {})
        own.update((rank_env or {}).get(rank, {}))
        if own.get("LD_PRELOAD") == "":
            del own["LD_PRELOAD"]
        out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        command = [os.path.join(here, source), program, *args]
        if forked and user is None and may_be_forked(own, FAKE_ADAPTER_DIR):
            process = fork(command, own, out, err)
        else:
            process = subprocess.Popen([PYTHON, *command], env=own, stdout=out, stderr=err,
                                       user=user)
        processes.append((process, out, err))
    deadline = time.monotonic() + timeout
    outcomes = []
    for process, out, err in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        out.seek(0)
        err.seek(0)
        outcomes.append(Outcome(process, out.read(), err.read()))
    return outcomes


def expect(condition, what, outcomes=()):
    if condition:
        return
    print("FAILED:", what)
    for rank, outcome in enumerate(outcomes):
        print(f"--- rank {rank}: exit code {outcome.code}\n{outcome.out}{outcome.err}")
    raise AssertionError(what)


def expect_all_well(outcomes, what):
    expect(all(o.code == 0 for o in outcomes), f"{what}: every rank ends well", outcomes)


class FakeDaemon:
    """A folder through which the ranks of the fake client communicate; see fake_client.cc."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="gp-fake-")

    def env(self, **more):
        return {"GRADPLANE_SOCKET": self.folder, "GRADPLANE_ADAPTER_DIR": FAKE_ADAPTER_DIR, **more}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


def reports(folder, world):
    """The GRADPLANE_REPORT files of the ranks, written to folder/report-%r."""
    out = []
    for rank in range(world):
        with open(os.path.join(folder, f"report-{rank}"), encoding="utf8") as f:
            out.append(json.load(f))
    return out


def submitted_elements(path):
    """The elements of all rounds that a rank of the fake client has written to a log of
    GRADPLANE_TEST_SUBMISSIONS, by operation. All reductions of an operation are one."""
    found = {}
    with open(path, encoding="utf8") as f:
        for what, _, _, elements in map(str.split, f):
            operation = what.split("/")[0].replace("submitted", "all_reduce")
            found[operation] = found.get(operation, 0) + int(elements)
    return found


def run_all(module):
    """Runs every test_* function of a module. The exit code says whether all passed. A test that
    cannot run here returns the reason."""
    skip_without_torch()
    chosen = sys.argv[1:]
    failed = []
    passed = []
    skipped = []
    for name, function in list(module.items()):
        if not name.startswith("test_") or (chosen and name not in chosen):
            continue
        start = time.monotonic()
        try:
            reason = function()
            verdict = "skipped" if reason else "ok"
            (skipped if reason else passed).append(f"{name}: {reason}")
        except AssertionError:
            failed.append(name)
            verdict = "FAILED"
            reason = ""
        took = reason or f"{time.monotonic() - start:.1f} s"
        print(f"{verdict:7} {name} ({took})", flush=True)
    if skipped and not passed and not failed:
        print("SKIP: " + "; ".join(skipped))
        sys.exit(SKIP)
    if skipped:
        print("NOTE: not run: " + "; ".join(skipped))
    sys.exit(1 if failed else 0)
