# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Contestants start, fail, start again and end, and the harness keeps their valid results. Needs no
network and no root."""

import json
import pathlib
import re
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench.d"), str(ROOT / "scripts/lib")]
sys.dont_write_bytecode = True
import bench  # noqa: E402
import cases  # noqa: E402
import contestants  # noqa: E402
import harness  # noqa: E402
import netlab  # noqa: E402

CASE = cases.case(2, 1 << 20)


class FakeContestant:
    def __init__(self, name, start=None, ready=None, troubles=()):
        self.name, self._start, self._ready, self._troubles = name, start, ready, list(troubles)
        self.calls = []

    def _do(self, what, problem):
        self.calls.append(what)
        if problem:
            raise problem

    def start(self, lab, rate_bits, logs):
        self.place = (lab, rate_bits, logs)
        self._do("start", self._start)

    def ready(self, seconds):
        self.seconds = seconds
        self._do("ready", self._ready)

    def end(self):
        self._do("end", None)
        return self._troubles

    def mend(self):
        self._start = self._ready = None
        self._troubles = []


class Together(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.logs = pathlib.Path(folder.name)
        self.lab = types.SimpleNamespace(hosts={"h0": None, "h1": None})

    def together(self, *chosen):
        return bench.Contestants(self.lab, chosen, CASE, self.logs)

    def test_all_are_started_once_and_ended(self):
        one, other = FakeContestant("a"), FakeContestant("b")
        with self.together(one, other) as both:
            for _ in range(3):
                one.lead_factor = 8
                self.assertEqual(both.start_missing(), [one, other])
                self.assertEqual(one.lead_factor, 1)  # each case finds its own factor
        self.assertEqual(one.calls, ["start", "ready", "end"])
        self.assertEqual(other.calls, ["start", "ready", "end"])
        self.assertEqual(one.place, (self.lab, CASE["rate_bits_per_second"], self.logs / "a"))
        self.assertEqual(one.seconds, 2 * harness.START_SECONDS_PER_HOST)
        self.assertEqual((both.failures, both.troubles), ({}, {}))

    def test_one_that_does_not_start_is_ended_told_and_tried_again(self):
        good = FakeContestant("a")
        for bad in (
            FakeContestant("b", start=OSError("no file"), troubles=["rank-0 left with 1"]),
            FakeContestant("b", ready=contestants.ContestantError("no file")),
            FakeContestant("b", start=netlab.LabError("no file")),
        ):
            with self.together(good, bad) as both:
                self.assertEqual(both.start_missing(), [good])
                self.assertEqual(both.failures, {"b": "no file"})
                self.assertEqual(bad.calls[-1], "end")
                # The failure counts for this case only. Results of earlier cases stay as they are.
                self.assertEqual(both.troubles, {})
                bad.mend()
                self.assertEqual(both.start_missing(), [good, bad])
                self.assertEqual(both.failures, {})

    def test_one_that_failed_in_a_case_is_started_for_the_next(self):
        one = FakeContestant("a", troubles=["rank-0 left with 1"])
        with self.together(one) as alone:
            alone.start_missing()
            alone.give_up("a")
            self.assertEqual(alone.troubles, {})
            self.assertEqual(alone.start_missing(), [one])
        self.assertEqual(one.calls, ["start", "ready", "end"] * 2)

    def test_what_one_says_at_its_end_makes_its_results_void(self):
        one = FakeContestant("a", troubles=["it fell back", "twice"])
        with self.together(one, FakeContestant("b")) as both:
            both.start_missing()
        self.assertEqual(both.troubles, {"a": "it fell back; twice"})
        other_hosts = cases.case(3, 1 << 20)
        entries = [
            {"contestant": name, "case": case, "bound_s": 1, "runs": 2, "median_s": 3}
            for name, case in (("a", CASE), ("b", CASE), ("a", other_hosts))
        ]
        bench.make_void(entries, [CASE], both.troubles)
        self.assertEqual(entries[0], {"contestant": "a", "case": CASE, "bound_s": 1, "runs": 2,
                                      "correct": False,
                                      "failure": "it fell back; twice"})  # fmt: skip
        self.assertTrue(all("failure" not in entry for entry in entries[1:]))

    def test_whom_no_case_asks_is_not_started(self):
        module = types.SimpleNamespace(
            make_contestants=lambda quick: [FakeContestant(name) for name in "abc"],
            is_asked=lambda name, case: name != "b" or case["hosts"] > 2,
        )
        options = types.SimpleNamespace(quick=False, contestant=re.compile("[ab]"))
        other_hosts = cases.case(3, 1 << 20)
        for group, names in (([CASE], "a"), ([CASE, other_hosts], "ab")):
            chosen = bench.chosen_of(module, group, options)
            self.assertEqual("".join(one.name for one in chosen), names)

    def test_an_end_that_fails_does_not_keep_the_others_from_theirs(self):
        bad, good = FakeContestant("a"), FakeContestant("b")
        bad.end = lambda: bad._do("end", OSError("gone"))
        with self.together(bad, good) as both:
            both.start_missing()
        self.assertEqual(both.troubles, {"a": "gone"})
        self.assertEqual(good.calls[-1], "end")


class FakeProcess:
    def __init__(self, name, code=0):
        self.name, self._code, self.ended = name, code, False

    def exit_code(self):
        return self._code

    def check_alive(self):
        if self.ended:
            raise contestants.ContestantError(f"{self.name} has ended")

    def end(self):
        self.ended = True


class Talking(contestants.Contestant):
    """Two ranks. Each prints one of `lines` as soon as it starts."""

    def __init__(self, lines):
        super().__init__("talking")
        self.lines = lines

    def _start(self, rate_bits):
        self.processes.append(FakeProcess(f"start of {self.lines}"))
        for rank, line in enumerate(self.lines):
            self.say(rank, line)

    def say(self, rank, line):
        with open(self._ranks.answers_path(rank), "w") as fifo:
            fifo.write(json.dumps(line) + "\n")


class OneContestant(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.logs = pathlib.Path(folder.name)
        host = types.SimpleNamespace(namespace="somewhere")
        self.lab = types.SimpleNamespace(hosts={"h0": host, "h1": host})

    def test_it_starts_anew_after_a_failure_as_if_nothing_had_been(self):
        ready = [{"ready": True, "rank": 0}, {"ready": True, "rank": 1}]
        contestant = Talking([ready[0], {"rank": 1, "error": "no route"}])
        contestant.start(self.lab, 1, self.logs)
        with self.assertRaisesRegex(contestants.ContestantError, "rank 1 is not ready: no route"):
            contestant.ready(1)
        self.assertTrue(contestant.is_broken)
        contestant.end()
        contestant.lines = ready
        contestant.start(self.lab, 1, self.logs)
        contestant.ready(1)
        self.assertEqual(contestant.why_dead(), "")  # only those of the first start
        for rank in range(2):
            contestant.say(rank, {"rank": rank, "end_ns": 5})
        answers = contestant.round(1, 64, 0, timeout=1)
        self.assertEqual([answer["end_ns"] for answer in answers], [5, 5])
        self.assertEqual(contestant.end(), [])

    def test_a_start_that_comes_to_nothing_can_be_ended(self):
        contestant = Talking([{"ready": True, "rank": rank} for rank in range(2)])
        contestant.start(self.lab, 1, self.logs)
        contestant.ready(1)
        contestant.end()
        contestant.cc = "cubic"
        self.lab.set_tcp = lambda _: (_ for _ in ()).throw(netlab.LabError("no such TCP"))
        with self.assertRaises(netlab.LabError):
            contestant.start(self.lab, 1, self.logs)
        self.assertEqual(contestant.end(), [])

    def test_ranks_that_leave_badly_are_told(self):
        contestant = Talking([{"ready": True, "rank": rank} for rank in range(2)])
        contestant.start(self.lab, 1, self.logs)
        contestant.processes.append(FakeProcess("rank-7", code=3))
        self.assertEqual(contestant.end(), ["rank-7 left with exit code 3"])


if __name__ == "__main__":
    unittest.main()
