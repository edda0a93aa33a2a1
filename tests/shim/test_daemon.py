# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""torch programs over the real daemon. Without GRADPLANE_TEST_SOCKET each test starts a daemon on
the loopback port. With it, tests that do not kill the daemon use the one at that socket, in whose
path %r stands for the rank."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from harness import (BUILD, EXACT, HERE, PRELOAD, TORCH, copy_for_any_user, exact_counts,
                     expect, expect_all_well, reports, run_all, run_ranks)

BUILD_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(PRELOAD)))
DAEMON = os.environ.get("GP_TEST_DAEMON", BUILD + "/control/daemon/gradplaned")
GIVEN_SOCKET = os.environ.get("GRADPLANE_TEST_SOCKET")
CONFIG = """
node: {{name: local}}
control: {{socket: {socket}}}
port: {{kind: loopback}}
cluster:
  nodes:
    - {{name: local, address: 10.77.0.1/24, aggregate: true}}
plan: {{kind: star}}
"""
START_SECONDS = 20
NOBODY = 65534


class Daemon:
    def __init__(self, more=""):
        self.folder = tempfile.mkdtemp(prefix="gp-daemon-")
        self.socket = os.path.join(self.folder, "gradplaned.sock")
        self.log = os.path.join(self.folder, "log")
        with open(os.path.join(self.folder, "config.yaml"), "w", encoding="utf8") as f:
            f.write(CONFIG.format(socket=self.socket) + more)
        self.process = None
        self.start()

    def start(self):
        with open(self.log, "a", encoding="utf8") as log:
            self.process = subprocess.Popen([DAEMON, "--config", self.folder + "/config.yaml"],
                                            stdout=log, stderr=log)
        self.wait_for("control socket", self.said("control socket") + 1)

    def said(self, what):
        with open(self.log, encoding="utf8") as f:
            return f.read().count(what)

    def wait_for(self, what, times):
        deadline = time.monotonic() + START_SECONDS
        while self.said(what) < times and time.monotonic() < deadline:
            time.sleep(0.05)
        with open(self.log, encoding="utf8") as f:
            expect(self.said(what) >= times, f"the daemon says {what}: {f.read()}")

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            return
        self.process.wait(START_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(socket, program, world, env=None, **more):
    with tempfile.TemporaryDirectory() as folder:
        all_env = {"GRADPLANE_REPORT": folder + "/report-%r", **(env or {})}
        outcomes = run_ranks(program, world, env=all_env,
                             rank_env={r: {"GRADPLANE_SOCKET": socket.replace("%r", str(r))}
                                       for r in range(world)}, **more)
        expect_all_well(outcomes, program)
        return outcomes, reports(folder, world)


def with_daemon(program, world):
    if GIVEN_SOCKET:
        return run(GIVEN_SOCKET, program, world)
    with Daemon() as daemon:
        return run(daemon.socket, program, world)


def policies(daemon):
    """(its name, its policy) of each thread of the daemon."""
    found = []
    tasks = f"/proc/{daemon.process.pid}/task"
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/comm", encoding="utf8") as f:
            found.append((f.read().strip(), os.sched_getscheduler(int(task))))
    return found


def expect_policies(daemon, of_poll_threads):
    for name, policy in (found := policies(daemon)):
        expected = of_poll_threads if name == "gradplane-poll" else os.SCHED_OTHER
        expect(policy == expected, str(found))
    expect("gradplane-poll" in dict(found), str(found))


def test_poll_threads_in_real_time():
    with Daemon() as daemon:
        expect_policies(daemon, os.SCHED_OTHER)
    if os.geteuid() != 0 or subprocess.run(["chrt", "--rr", "1", "true"], check=False).returncode:
        return "this user may have no real-time threads, or cannot take the right away"
    with Daemon("poll: {real_time: true}\n") as daemon:
        expect_policies(daemon, os.SCHED_RR)
        daemon.kill()
        without_the_right = ["prlimit", "--rtprio=0:0", "setpriv", "--bounding-set=-sys_nice",
                             "--inh-caps=-sys_nice", "timeout", str(START_SECONDS)]  # fmt: skip
        refused = subprocess.run(
            [*without_the_right, DAEMON, "--config", daemon.folder + "/config.yaml"],
            capture_output=True, text=True, check=False)  # fmt: skip
    expect(refused.returncode == 1 and "CAP_SYS_NICE" in refused.stderr, str(refused))
    return None


def test_exact_programs():
    for world in (2, 4):
        plain = run_ranks(EXACT, world, preload=False)
        outcomes, found = with_daemon(EXACT, world)
        expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
               plain + outcomes)
        for report in found:
            expect(report["carried"] == exact_counts(world), str(report), outcomes)
            expect(report["fallbacks"] == 0 and report["failed_ops"] == 0, str(report), outcomes)


