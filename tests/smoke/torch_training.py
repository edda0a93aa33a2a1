# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Unmodified PyTorch programs on the hosts of a cluster, for smoke tests."""

import json
import os
import re
import subprocess

from cluster import CLI, ROOT, expect, skip

PYTHON = "/usr/bin/python3"
TRAIN = ROOT / "scripts/demo.d/train.py"
TRAIN_SECONDS = 150


def skip_unless_possible():
    probe = subprocess.run(
        [PYTHON, "-c", "import torch, sklearn"], capture_output=True, check=False
    )
    if probe.returncode != 0:
        skip("torch or sklearn is not installed for /usr/bin/python3")


def torch_version():
    """Of the PyTorch for /usr/bin/python3, such as (2, 6)."""
    code = "import torch; print(*torch.__version__.split('.')[:2])"
    said = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout
    return tuple(int(number) for number in said.split())


class Program:
    """One PyTorch program on each host of `workers`, as ranks 0, 1, ..., started with `gradplane
    run`, or without gradplane. `name` is that of its files."""

    def __init__(self, c, workers, command, *options, environment=None, gradplane=True,
                 name="train"):  # fmt: skip
        self._c = c
        self._name = name
        self.processes = []
        for rank, worker in enumerate(workers):
            host = c.lab.hosts[worker]
            run = [str(CLI), "run", "--socket", str(c.socket(worker)), *options, "--"]
            variables = {
                "RANK": str(rank), "WORLD_SIZE": str(len(workers)), "MASTER_PORT": "29400",
                "MASTER_ADDR": c.lab.hosts[workers[0]].management_address,
                "GLOO_SOCKET_IFNAME": "mg0", "OMP_NUM_THREADS": "1", "USE_LIBUV": "0",
                "GRADPLANE_REPORT": str(self._report(rank)), **(environment or {}),
            }  # fmt: skip
            with open(self.out(rank), "wb") as out, open(self.err(rank), "wb") as err:
                self.processes.append(
                    subprocess.Popen(["ip", "netns", "exec", host.namespace,
                                      *(run if gradplane else []), PYTHON, *map(str, command)],
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     env={**os.environ, **variables})
                )  # fmt: skip
        c._ranks += self.processes

    def _report(self, rank):
        return self._c.folder / f"{self._name}{rank}.json"

    def out(self, rank):
        return self._c.folder / f"{self._name}{rank}.out"

    def err(self, rank):
        return self._c.folder / f"{self._name}{rank}.err"

    def said(self, rank):
        """The JSON objects that a rank has printed."""
        lines = self.out(rank).read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def messages(self, rank, kind):
        return [message for message in self.said(rank) if kind in message]

    def errors(self, rank):
        return self.err(rank).read_text(errors="replace")

    def carried_from(self, rank):
        """The numbers of the operations from which the rank was carried, from GRADPLANE_VERBOSE."""
        return [int(n) for n in re.findall(r"carried from operation (\d+)", self.errors(rank))]

    def report(self, rank):
        return json.loads(self._report(rank).read_text())

    def finish(self):
        codes = [process.wait(timeout=TRAIN_SECONDS) for process in self.processes]
        expect(codes == [0] * len(codes), f"exit codes {codes}: {self.errors(0)[-1500:]}")


class Training(Program):
    """A Program of train.py."""

    def __init__(self, c, workers, epochs, *options, environment=None):
        command = [TRAIN, "--epochs", epochs]
        super().__init__(c, workers, command, *options, environment=environment)

    def hashes(self, rank):
        return [m["parameters_sha256"] for m in self.messages(rank, "parameters_sha256")]

    def expect_same_bits(self):
        """Checks that every replica had the same parameters after each epoch."""
        first = self.hashes(0)
        expect(first, "there are parameters to compare")
        for rank in range(1, len(self.processes)):
            expect(self.hashes(rank) == first, f"replicas 0 and {rank} hold the same bits")

    def expect_all_carried(self):
        """Checks that nothing went through Gloo that gradplane could carry."""
        for rank in range(len(self.processes)):
            report = self.report(rank)
            expect(report["carried_buckets"] > 20, f"buckets were carried: {report}")
            expect(report["fallen_back_ops"] == 0, f"none fell back: {report}")
            expect(report["fallbacks"] == 0, f"there was no fallback: {report}")
