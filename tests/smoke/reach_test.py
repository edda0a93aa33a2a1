#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Programs other than DDP over real daemons of several hosts, whose links lose frames: ZeRO, FSDP,
groups for each quorum, and programs of MPI. They compute what they compute without gradplane."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys

import cluster
import torch_training
from cluster import BUILD, CLI, ROOT, Cluster, expect, netlab
from torch_training import PYTHON, Program

sys.path.append(str(ROOT / "tests/peers"))
import mpi  # noqa: E402

WORKERS = ["w1", "w2", "w3"]
RUN = f"gr{os.getpid() % 100000}"
RATE = "400 Mbit/s"
SHARDED = "sharded\n  roots: training"
PROGRAMS = ROOT / "tests/shim"
QUORUMS = 12
OPEN_MPI, MPICH = "mpirun.openmpi", "mpirun.mpich"
MPI_SECONDS = 150
# Calls of each collective in the MPI program `exact`: types, operations, sizes and places.
EXACT = 7 * 4 * 3 * 2
# The types have 44 bytes together. A reduce_scatter reduces as many elements for each rank.
ALL_REDUCED_BYTES = 44 * (4 * 2) * (1 + 1000 + 50001)
MTU_BYTES = 1500


def lab(hosts):
    return netlab.Lab(RUN, hosts, netlab.Link(rate_bits=400_000_000, loss=0.01))


def expect_all_carried(report, **operations):
    for name, count in operations.items():
        expect(report["carried"].get(name) == count, f"{count} of {name}: {report}")
    expect(report["carried_ops"] > 0, f"it was carried: {report}")
    for counter in ("fallbacks", "fallen_back_ops", "failed_ops"):
        expect(report[counter] == 0, f"no {counter}: {report}")
    expect(report["passed"] == {}, f"nothing passes: {report}")


def expect_over_the_daemons(c, reports):
    """Checks that every daemon has reduced what each rank has submitted, round by round and to the
    byte, and that blocks were lost between them. `reports` are those of the ranks, by host."""
    # A job that is being given back comes before those that have ended.
    jobs = {name: max(c.status(name)["jobs"], key=lambda job: job["epoch"]) for name in c.lab.hosts}
    for report in reports.values():
        expect_all_carried(report)
        submitted = (report["carried_rounds"], report["carried_bytes"])
        for name, job in jobs.items():
            reduced = (job["rounds_completed"], job["bytes_reduced"])
            expect(reduced == submitted, f"rounds and bytes of {name}: {reduced}, not {submitted}")
    sent_again = sum(job["blocks_retransmitted"] for job in jobs.values())
    expect(sent_again > 0, f"blocks were lost, and sent again: {jobs}")


def run_program(c, workers, command, **options):
    """Runs a program of tests/shim on the workers' hosts. Returns what each rank printed, and the
    ranks' reports by host."""
    program = Program(c, workers, [PROGRAMS / command[0], *command[1:]], "--require", **options)
    program.finish()
    said = [program.said(rank) for rank in range(len(workers))]
    if not options.get("gradplane", True):
        return said
    return said, {name: program.report(rank) for rank, name in enumerate(workers)}


def two_ranks_have_the_bits_of_gloo(*command):
    """Returns the ranks' reports. Sums of more ranks depend on the order in which blocks come."""
    workers = WORKERS[:2]
    with lab(["agg", *workers]) as made, Cluster(made, "star", "af_packet", RATE) as c:
        said, reports = run_program(c, workers, command)
        expect_over_the_daemons(c, reports)
        plain = run_program(c, workers, command, gradplane=False, name="plain")
        expect(said == plain and all(said), f"{said} as Gloo's {plain}")
        return reports.values()


def a_sharded_optimizer_has_the_bits_of_gloo():
    for report in two_ranks_have_the_bits_of_gloo("rank_programs.py", "ddp_start+zero_training"):
        kinds = set(report["carried"])
        expect(kinds == {"all_reduce", "all_gather", "broadcast"}, f"all kinds: {report}")


def a_sharded_optimizer_over_three_daemons():
    """Each daemon sums a part, and each rank updates a part of the parameters."""
    with lab(WORKERS) as made, Cluster(made, SHARDED, "af_packet", RATE) as c:
        said, reports = run_program(c, WORKERS, ["rank_programs.py", "zero_training"])
        expect_over_the_daemons(c, reports)
        bits = [[run[0] for run in one[0]["bits"].values()] for one in said]
        expect(len(bits[0]) == 2 and bits == [bits[0]] * 3, f"the same parameters: {bits}")


def sharded_parameters_have_the_bits_of_gloo():
    if torch_training.torch_version() < (2, 6):
        print("NOTE: no FSDP: it needs PyTorch 2.6")
        return
    for report in two_ranks_have_the_bits_of_gloo("sharded_programs.py", "fsdp1+fsdp2"):
        expect_all_carried(report, reduce_scatter=6 + 30, all_gather=6 + 40)


