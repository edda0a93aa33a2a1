# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""MPI programs with the preload object: what is carried, passes through, or falls back.

Each test runs with every MPI that was found at build time, and over the fake client.
"""

import os
import subprocess
import tempfile

from harness import FAKE_ADAPTER_DIR, HERE, FakeDaemon, expect, submitted_elements
from mpi_ranks import EXACT, EXACT_ELEMENTS, PROGRAMS, Run, run_all

NO_DAEMON = {"GRADPLANE_SOCKET": "/nonexistent/socket", "GRADPLANE_ADAPTER_DIR": FAKE_ADAPTER_DIR}
PYTHON = "/usr/bin/python3"


def run(mpi, program, world=3, env=None, args=(), **more):
    """Runs a program over its own fake daemon, unless `env` names another daemon."""
    with FakeDaemon() as daemon:
        command = [PROGRAMS[mpi], program, *args]
        return Run(mpi, command, world, daemon.env(**(env or {})), **more).finish()


def test_exact(mpi):
    for world in (2, 4):
        done = run(mpi, "exact", world)
        done.expect_carried(all_reduce=EXACT, reduce_scatter=EXACT)
        done.expect(all(r["passed"] == {} for r in done.reports), "nothing passes")
        done.expect("gradplane" not in done.err, "nothing is said")


def test_bytes_are_those_of_the_operation(mpi):
    # A sum of all shards would send the same bytes, but each rank would also receive all of them.
    world, types, bytes_of_all_types = 3, 7, 44
    expected = {"all_reduce": types * EXACT_ELEMENTS,
                "reduce_scatter": types * EXACT_ELEMENTS * world}
    with tempfile.TemporaryDirectory() as folder:
        done = run(mpi, "exact", world, {"GRADPLANE_TEST_SUBMISSIONS": folder + "/log"})
        done.expect_well()
        for rank, report in enumerate(done.reports):
            submitted = submitted_elements(f"{folder}/log.{rank}")
            done.expect(submitted == expected, f"{expected}, not {submitted}")
            needed = bytes_of_all_types * EXACT_ELEMENTS * (1 + world)
            done.expect(report["carried_bytes"] == needed, f"{needed} bytes")


def test_a_program_that_asks_for_less_threads(mpi):
    run(mpi, "asynchronous", 3, args=["funneled"]).expect_carried(all_reduce=30)


def test_what_passes(mpi):
    done = run(mpi, "passed", 3)
    done.expect_well()
    reasons = {"reduce_op": 3, "element_type": 2, "empty": 1, "one_rank": 1, "arguments": 1}
    for report in done.reports:
        done.expect(report["passed"] == {"all_reduce": 8}, "eight pass")
        done.expect(report["passed_through"] == reasons, f"because of {reasons}")


def test_requests(mpi):
    for world in (2, 4):
        run(mpi, "asynchronous", world).expect_carried(all_reduce=30)


def test_communicators(mpi):
    # With three ranks, the last one is alone in its part.
    done = run(mpi, "communicators", 4)
    done.expect_carried(all_reduce=5 + 5 + 11)
    done = run(mpi, "communicators", 3)
    done.expect_well()
    for report in done.reports:
        alone = report["rank"] == "2"
        done.expect(report["carried"] == {"all_reduce": 16 if alone else 21}, "by rank")
        done.expect(report["passed_through"] == ({"one_rank": 5} if alone else {}), "by rank")


def test_without_a_daemon(mpi):
    for program in ("exact", "asynchronous", "communicators", "passed"):
        done = run(mpi, program, 4, env=NO_DAEMON)
        done.expect_well()
        count = done.err.count("no daemon: /nonexistent/socket: No such file or directory (start "
                               "gradplaned, or name its socket in GRADPLANE_SOCKET); every "
                               "collective goes through MPI")
        says = 0 if program == "passed" else 4
        done.expect(count == says, f"each rank says it once, not {count} times")
        for report in done.reports:
            fell = report["fallen_back"].get("all_reduce", 0)
            done.expect(report["carried"] == {} and report["failed_ops"] == 0, "over MPI")
            done.expect((fell > 0) == (program != "passed"), "counted")


def test_disabled(mpi):
    done = run(mpi, "exact", 2, env={"GRADPLANE_DISABLE": "1"})
    done.expect_well(reported=False)
    done.expect("gradplane" not in done.err and not done.reports, "nothing is done or said")


def test_no_adapter(mpi):
    with tempfile.TemporaryDirectory() as empty:
        done = run(mpi, "passed", 2, env={"GRADPLANE_ADAPTER_DIR": empty})
        done.expect_well(reported=False)
        done.expect(done.err.count("no adapter for libmpi") == 2, "each rank says it")
        done.expect(done.err.count("every collective goes to MPI") == 2, "and what follows")
        done = run(mpi, "fatal", 2, env={"GRADPLANE_ADAPTER_DIR": empty, "GRADPLANE_REQUIRE": "1"})
        done.expect(done.code != 0 and "it went on" not in done.out, "it does not begin")
        done.expect("and GRADPLANE_REQUIRE is set" in done.err, "because it must not")


def test_sums_that_are_gradients(mpi):
    with tempfile.TemporaryDirectory() as folder:
        log = {"GRADPLANE_TEST_BUCKETS": folder + "/buckets"}
        run(mpi, "named", 2, env=log).expect_carried(all_reduce=10)
        expect(not os.listdir(folder), "every sum is exact by default")
        done = run(mpi, "named", 2, env={**log, "GRADPLANE_MPI_GRADIENTS": "1"})
        done.expect_carried(all_reduce=10)
        for rank in range(2):
            with open(f"{folder}/buckets.{rank}", encoding="utf8") as f:
                # The communicators have separate sessions, and each bucket is the first of its
                # session.
                done.expect(sorted(f.read().splitlines()) == ["1 MPI_COMM_WORLD 0 3000",
                                                              "1 layers 0 500"], "by name")
    for report in done.reports:
        done.expect(report["carried_buckets"] == 4, "each sum of a floating type by name")


def test_a_program_without_collectives(mpi):
    done = run(mpi, "nothing", 2)
    done.expect_well(reported=False)
    done.expect(not done.reports and "gradplane" not in done.err, "the report is another's")


def test_lost_sessions(mpi):
    for script, recovered in (("lose=17:1", 1), ("lose=30:0", 0), ("lose=60:2", 1)):
        done = run(mpi, "many", 3, env={"GRADPLANE_TEST_FAKE": script})
        done.expect_well()
        for report in done.reports:
            done.expect(report["fallbacks"] == 1, "each rank falls back")
            total = report["carried_ops"] + report["fallen_back_ops"]
            done.expect(report["failed_ops"] == 0 and total == 80, "and none fails")
        repaired = max(r["recovered_rounds"] for r in done.reports)
        done.expect((repaired > 0) == (recovered > 0), f"{script}: rounds are repaired")


def test_a_session_that_is_lost_behind_the_last_result(mpi):
    """The rank that has the result is in MPI_Finalize when another rank needs the result."""
    done = run(mpi, "one", 3, env={"GRADPLANE_TEST_FAKE": "lose=0:1"})
    done.expect_well()
    recovered = sorted(report["recovered_rounds"] for report in done.reports)
    done.expect(recovered == [0, 1, 1], "the others get it from that rank")


def test_messages_of_the_program_are_its_own(mpi):
    run(mpi, "any_message", 3).expect_carried(all_reduce=1)


def test_communicators_in_any_order(mpi):
    run(mpi, "opposite", 4).expect_carried(all_reduce=2)
    run(mpi, "freed_early", 3).expect_carried(all_reduce=2)


def test_a_rank_without_gradplane(mpi):
    """The other ranks must not wait for ever for a rank without gradplane."""
    rank = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}[mpi]
    script = f'[ ${rank} = 1 ] && unset LD_PRELOAD; exec {PROGRAMS[mpi]} late'
    with FakeDaemon() as daemon:
        env = daemon.env(GRADPLANE_ATTACH_TIMEOUT_MS="1000")
        done = Run(mpi, ["sh", "-c", script], 2, env).finish()
    done.expect(done.code != 0, "the program does not go on")
    done.expect("a rank has waited 5 s in MPI_Init for the other ranks" in done.err, "a word")
    done.expect("start all of them with gradplane, or none" in done.err, "and what to do")


def test_a_rank_is_refused(mpi):
    done = run(mpi, "exact", 3, env={"GRADPLANE_TEST_FAKE": "refuse=1"})
    done.expect_well()
    said = "rank 1 reports: the fake daemon refuses this rank; every collective goes through MPI"
    done.expect(done.err.count(said) == 3, "each rank says whose daemon it is")


def test_required(mpi):
    for program, status in (("errors", 0), ("fatal", 1)):
        done = run(mpi, program, 2, env={**NO_DAEMON, "GRADPLANE_REQUIRE": "1"})
        done.expect((done.code != 0) == status, "the program, or MPI, decides what an error is")
        why = "rank 0 reports: no daemon: /nonexistent/socket"
        done.expect(f"gradplane: MPI_Allreduce: gradplane: {why}" in done.err, "it is said")
        done.expect("it went on" not in done.out, "an error is fatal by default")
        if status == 0:
            for what in ("all_reduce", "request", "one of several"):
                done.expect(done.out.count(f"{what}: gradplane: {why}") == 2, "it can be read")


def test_a_late_rank(mpi):
    done = run(mpi, "late", 2)
    done.expect_carried(all_reduce=1)
    done.expect("rank 0 of 2 has waited 5 s for the other ranks of a communicator to call their "
                "first collective on it" in done.err, "the first rank says for whom it waits")


def test_python(mpi):
    if mpi != "openmpi":
        return  # Debian's mpi4py needs Open MPI
    probe = subprocess.run([PYTHON, "-c", "import mpi4py"], check=False, capture_output=True)
    expect(probe.returncode == 0, "python3-mpi4py is installed")
    with FakeDaemon() as daemon:
        command = [PYTHON, f"{HERE}/mpi4py_programs.py"]
        done = Run(mpi, command, 3, daemon.env()).finish()
        plain = Run(mpi, command, 3, {}, gradplane=False).finish()
    done.expect_carried(all_reduce=9, reduce_scatter=2)
    done.expect(done.out == plain.out != "", f"as without gradplane: {plain.out}")


def test_torchs_own_backend(mpi):
    """PyTorch calls MPI from its own thread, and asks MPI for less thread support than it needs."""
    code = "import torch.distributed as d; assert d.is_mpi_available()"
    probe = subprocess.run([PYTHON, "-c", code], check=False, capture_output=True)
    if mpi != "openmpi" or probe.returncode != 0:
        print("skipped: Debian 13's PyTorch has it, over Open MPI; Debian 12's has not")
        return
    with FakeDaemon() as daemon:
        done = Run(mpi, [PYTHON, f"{HERE}/mpi_torch_programs.py"], 3, daemon.env()).finish()
    done.expect_well()
    for report in done.reports:
        done.expect(report["carried"] == {"all_reduce": 4 + 1 + 1 + 2}, "all sums are carried")
        done.expect(report["fallbacks"] == report["failed_ops"] == 0, "no fallback")


if __name__ == "__main__":
    run_all(globals())
