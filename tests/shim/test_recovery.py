# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The daemon dies during a training. The training goes on, and all replicas have the same bits."""

import os
import tempfile

from harness import FakeDaemon, expect, expect_all_well, reports, run_all, run_ranks


def run(program, world, env=None, args=(), well=True, **more):
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        own = daemon.env(GRADPLANE_REPORT=os.path.join(folder, "report-%r"), **(env or {}))
        outcomes = run_ranks(program, world, env=own, args=args, **more)
        if well:
            expect_all_well(outcomes, f"{program} {args} {env}")
        return outcomes, reports(folder, world)


def expect_one_result(outcomes):
    expect(len({o.said["bits"] for o in outcomes}) == 1, "same bits on every rank", outcomes)


def test_session_lost_at_every_place():
    # 16 steps with 4 operations and 7 rounds each: three tensors of one round and one of four. The
    # session is lost in the first round, and in the middle and at the end of the long tensor. No
    # rank, some ranks, or all but one have the result. group_recovers.cc tests all other places.
    for world, lost_round, results in ((2, 0, 0), (3, 17, 1), (3, 20, 2), (4, 100, 3)):
        outcomes, found = run("long_run", world, args=("16",),
                              env={"GRADPLANE_TEST_FAKE": f"lose={lost_round}:{results}"})
        expect_one_result(outcomes)
        what = f"lose={lost_round}:{results} of {world}"
        for rank, report in enumerate(found):
            expect(report["fallbacks"] == 1, f"{what}: {report}", outcomes)
            expect(report["failed_ops"] == 0, f"{what}: {report}", outcomes)
            lacked = 1 if 0 < results < world and rank + results < world else 0
            expect(report["recovered_rounds"] == lacked, f"{what}: rank {rank}: {report}", outcomes)
            expect("fake job was lost" in report["fallback_cause"], f"{what}: {report}", outcomes)
            announced = outcomes[rank].err.count("goes through Gloo")
            expect(announced == 1, f"{what}: announced {announced} times", outcomes)


def test_session_lost_in_each_operation():
    # With three ranks a step has 26 rounds: 4 of a broadcast, 15 of an all_gather, 4 of an
    # all_reduce, and one of a small operation of each kind.
    for lost_round, results in ((1, 0), (6, 0), (18, 1), (20, 1)):
        outcomes, found = run("mixed_run", 3, args=("4",),
                              env={"GRADPLANE_TEST_FAKE": f"lose={lost_round}:{results}"})
        expect_one_result(outcomes)
        for rank, report in enumerate(found):
            what = f"lose={lost_round}:{results}, rank {rank}: {report}"
            expect(report["fallbacks"] == 1 and report["failed_ops"] == 0, what, outcomes)
            lacked = 1 if results > 0 and rank + results < 3 else 0
            expect(report["recovered_rounds"] == lacked, what, outcomes)
            done = [report["carried"].get(kind, 0) + report["fallen_back"].get(kind, 0)
                    for kind in ("broadcast", "all_gather", "all_reduce")]
            expect(done == [8, 8, 8], what, outcomes)


def test_session_lost_in_a_largest():
    # A step has 5 rounds: 4 of the first maximum, and one of the small one.
    for lost_round, results in ((1, 0), (7, 1)):
        outcomes, found = run("mixed_run", 3, args=("4",),
                              env={"GRADPLANE_TEST_FAKE": f"lose={lost_round}:{results}",
                                   "GP_TEST_KINDS": "largest"})
        expect_one_result(outcomes)
        for report in found:
            expect(report["fallbacks"] == 1 and report["failed_ops"] == 0, str(report), outcomes)
            expect(report["passed_through"] == {}, str(report), outcomes)


def test_others_that_went_on_without_a_rank():
    # A step has 7 rounds. A rank may have 8 rounds in flight, but begins a step only when it has
    # all results of the one before. With a lead of 8, the rank whose daemon dies has not submitted
    # some of the rounds that the others have, whatever the round. It gets to the next step with
    # their results.
    for world, lost_round, lead in ((3, 17, 1), (3, 17, 8), (2, 20, 8)):
        outcomes, found = run("long_run", world, args=("16",),
                              env={"GRADPLANE_TEST_FAKE": f"absent={lost_round}:{lead}",
                                   "GP_TEST_ABSENT": "1"})
        expect_one_result(outcomes)
        for rank, report in enumerate(found):
            what = f"absent={lost_round}:{lead}, rank {rank} of {world}: {report}"
            expect(report["fallbacks"] == 1 and report["failed_ops"] == 0, what, outcomes)
            handed_on = lead if rank == world - 1 else 0
            expect(report["recovered_rounds"] == handed_on, what, outcomes)


