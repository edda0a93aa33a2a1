# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""MPI programs over gradplaned, on its loopback port."""

import os
import tempfile

from mpi_ranks import EXACT, PROGRAMS, Run, run_all
from test_daemon import Daemon


def run(mpi, daemon, program, world, args=(), **env):
    env = {"GRADPLANE_SOCKET": daemon.socket, **env}
    return Run(mpi, [PROGRAMS[mpi], program, *args], world, env)


def test_exact(mpi):
    with Daemon() as daemon:
        done = run(mpi, daemon, "exact", 4).finish()
        done.expect_carried(all_reduce=EXACT, reduce_scatter=EXACT)
        run(mpi, daemon, "asynchronous", 3).finish().expect_carried(all_reduce=30)
        run(mpi, daemon, "communicators", 4).finish().expect_carried(all_reduce=21)


def test_a_daemon_that_dies_and_comes_back(mpi):
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        end = os.path.join(folder, "end")
        ranks = run(mpi, daemon, "until", 3, [end], GRADPLANE_VERBOSE="1")
        ranks.wait_for("is attached; collectives are carried", 3)
        daemon.kill()
        ranks.wait_for("every collective goes through MPI", 3)
        daemon.start()
        ranks.wait_for("all ranks are back; collectives are carried again", 3)
        with open(end, "w", encoding="utf8"):
            pass
        done = ranks.finish()
    done.expect_well()
    for report in done.reports:
        done.expect(report["carried_ops"] > 0 < report["fallen_back_ops"], "both ways")
        done.expect(report["failed_ops"] == 0 and report["fallbacks"] == 1, "and no failure")


if __name__ == "__main__":
    run_all(globals())
