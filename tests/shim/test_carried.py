# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Over a fake daemon, a program gets the same sums, works and errors as from Gloo."""

import os
import tempfile

from harness import (EXACT, TORCH, FakeDaemon, exact_counts, expect, expect_all_well, reports,
                     run_all, run_ranks)

FLOATING = {1, 2, 3, 4}  # dataplane/base/element_type.h


def carried(program, world=2, env=None, args=(), rank_env=None, timeout=120,
            forked=True):
    """Runs a program over the fake daemon. Returns the outcomes and the reports of all ranks."""
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        own = daemon.env(GRADPLANE_REPORT=os.path.join(folder, "report-%r"), **(env or {}))
        outcomes = run_ranks(program, world, env=own, args=args, rank_env=rank_env, timeout=timeout,
                             forked=forked)
        expect_all_well(outcomes, program)
        found = reports(folder, world)
    for outcome in outcomes:
        expect("goes through Gloo" not in outcome.err, "no fallback", outcomes)
    return outcomes, found


def expect_as_gloo(program, world, counts, env=None, forked=True):
    plain = run_ranks(program, world, preload=False, forked=forked)
    outcomes, found = carried(program, world, env=env, forked=forked)
    expect([o.all_said for o in plain] == [o.all_said for o in outcomes], "as Gloo's",
           plain + outcomes)
    for report in found:
        expect(report["fallbacks"] == 0 and report["failed_ops"] == 0, str(report), outcomes)
        expect(report["carried"] == counts, f"{report}, not {counts}", outcomes)
        expect(report["carried_ops"] == sum(counts.values()), str(report), outcomes)
    return found


def test_exact_programs():
    for world in (2, 4):
        for report in expect_as_gloo(EXACT, world, exact_counts(world), forked=world == 4):
            # With two ranks, each half in `groups` is one rank.
            expect(report["passed_through"].get("one_rank", 0) == (7 if world == 2 else 0),
                   str(report))
            more = int(world == 2)
            # PyTorch itself refuses some calls, and gradplane carries others
            fewer = int(TORCH >= (2, 6))
            expect(report["passed"] == {"all_reduce": 7 + 5 * more - fewer,
                                        "broadcast": 8 + more - 4 * fewer,
                                        "all_gather": 7 + more - fewer}, str(report))
            expect(report["passed_through"]["arguments"] == 5, str(report))


def test_slow_completions():
    # Rounds are slow, so that a rank that does not wait has wrong results.
    expect_as_gloo("barrier_implies_wait+asynchronous+mixture", 2,
                   {"all_reduce": 72, "broadcast": 13, "all_gather": 13},
                   env={"GRADPLANE_TEST_FAKE": "slow=5"})


def test_bfloat16_is_carried():
    outcomes, found = carried("bfloat16")
    expect(all(o.said == {"error": "", "value": 3.0} for o in outcomes), "a sum", outcomes)
    expect(found[0]["carried_ops"] == 1, str(found), outcomes)


def test_largest_smallest_and_product():
    # Five types in five sizes, with three operations each.
    for world in (2, 3):
        for report in expect_as_gloo("reductions", world, {"all_reduce": 75}):
            expect(report["passed_through"] == {}, str(report))


def test_several_tensors_in_one_call():
    # Once with fast and once with slow rounds, so that a wait for only some tensors is found.
    for world, script in ((2, ""), (3, "slow=5")):
        expect_as_gloo("coalesced", world, {"all_reduce": 13, "all_gather": 5},
                       env={"GRADPLANE_TEST_FAKE": script})


def test_ddp_of_two_ranks_is_gloos():
    # With two ranks, a + b is rounded once in either order, so even floats are equal to Gloo's. DDP
    # of PyTorch 2 makes two buckets of this model, and older ones make one.
    sums = 90 if TORCH >= (2, 6) else 55
    expect_as_gloo("ddp", 2, {"all_reduce": sums, "all_gather": 8, "broadcast": 134})


def test_start_of_ddp_is_carried():
    plain = run_ranks("ddp_start", 3, preload=False)
    outcomes, found = carried("ddp_start", 3)
    expect(len({o.said["bits"] for o in plain + outcomes}) == 1, "rank 0's", plain + outcomes)
    for report in found:
        # The all_gather compares the number of parameters. The broadcasts send their shapes and
        # rank 0's state.
        expect(report["carried"] == {"all_gather": 1, "broadcast": 3}, str(report), outcomes)
        expect(report["passed_through"] == {}, str(report), outcomes)


