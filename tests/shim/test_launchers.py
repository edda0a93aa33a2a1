# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Ranks that a launcher starts: Open MPI's and MPICH's mpirun, Slurm, torchrun."""

import os
import shutil
import subprocess
import tempfile

import slurm
from harness import HERE, PYTHON, TORCH, expect, reports, run_all
from test_daemon import BUILD_FOLDER, Daemon

GRADPLANE = os.path.join(BUILD_FOLDER, "control", "cli", "gradplane")
SECONDS = 120


def launched(command, folder, **env):
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
                   "USE_LIBUV": "0", "GRADPLANE_REPORT": folder + "/report-%r", **env}  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False,
                          timeout=SECONDS)  # fmt: skip
    expect(done.returncode == 0, f"{command[0]}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def expect_ranks_of(launcher, starts, **env):
    """Runs a program on three ranks. `starts` is the launcher's command."""
    world = 3
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        launched([*starts, "-n", str(world), GRADPLANE, "run", "--launcher", launcher, "--require",
                  "--socket", daemon.socket, "--", PYTHON,
                  os.path.join(HERE, "rank_programs.py"), "dtypes"], folder, **env)  # fmt: skip
        found = reports(folder, world)
    for report in found:
        expect(report["carried"] == {"all_reduce": 25}, str(report))


def test_mpirun_of_open_mpi():
    if not shutil.which("mpirun.openmpi"):
        return "Open MPI is not installed"
    expect_ranks_of("openmpi", ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"])
    return None


def test_mpirun_of_mpich():
    if not shutil.which("mpirun.mpich"):
        return "MPICH is not installed"
    expect_ranks_of("mpich", ["mpirun.mpich"])
    return None


def test_srun_of_slurm():
    if not slurm.is_here():
        return "Slurm and munge are not installed, or this is not root"
    with slurm.Slurm() as cluster:
        expect_ranks_of("slurm", ["srun"], **cluster.env)
    return None


def test_torchrun_restarts_a_rank():
    """One rank ends with an error. The agent restarts all ranks, which are carried again."""
    if TORCH < (2, 0):
        return "Debian 12's torchrun starts no ranks under its Python"
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "rendezvous")
        with open(meeting, "w", encoding="utf8"):
            pass
        said = launched(
            [GRADPLANE, "run", "--require", "--socket", daemon.socket, "--", PYTHON, "-m",
             "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", "2", "--max-restarts",
             "1", "--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file", "--rdzv-endpoint",
             meeting, "--local-addr", "127.0.0.1", os.path.join(HERE, "elastic_program.py")],
            folder,
            # Debian's PyTorch lacks libuv, which the agent's own TCPStore would need.
            TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",
        )  # fmt: skip
        found = reports(folder, 2)
    expect(sorted(said.split()) == ["0/0:3.0", "1/0:3.0", "1/1:3.0"], said)
    for report in found:
        expect(report["carried"] == {"all_reduce": 2} and report["fallbacks"] == 0, str(report))
    return None


if __name__ == "__main__":
    run_all(globals())
