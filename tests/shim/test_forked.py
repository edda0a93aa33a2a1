# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Children of fork() whose parent has used a process group."""

import json
import os
import tempfile

from harness import FakeDaemon, expect, expect_all_well, reports, run_all, run_ranks

REQUIRE = {"GRADPLANE_REQUIRE": "1"}


def run(program, env):
    with FakeDaemon() as daemon, tempfile.TemporaryDirectory() as folder:
        own = daemon.env(GRADPLANE_REPORT=os.path.join(folder, "report-%r"),
                         GP_TEST_RENDEZVOUS=os.path.join(folder, "rendezvous"), **env)
        outcomes = run_ranks(program, 2, env=own)
        expect_all_well(outcomes, f"{program} {env}")
        children = []
        for rank in range(2):
            path = os.path.join(folder, f"report-{100 + rank}")
            if os.path.exists(path):
                with open(path, encoding="utf8") as f:
                    children.append(json.load(f))
        return outcomes, reports(folder, 2), children


def test_a_group_of_the_childs_own_is_carried():
    for env in ({}, REQUIRE):
        outcomes, parents, children = run("own_group_after_fork", env)
        expect(len(children) == 2, "the children report what they did", outcomes)
        for parent, child in zip(parents, children):
            expect(parent["carried_ops"] == 1, str(parent), outcomes)
            expect(child["carried_ops"] == 9, str(child), outcomes)
            expect(child["fallen_back_ops"] == 0, str(child), outcomes)
            expect(child["passed_through"] == {}, str(child), outcomes)
            expect(child["pid"] != parent["pid"], str(child), outcomes)
        expect(all(o.said["values"] == [3.0] * 4 for o in outcomes), "and callbacks run", outcomes)


def test_the_parents_group_fails_where_gradplane_is_required():
    for env in (REQUIRE, {"GP_TEST_CHILD_REQUIRE": "1"}):
        expect_failure_in_children(env)


def expect_failure_in_children(env):
    outcomes, parents, children = run("parents_group_after_fork", env)
    for outcome, parent in zip(outcomes, parents):
        expect("made before fork()" in outcome.said["error"] and "REQUIRE" in outcome.said["error"],
               "the child's all_reduce says why it fails", outcomes)
        expect(outcome.said["value"] == 2, "the parent goes on", outcomes)
        expect(parent["carried_ops"] == 2 and parent["failed_ops"] == 0, str(parent), outcomes)
    expect(children == [], "a child without a group of its own reports nothing", outcomes)


def test_the_parents_group_is_gloos_otherwise():
    outcomes, parents, _ = run("parents_group_after_fork", {})
    for outcome, parent in zip(outcomes, parents):
        expect(outcome.said["error"] == "", "it is called as without gradplane", outcomes)
        expect("made before fork()" in outcome.err, "and that is said", outcomes)
        expect(parent["carried_ops"] == 2, str(parent), outcomes)


if __name__ == "__main__":
    run_all(globals())