def test_zero_redundancy_optimizer_is_gloos():
    for report in expect_as_gloo("zero_training", 2,
                                 {"all_reduce": 12, "all_gather": 2, "broadcast": 86}):
        expect(report["passed_through"] == {}, str(report))


def test_ddp_keeps_replicas_alike():
    # PowerSGD's hook sums whole buckets only in its first iterations.
    for program, buckets in (("ddp", range(42, 100)), ("powersgd", range(1, 5)),
                             ("wait_in_callback", range(1))):
        outcomes, found = carried(program, 4)
        said = [o.all_said for o in outcomes]
        expect(all(s == said[0] for s in said), "the replicas have the same bits", outcomes)
        for report in found:
            # Maps of used parameters, compressed buckets and the like are carried without a bucket.
            expect(report["carried_buckets"] in buckets, str(report), outcomes)
            expect(report["carried_buckets"] < report["carried_ops"], str(report), outcomes)
            expect(report["passed"] == {}, str(report), outcomes)


def test_under_torchs_own_wrapper():
    outcomes, found = carried("dtypes+ddp", env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    expect(found[0]["passed"] == {}, "barriers send and receive by themselves", outcomes)
    expect(found[0]["carried_buckets"] == (72 if TORCH >= (2, 6) else 42), str(found[0]), outcomes)


def submissions_of(folder, rank):
    """A rank's registrations and submissions: [(what, bucket, element type, elements)]."""
    with open(os.path.join(folder, f"submissions.{rank}"), encoding="utf8") as f:
        lines = [line.split() for line in f]
    return [(what, *map(int, numbers)) for what, *numbers in lines]


def expect_ids_of_buckets_alone(submissions, report):
    tables = {}
    for what, bucket, kind, elements in submissions:
        if what == "registered":
            expect(bucket == len(tables) + 1, f"ids in order, none twice: {bucket}")
            expect(kind in FLOATING, f"bucket {bucket} is of type {kind}")
            tables[bucket] = (kind, elements)
        elif bucket:
            expect(tables.get(bucket) == (kind, elements), f"bucket {bucket} is as registered")
    submitted = [entry for entry in submissions if entry[0] == "submitted"]
    of_buckets = [entry for entry in submitted if entry[1]]
    expect(len(of_buckets) == report["carried_buckets"], f"{len(of_buckets)}, not {report}")
    # Sums without a bucket have the same types, or are the maps in which DDP marks used parameters.
    plain = {kind for _, bucket, kind, _ in submitted if bucket == 0}
    expect(FLOATING & plain and plain - FLOATING, f"other sums of types {plain}")
    return len(of_buckets)


def test_only_gradient_buckets_have_ids():
    with tempfile.TemporaryDirectory() as folder:
        env = {"GRADPLANE_TEST_SUBMISSIONS": os.path.join(folder, "submissions"),
               "GRADPLANE_TEST_FAKE": "partial=3"}
        _, found = carried("dtypes+ddp", env=env)
        said = [submissions_of(folder, rank) for rank in range(2)]
    expect(said[0] == said[1], "all ranks give the same ids")
    for report in found:
        rounds = expect_ids_of_buckets_alone(said[0], report)
        expect(report["partial_rounds"] == rounds, f"rounds that lack something: {report}")
        expect(report["partial_blocks"] == 3 * rounds, f"their blocks: {report}")


def buckets_of(env):
    """By rank, the last registration of the only bucket: [(name, offset, elements)]."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "buckets")
        carried("one_bucket", env={"GRADPLANE_TEST_BUCKETS": log, **env})
        out = []
        for rank in range(2):
            with open(f"{log}.{rank}", encoding="utf8") as f:
                lines = [line.split() for line in f]
            out.append([(name, int(offset), int(count)) for _, name, offset, count in lines[-10:]])
        return out


def expect_tensors(buckets, names):
    for bucket in buckets:
        expect({name for name, _, _ in bucket} == names, f"{bucket}, not {names}")
        end = 0
        for name, offset, elements in bucket:
            expect(offset == end, f"{name} lies at {offset}, expected {end}")
            end = offset + elements
        expect(end == 20 * 64 + 64 + 128 + 2 * (64 * 64 + 64) + 64 * 5 + 5, f"{end} elements")


DDPS_NAMES = {f"{layer}.{kind}" for kind in ("weight", "bias")
              for layer in ("first", "norm", "middle", "sometimes", "last")}


def test_buckets_have_tensors():
    # DDP of PyTorch 2 always gives names.
    expect_tensors(buckets_of({}), DDPS_NAMES if TORCH >= (2, 6) else
                   {f"param.{i}" for i in range(10)})


def test_buckets_have_ddps_names():
    expect_tensors(buckets_of({"TORCH_DISTRIBUTED_DEBUG": "INFO"}), DDPS_NAMES)


def test_sums_that_are_gradients_by_name():
    with tempfile.TemporaryDirectory() as folder:
        log = {"GRADPLANE_TEST_BUCKETS": folder + "/buckets"}
        carried("outer_sums", env={**log, "GRADPLANE_GRADIENTS": "0"})
        expect(not os.listdir(folder), "every sum outside DDP is exact by default")
        outcomes, found = carried("outer_sums", env={**log, "GRADPLANE_GRADIENTS": "outer"})
        for rank in range(2):
            with open(f"{folder}/buckets.{rank}", encoding="utf8") as f:
                lines = sorted(f.read().splitlines())
            expect(lines == ["1 outer.3000 0 3000", "2 outer.2000 0 2000"], str(lines), outcomes)
            expect(found[rank]["carried_buckets"] == 4, str(found[rank]), outcomes)


def test_settings_that_differ():
    for name, value in (("GRADPLANE_GRADIENTS", "outer"), ("GRADPLANE_HEED_REDUCE_OP", "1")):
        with FakeDaemon() as daemon:
            ours = run_ranks("outer_sums", env=daemon.env(), rank_env={1: {name: value}})
            expect_all_well(ours, "a rank with another setting")
            for outcome in ours:
                expect("rank 1 has another value than rank 0 of GRADPLANE_GRADIENTS"
                       in outcome.err, "the rank and the variables are named", ours)


def test_operations_that_are_never_carried_are_counted():
    outcomes, found = carried("uncarried")
    for rank, report in enumerate(found):
        counts = {"reduce": 1, "gather": 1, "scatter": 1, "all_to_all": 1}
        counts |= {"recv": 2} if rank else {"send": 2}
        expect(report["passed"] == counts, str(report), outcomes)
        expect(report["passed_through"] == {"operation": 6}, str(report), outcomes)


def test_timeout_names_itself():
    with FakeDaemon() as daemon:
        ours = run_ranks("late_peer", env=daemon.env())
        expect("Timed out waiting 2000ms" in ours[0].said["error"], "Gloo's words", ours)
        expect("over gradplane" in ours[0].said["error"], "and whose wait it was", ours)
        expect(ours[0].said["again"] != "", "the group stays broken", ours)
        expect(ours[0].said["seconds"] < 7, "one timeout, not two", ours)
        expect(ours[1].said["error"] != "", "the late rank fails too, and does not hang", ours)


def test_peer_that_exits():
    with FakeDaemon() as daemon:
        ours = run_ranks("peer_exits", env=daemon.env(), timeout=60)
        expect_all_well(ours, "a peer that leaves")
        expect("RuntimeError" in ours[0].said["error"], "the next operation fails", ours)


def test_exit_with_work_in_flight():
    carried("no_wait_exit")
    # If a thread freed a Python tensor while Python ends, the process would be terminated.
    with tempfile.TemporaryDirectory() as folder:
        carried("exit_beside_a_result", env={"GP_TEST_FOLDER": folder})


def test_required_and_there():
    outcomes, _ = carried("repeat_failing", env={"GRADPLANE_REQUIRE": "1"})
    expect(all(o.said["errors"] == ["", "", ""] for o in outcomes), "no error", outcomes)


def test_long_run():
    outcomes, found = carried("long_run", world=3, args=("150",))
    expect(len({o.said["bits"] for o in outcomes}) == 1, "same bits everywhere", outcomes)
    expect(found[0]["carried_rounds"] == 150 * 7, str(found[0]), outcomes)


if __name__ == "__main__":
    run_all(globals())
