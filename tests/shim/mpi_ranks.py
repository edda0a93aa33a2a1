# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Starts the ranks of an MPI program with mpirun, and collects their output."""

import os
import shutil
import subprocess
import sys
import tempfile
import time

from harness import PRELOAD, SKIP, expect, reports
from waiting import wait_until

LAUNCHERS = {"openmpi": "mpirun.openmpi", "mpich": "mpirun.mpich"}
# The path of mpi_programs for each MPI: "openmpi=PATH:mpich=PATH".
PROGRAMS = dict(one.split("=") for one in os.environ["GP_TEST_MPI_PROGRAMS"].split(":"))
# Calls of each collective in `exact`: types times operations times sizes times places.
EXACT = 7 * 4 * 3 * 2
# The elements of each type in its all_reduces: operations times places times all sizes.
EXACT_ELEMENTS = 4 * 2 * (1 + 1000 + 50001)


class Run:
    """One run of mpirun with its ranks."""

    def __init__(self, mpi, command, world, env, gradplane=True):
        launcher = [LAUNCHERS[mpi]]
        if mpi == "openmpi":
            launcher += ["--allow-run-as-root", "--oversubscribe"]
        own = {k: v for k, v in os.environ.items() if not k.startswith("GRADPLANE_")}
        self.world = world
        self.folder = tempfile.TemporaryDirectory()
        own.update(env, GRADPLANE_REPORT=f"{self.folder.name}/report-%r", OMP_NUM_THREADS="1")
        preload = [f"LD_PRELOAD={PRELOAD}"] if gradplane else []
        self.files = [tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")]
        self.process = subprocess.Popen([*launcher, "-n", str(world), "env", *preload, *command],
                                        env=own, stdout=self.files[0], stderr=self.files[1])
        self.code, self.reports = None, []

    def said(self, stream):
        self.files[stream].seek(0)
        return self.files[stream].read()

    @property
    def out(self):
        return self.said(0)

    @property
    def err(self):
        return self.said(1)

    def wait_for(self, text, times):
        wait_until(lambda: self.err.count(text) >= times or self.process.poll() is not None)
        self.expect(self.err.count(text) >= times, f"{times} ranks say: {text}")

    def finish(self, timeout=100):
        try:
            self.code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.terminate()  # mpirun ends its ranks
            self.code = self.process.wait(20)
            self.expect(False, f"the ranks have not ended after {timeout} s")
        if len(os.listdir(self.folder.name)) == self.world:
            self.reports = reports(self.folder.name, self.world)
        self.folder.cleanup()
        return self

    def expect(self, condition, what):
        if not condition:
            expect(False, f"{what}\n{self.code}\n{self.out}\n{self.err}\n{self.reports}")

    def expect_well(self, reported=True):
        self.expect(self.code == 0, "every rank ends well")
        self.expect(len(self.reports) > 0 or not reported, "every rank reports")

    def expect_carried(self, **operations):
        self.expect_well()
        for report in self.reports:
            self.expect(report["carried"] == operations, f"carried {operations}")
            self.expect(report["fallbacks"] == report["failed_ops"] == 0, "no fallback")


def run_all(module):
    """Runs every test_* function of a module with every MPI that is installed."""
    found = [mpi for mpi in PROGRAMS if shutil.which(LAUNCHERS[mpi])]
    if not found:
        print("SKIP: no mpirun")
        sys.exit(SKIP)
    failed = 0
    for name, function in list(module.items()):
        if not name.startswith("test_") or (sys.argv[1:] and name not in sys.argv[1:]):
            continue
        for mpi in found:
            start = time.monotonic()
            try:
                function(mpi)
                verdict = "ok"
            except AssertionError:
                failed += 1
                verdict = "FAILED"
            print(f"{verdict:7} {name} {mpi} ({time.monotonic() - start:.1f} s)", flush=True)
    sys.exit(1 if failed else 0)