def test_backend_by_name():
    package = os.path.join(BUILD_FOLDER, "trainer-shim", "backend")
    if GIVEN_SOCKET or not os.path.isdir(os.path.join(package, "gradplane")):
        return "the build has no module for `import gradplane.torch`"
    plain = run_ranks("dtypes+reductions", 3, preload=False)
    with Daemon() as daemon:
        outcomes, found = run(daemon.socket, "dtypes+reductions", 3, preload=False, forked=False,
                              env={"GP_TEST_BACKEND": "gradplane", "PYTHONPATH": package})
    expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
           plain + outcomes)
    for report in found:
        expect(report["carried"] == {"all_reduce": 25 + 75}, str(report), outcomes)
        expect(report["fallbacks"] == 0 and report["failed_ops"] == 0, str(report), outcomes)
    return None


def test_training():
    outcomes, found = with_daemon("ddp+powersgd+bfloat16", 4)
    said = [o.all_said for o in outcomes]
    expect(all(s == said[0] for s in said), "the replicas have the same bits", outcomes)
    expect(found[0]["carried_buckets"] >= 42, str(found[0]), outcomes)
    expect(found[0]["fallbacks"] == 0, str(found[0]), outcomes)


def test_training_under_bounds():
    # On one host nothing is lost. A daemon that refused one of the buckets that DDP makes, also
    # when it rearranges them, would end the session.
    with Daemon("gather: {preset: ltp, strict_rounds: 0}\n") as daemon:
        outcomes, found = run(daemon.socket, "ddp+dtypes", 4)
        said = [o.all_said for o in outcomes]
        expect(all(s == said[0] for s in said), "the replicas have the same bits", outcomes)
        for report in found:
            # DDP of PyTorch 2 makes more buckets of this model.
            buckets = 72 if TORCH >= (2, 0) else 42
            expect(report["carried_buckets"] == buckets, str(report), outcomes)
            expect(report["fallbacks"] == report["partial_rounds"] == 0, str(report), outcomes)


def expect_survival(number, program="long_run", steps=5000, ops_a_step=4,
                    source="rank_programs.py", forked=True, **env):
    """Kills or stops the daemon while ranks train, and starts another one in its place."""
    with Daemon() as daemon:
        def break_and_mend():
            daemon.wait_for("ready, 3 ranks", 1)
            time.sleep(1)
            daemon.kill(number)
            if number == signal.SIGSTOP:
                time.sleep(7)  # longer than a daemon's beat may stand still
                daemon.kill()
            daemon.start()

        breaker = threading.Thread(target=break_and_mend)
        breaker.start()
        outcomes, found = run(daemon.socket, program, 3, args=(str(steps),), env=env, timeout=240,
                              source=source, forked=forked)
        breaker.join()
        expect(len({o.said["bits"] for o in outcomes}) == 1, "same bits on every rank", outcomes)
        for report in found:
            expect(report["fallbacks"] >= 1 and report["failed_ops"] == 0, str(report), outcomes)
            all_ops = report["carried_ops"] + report["fallen_back_ops"]
            expect(all_ops == steps * ops_a_step, str(report), outcomes)
            expect(report["carried_ops"] > 0, str(report), outcomes)


def test_daemon_killed():
    expect_survival(signal.SIGKILL)


def test_daemon_killed_in_each_operation():
    for kind in ("broadcast", "all_gather"):
        expect_survival(signal.SIGKILL, "mixed_run", 3000, 2, GP_TEST_KINDS=kind)


def test_groups_that_come_and_go_leave_nothing():
    quorum_count = 40
    with Daemon() as daemon:
        files = f"/proc/{daemon.process.pid}/fd"
        before = len(os.listdir(files))
        outcomes, found = run(daemon.socket, "quorums", 3, source="quorum_programs.py",
                              args=(str(quorum_count),))
        for rank, (outcome, report) in enumerate(zip(outcomes, found)):
            expect(outcome.said["before"] == outcome.said["after"], "nothing is left", outcomes)
            absent = sum(number // 2 % 3 == rank for number in range(1, quorum_count, 2))
            expect(report["carried"] == {"all_reduce": 3 * (quorum_count + 2 - absent)},
                   str(report), outcomes)
        deadline = time.monotonic() + START_SECONDS
        while len(os.listdir(files)) > before and time.monotonic() < deadline:
            time.sleep(0.05)
        expect(len(os.listdir(files)) == before, "and nothing in the daemon")


def test_a_rank_that_dies_while_a_group_is_made():
    torn_count = 4
    with Daemon() as daemon:
        outcomes, found = run(daemon.socket, "torn_quorums", 2, source="quorum_programs.py",
                              args=(str(torn_count),))
        said = outcomes[0].said
        expect(said["errors"] == torn_count, "the other rank hears of it", outcomes)
        expect(said["before"] == said["after"], "no thread and no connection is left", outcomes)
        for report in found:
            expect(report["carried"] == {"all_reduce": 3}, str(report), outcomes)


def test_zero_redundancy_optimizer():
    plain = run_ranks("ddp_start+zero_training", 2, preload=False)
    outcomes, found = with_daemon("ddp_start+zero_training", 2)
    expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
           plain + outcomes)
    for report in found:
        expect(report["carried"]["broadcast"] > 70, str(report), outcomes)
        expect(report["fallen_back_ops"] == 0, str(report), outcomes)
        expect(report["passed_through"] == {}, str(report), outcomes)