def test_rank_that_is_waited_for():
    with tempfile.TemporaryDirectory() as folder:
        outcomes, found = run("behind", 3, source="behind_programs.py", args=("60",),
                              env={"GRADPLANE_TEST_FAKE": "absent=1:8", "GP_TEST_FOLDER": folder})
    for rank in (0, 1):
        expect("which rank 2 had not issued" in outcomes[rank].err, "names whom", outcomes)
    expect("for its program to call the collective" in outcomes[2].err, "says what for", outcomes)
    # The rank had submitted round 1, but not rounds 2 to 8.
    expect([r["recovered_rounds"] for r in found] == [0, 0, 8], str(found), outcomes)


def test_rank_that_never_comes():
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        env = daemon.env(GRADPLANE_TEST_FAKE="absent=1:8", GP_TEST_FOLDER=folder)
        outcomes = run_ranks("never", 3, env=env, source="behind_programs.py", args=("10",))
    expect_all_well(outcomes, "every rank ends")
    # Which rank's wait ends first is random. The others' connections end with it.
    expect(all("gave up:" in o.err for o in outcomes), "with an error", outcomes)
    expect("for its program to call the collective" in outcomes[2].err, "says what for", outcomes)


def test_others_that_went_too_far():
    # Further than any core allows. The oldest result is gone, and every rank reports that.
    with FakeDaemon() as daemon:
        outcomes = run_ranks("long_run", 3, args=("16",),
                             env=daemon.env(GRADPLANE_TEST_FAKE="absent=17:16", GP_TEST_ABSENT="1"))
    for outcome in outcomes:
        expect(outcome.code != 0, "an error", outcomes)
        expect("forgotten round 17, which another rank lacks" in outcome.err, "why", outcomes)


def test_result_that_comes_after_leaving():
    outcomes, found = run("long_run", 3, args=("16",), env={"GRADPLANE_TEST_FAKE": "late=17"})
    expect_one_result(outcomes)
    for report in found:
        expect(report["fallbacks"] == 1 and report["recovered_rounds"] == 0, str(report), outcomes)