def groups_for_each_quorum():
    """Each rank checks every sum. A host whose rank is missing from a quorum has no part in it."""
    with lab(WORKERS) as made, Cluster(made, SHARDED, "af_packet", RATE) as c:
        said, reports = run_program(c, WORKERS, ["quorum_programs.py", "quorums", QUORUMS])
        for rank, report in enumerate(reports.values()):
            absent = sum(number // 2 % 3 == rank for number in range(1, QUORUMS, 2))
            expect_all_carried(report, all_reduce=3 * (QUORUMS + 2 - absent))
            expect(said[rank][0]["before"] == said[rank][0]["after"], f"nothing left: {said[rank]}")


def mpi_launcher(hosts, launcher, script):
    """The words and the environment of a command that starts the script with a rank for each of the
    hosts. Open MPI's ranks run on these hosts, and MPICH's run here."""
    if launcher == MPICH:
        return [launcher, "-n", str(len(hosts)), str(script)], {}
    words, environment = mpi.mpi_command(
        [host.namespace for host in hosts], [host.management_address for host in hosts],
        script, interface=mpi.MANAGEMENT,
    )  # fmt: skip
    return ["ip", "netns", "exec", hosts[0].namespace, *words], environment


def run_mpi(c, launcher, *command, gradplane=True):
    """Runs a program of MPI, whose rank R has the daemon of the worker R. Returns its output, and
    the ranks' reports by host."""
    workers = [name for name in WORKERS if name in c.lab.hosts]
    script = c.folder / "rank.sh"
    attach = f"{CLI} run --socket {c.folder}/w$((rank + 1)).sock --require --"
    script.write_text(
        "#!/bin/sh\nrank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n"
        f"export GRADPLANE_REPORT={c.folder}/mpi-$rank.json OMP_NUM_THREADS=1\n"
        f"exec {attach if gradplane else ''} {shlex.join(map(str, command))}\n"
    )
    script.chmod(0o755)
    words, environment = mpi_launcher([c.lab.hosts[n] for n in workers], launcher, script)
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MPI_SECONDS,
        env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    expect(done.returncode == 0, f"{command} ends well: {done.stdout}{done.stderr}")
    files = {name: c.folder / f"mpi-{rank}.json" for rank, name in enumerate(workers)}
    return done.stdout, gradplane and {n: json.loads(f.read_text()) for n, f in files.items()}


def program_of(launcher):
    """The MPI programs of tests/shim for a launcher, or None if they cannot run here."""
    name = "mpich" if launcher == MPICH else "mpi"
    built = list((BUILD / "tests/shim").glob(f"programs_of_gradplane_{name}_*[0-9]"))
    if built and shutil.which(launcher):
        return built[0]
    print(f"NOTE: not run: {launcher} or its programs are not there")
    return None


def programs_of_mpi(launcher):
    """Each rank checks every element of every result."""
    program = program_of(launcher)
    if not program:
        return
    with lab(WORKERS) as made, Cluster(made, SHARDED, "af_packet", RATE) as c:
        _, reports = run_mpi(c, launcher, program, "exact")
        expect_over_the_daemons(c, reports)
        for report in reports.values():
            expect_all_carried(report, all_reduce=EXACT, reduce_scatter=EXACT)
            expected = ALL_REDUCED_BYTES * (1 + len(WORKERS))
            expect(report["carried_bytes"] == expected, f"{expected} bytes: {report}")
        _, reports = run_mpi(c, launcher, program, "asynchronous")
        expect_over_the_daemons(c, reports)
        for report in reports.values():
            expect_all_carried(report, all_reduce=30)


def programs_of_open_mpi():
    programs_of_mpi(OPEN_MPI)


def programs_of_mpich():
    programs_of_mpi(MPICH)


def each_rank_of_mpi_receives_its_shard_alone():
    """An aggregator without ranks sends every sum to two ranks, but each shard to one. Counters of
    blocks that were sent again correct for losses."""
    program = program_of(OPEN_MPI)
    if not program:
        return
    with lab(["agg", *WORKERS[:2]]) as made, Cluster(made, "star", "af_packet", RATE) as c:
        _, reports = run_mpi(c, OPEN_MPI, program, "exact")
        expect_over_the_daemons(c, reports)
        for name, times in (("agg", 2 + 2), ("w1", 1 + 2), ("w2", 1 + 2)):
            job = c.status(name)["jobs"][-1]
            sent, needed = job["payload_bytes_sent"], times * ALL_REDUCED_BYTES
            least = sent - job["blocks_retransmitted"] * MTU_BYTES
            expect(least <= needed <= sent, f"bytes of {name}: {least} to {sent}, not {needed}")


def a_program_of_mpi4py_has_the_results_of_open_mpi():
    probe = subprocess.run([PYTHON, "-c", "import mpi4py"], capture_output=True, check=False)
    if probe.returncode != 0:
        print("NOTE: not run: mpi4py is not installed")
        return
    with lab(WORKERS) as made, Cluster(made, SHARDED, "af_packet", RATE) as c:
        command = (PYTHON, PROGRAMS / "mpi4py_programs.py")
        said, reports = run_mpi(c, OPEN_MPI, *command)
        expect_over_the_daemons(c, reports)
        for report in reports.values():
            expect_all_carried(report, all_reduce=9, reduce_scatter=2)
        plain, _ = run_mpi(c, OPEN_MPI, *command, gradplane=False)
        expect(said == plain != "", f"{said} as without gradplane: {plain}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torch_training.skip_unless_possible()
    sys.exit(
        cluster.run(
            [
                a_sharded_optimizer_has_the_bits_of_gloo,
                a_sharded_optimizer_over_three_daemons,
                sharded_parameters_have_the_bits_of_gloo,
                groups_for_each_quorum,
                programs_of_open_mpi,
                programs_of_mpich,
                each_rank_of_mpi_receives_its_shard_alone,
                a_program_of_mpi4py_has_the_results_of_open_mpi,
            ]
        )
    )