def test_uneven_sizes_end():
    # Gloo reports an error or ends the process. No rank may wait for ever.
    for size in (100, 2000000):
        with Daemon() as daemon:
            outcomes = run_ranks("uneven", 3, env={"GRADPLANE_SOCKET": daemon.socket},
                                 args=(str(size),), timeout=60)
        for outcome in outcomes:
            expect(outcome.code != -signal.SIGKILL, "it ended by itself", outcomes)
            expect(outcome.code != 0 or outcome.said["error"], "not as if all were well", outcomes)


def test_daemon_stopped():
    expect_survival(signal.SIGSTOP)


def test_daemon_stopped_in_a_group_of_little_patience():
    # The group's timeout is 4 s, so ranks must find out before that the daemon is dead.
    expect_survival(signal.SIGSTOP, GP_TEST_GROUP_SECONDS="4")


def test_ranks_say_for_whom_they_wait():
    with Daemon() as daemon:
        outcomes, found = run(daemon.socket, "late_rank", 3, env={"GP_TEST_FOLDER": daemon.folder})
        for rank in (0, 1):
            expect(f"rank {rank} of 3 has waited 5 s" in outcomes[rank].err
                   and "waited for rank 2" in outcomes[rank].err, "names the late rank", outcomes)
        expect("waited" not in outcomes[2].err, "who is late waits for nobody", outcomes)
        expect(all(report["carried_ops"] == 1 for report in found), str(found), outcomes)


def test_the_operator_forbids_a_fallback():
    # Two daemons that do not know each other. One of them has ranks.require.
    with Daemon() as one, Daemon("ranks: {require: true}\n") as other:
        outcomes = run_ranks("repeat_failing", 2, env={"GRADPLANE_ATTACH_TIMEOUT_MS": "4000"},
                             rank_env={0: {"GRADPLANE_SOCKET": one.socket},
                                       1: {"GRADPLANE_SOCKET": other.socket}})
        expect_all_well(outcomes, "ranks.require")
        expect(all("ranks.require" in error for o in outcomes for error in o.said["errors"]),
               "every operation of every rank fails and says why", outcomes)


def test_the_operator_forbids_a_fallback_to_forked_ranks():
    with Daemon("ranks: {require: true}\n") as daemon:
        outcomes, found = run(daemon.socket, "parents_group_after_fork", 2)
        for outcome, report in zip(outcomes, found):
            expect("made before fork()" in outcome.said["error"]
                   and "ranks.require" in outcome.said["error"], "the child's fails", outcomes)
            expect(report["carried_ops"] == 2, str(report), outcomes)


def test_a_refused_rank_heeds_the_operator():
    # The daemon refuses ranks of other users, and its operator forbids to go on without it.
    with Daemon("ranks: {require: true}\n") as daemon:
        env = {"GRADPLANE_SOCKET": daemon.socket, **copy_for_any_user(daemon.folder)}
        outcomes = run_ranks("repeat_failing", 2, env=env, user=NOBODY, here=daemon.folder)
        expect_all_well(outcomes, "ranks.require and a user who may not attach")
        expect(all("may not use this daemon" in error and "ranks.require" in error
                   for o in outcomes for error in o.said["errors"]), "every operation", outcomes)


def test_peer_killed():
    with Daemon() as daemon:
        outcomes = run_ranks("peer_killed", 3, env={"GRADPLANE_SOCKET": daemon.socket}, timeout=60)
        for rank in (0, 2):
            expect(outcomes[rank].code == 0, "the others live", outcomes)
            expect("Error" in outcomes[rank].said["error"], "and see an error", outcomes)


def test_a_rank_whose_daemon_is_another_one():
    # Two daemons that do not know each other. No rank may wait for ever.
    with Daemon() as one, Daemon() as other:
        outcomes = run_ranks("bfloat16", 2, env={"GRADPLANE_ATTACH_TIMEOUT_MS": "2000"},
                             rank_env={0: {"GRADPLANE_SOCKET": one.socket},
                                       1: {"GRADPLANE_SOCKET": other.socket}})
        expect_all_well(outcomes, "two daemons")
        expect("goes through Gloo" in outcomes[0].err, "a fallback", outcomes)
        # Gloo itself does not sum bf16 before PyTorch 2.
        for outcome in outcomes:
            expect(outcome.said == {"error": "", "value": 3.0}, "a sum all the same", outcomes)


if __name__ == "__main__":
    run_all(globals())