def run_to_the_end(program, script, seconds="60"):
    """Runs a program in which one rank begins its last operations after all others."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"GP_TEST_FOLDER": folder}
        if script:
            env["GRADPLANE_TEST_FAKE"] = script
        return run(program, 3, source="behind_programs.py", args=(seconds,), env=env)


def expect_handed_on(outcomes, found, rounds):
    expect([r["recovered_rounds"] for r in found] == [0, 0, rounds], str(found), outcomes)
    expect(all(r["failed_ops"] == 0 for r in found), str(found), outcomes)
    expect(all(o.err.count("has waited 5 s") == 1 for o in outcomes[:2]), "who waits", outcomes)


def test_session_lost_when_others_have_ended():
    # The others are in the recovery when their programs end, and hold all results that the last
    # rank lacks.
    outcomes, found = run_to_the_end("end_lost", "absent=4:100")
    expect_handed_on(outcomes, found, 8)
    expect(found[2]["fallbacks"] == 1, str(found), outcomes)


def test_daemon_that_dies_when_others_have_ended():
    outcomes, found = run_to_the_end("end_later", "absent=10:8")
    expect_handed_on(outcomes, found, 2)
    # Ranks that had everything did not notice the loss.
    expect([r["fallbacks"] for r in found] == [0, 0, 1], str(found), outcomes)


def test_others_that_end_before_a_slow_rank():
    # No daemon dies, but the job fails when the first rank leaves it.
    for program in ("end_late", "end_destroyed"):
        outcomes, found = run_to_the_end(program, "behind=4:8")
        expect_handed_on(outcomes, found, 0)
        for rank, report in enumerate(found):
            expect(report["fallbacks"] == 0 and report["carried_ops"] == 12, str(report), outcomes)
            expect(rank == 2 or "to end" in outcomes[rank].err, "says what for", outcomes)


def test_end_that_waits_for_nobody():
    # Every sum has all ranks, so ranks that are done do not wait.
    outcomes, found = run_to_the_end("end_together", "")
    for outcome, report in zip(outcomes, found):
        expect(report["carried_ops"] == 12 and report["fallbacks"] == 0, str(report), outcomes)
        expect("has waited" not in outcome.err, "nobody waits", outcomes)


def test_end_that_waits_in_vain():
    # The last rank is in none of the last sums. Either it stays for longer than the limit, which is
    # half of the group's timeout of 6 s and ends before a wait is logged, or it is killed.
    for program, seconds in (("end_together", "6"), ("end_killed", "60")):
        with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
            env = daemon.env(GRADPLANE_TEST_FAKE="behind=4:8", GP_TEST_FOLDER=folder)
            outcomes = run_ranks(program, 3, env=env, source="behind_programs.py", args=(seconds,))
        expect_all_well(outcomes, program)
        expect(not any("gradplane" in o.err for o in outcomes), f"{program}: no word", outcomes)


def expect_return(pause, most_ops):
    outcomes, found = run("daemon_returns", 3, args=(pause,))
    expect_one_result(outcomes)
    for outcome in outcomes:
        expect(outcome.err.count("goes through Gloo") == 1, "the fallback is said", outcomes)
        expect(outcome.err.count("collectives are carried again") == 1, "and the return", outcomes)
    for report in found:
        expect(report["fallbacks"] == 1, str(report), outcomes)
        expect(1 <= report["fallen_back_ops"] <= most_ops, str(report), outcomes)
        expect(report["carried_ops"] >= 30 * 4 + 10 * 4, str(report), outcomes)
        expect(report["failed_ops"] == 0, str(report), outcomes)


def test_daemon_that_dies_and_returns():
    # The program does not pause: any number of operations fits into the two seconds until the
    # retry.
    expect_return("0", 1000000)


def test_daemon_that_returns_to_a_slow_program():
    # Each step has four operations and takes at least a second. Few operations come before the two
    # seconds are over, and the ranks compare their clocks at least at every second step.
    expect_return("1", 32)


def test_daemon_that_dies_at_one_rank_alone():
    outcomes, found = run("long_run", 3, args=("20",),
                          rank_env={1: {"GRADPLANE_TEST_FAKE": "lose=30:0"}})
    expect_one_result(outcomes)
    expect(all(r["fallbacks"] == 1 and r["failed_ops"] == 0 for r in found), str(found), outcomes)


def test_daemon_that_talks_nonsense():
    outcomes, found = run("long_run", 2, args=("20",),
                          env={"GRADPLANE_TEST_FAKE": "broken-garbage=25"})
    expect_one_result(outcomes)
    expect(all(r["fallbacks"] == 1 for r in found), str(found), outcomes)


def test_refused_rank():
    outcomes, found = run("long_run", 3, args=("30",), env={"GRADPLANE_TEST_FAKE": "refuse=2"})
    expect_one_result(outcomes)
    for report in found:
        expect(report["carried_ops"] == 0 and report["fallbacks"] == 1, str(report), outcomes)
        cause = "rank 2 reports: the fake daemon refuses this rank"
        expect(cause in report["fallback_cause"], str(report))


def test_ddp_survives():
    for lost_round in (3, 30):
        outcomes, found = run("ddp", 2, env={"GRADPLANE_TEST_FAKE": f"lose={lost_round}:1"})
        plain = run_ranks("ddp", 2, preload=False)
        expect([o.said for o in plain] == [o.said for o in outcomes], "as Gloo's", plain + outcomes)
        expect(found[0]["recovered_rounds"] == 1, str(found[0]), outcomes)


def test_asynchronous_work_survives():
    for lost_round in (9, 30):  # 20 operations and a barrier come first, then 40 operations
        outcomes, found = run("barrier_implies_wait+asynchronous", 3,
                              env={"GRADPLANE_TEST_FAKE": f"lose={lost_round}:1"})
        expect(found[0]["fallbacks"] == 1, str(found[0]), outcomes)
        expect(found[0]["failed_ops"] == 0, str(found[0]), outcomes)


def test_required_fails_on_all_ranks():
    outcomes, found = run("repeat_failing", 3,
                          env={"GRADPLANE_TEST_FAKE": "lose=1:2", "GRADPLANE_REQUIRE": "1"})
    for outcome in outcomes:
        errors = outcome.said["errors"]
        # Two ranks had the result of round 1, so the third got it, too. Round 2 fails on all ranks.
        expect(errors[0] == errors[1] == "", "what was complete is repaired", outcomes)
        expect("the fake job was lost" in errors[2] and "REQUIRE" in errors[2], "and then no more",
               outcomes)


def test_stalled_daemon_times_out():
    with FakeDaemon() as daemon:
        outcomes = run_ranks("late_peer", 2, env=daemon.env(GRADPLANE_TEST_FAKE="stall=0"))
        expect("Timed out waiting 2000ms" in (outcomes[0].err + outcomes[1].err), "a timeout",
               outcomes)


def test_peer_killed():
    with FakeDaemon() as daemon:
        outcomes = run_ranks("peer_killed", 3, env=daemon.env(), timeout=60)
        for rank in (0, 2):
            expect(outcomes[rank].code == 0, "the others live", outcomes)
            expect("Error" in outcomes[rank].said["error"], "and see an error", outcomes)


def test_peer_killed_and_the_daemons_say_so():
    # Gloo reports that a connection was closed. Only the daemons know why the job has ended.
    for more in ({}, {"GRADPLANE_REQUIRE": "1"}):
        with FakeDaemon() as daemon:
            outcomes = run_ranks("peer_killed", 3, env=daemon.env(**more), args=("dead",))
        for rank in (0, 2):
            said = outcomes[rank].err.count(f"rank {rank} lost its session: the fake daemon died")
            expect(said == 1, "why, once", outcomes)
            expect("gradplane" not in outcomes[rank].out, "not to the program's output", outcomes)


if __name__ == "__main__":
    run_all(globals())
