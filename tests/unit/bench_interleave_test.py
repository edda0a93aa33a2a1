# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`scripts/bench interleave`: the plans of jobs, the results from the ends of their iterations,
and when jobs count as undisturbed. Needs no network and no root."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench.d"), str(ROOT / "scripts/lib")]
sys.dont_write_bytecode = True
import contestants  # noqa: E402
import interleave  # noqa: E402
import interleave_run  # noqa: E402
import interleave_simulated  # noqa: E402
from interleave_run import Trained  # noqa: E402
from interleave_simulated import Setup  # noqa: E402

TWO = interleave.case([0.5, 0.5], iterations=4)
UNLIKE = interleave.case([0.25, 0.5], periods=[1, 2], jitter=0.1, iterations=8)


class FakeMachine:
    cores = 2

    def busy_core_seconds(self, begin_ns, end_ns):
        self.asked = (begin_ns, end_ns)
        return 3.0, 2.0


def stats():
    direction = {"queue_drops": 5, "marks": 7, "sent_wire_bytes": 1, "deepest_queue_bytes": 2048}
    links = {interleave.ROOT: {"up": direction, "down": direction}}
    return {"links": links, "switch": {"late_1ms": 2, "delivered": 100}}


class Plans(unittest.TestCase):
    def test_alike_jobs_compute_as_long_as_their_share_says(self):
        case = interleave.case([0.25] * 4)
        plans = interleave.make_plans(case, [0.2] * 4)
        self.assertEqual([plan.message_bytes for plan in plans], [interleave.BYTES] * 4)
        for job, plan in enumerate(plans):
            self.assertAlmostEqual(plan.compute_s, 0.6)
            self.assertAlmostEqual(plan.at_s, job * 0.002)
            self.assertEqual(plan.iterations, interleave.ITERATIONS)
        self.assertEqual(len({plan.seed for plan in plans}), 4)

    def test_bytes_follow_from_share_and_period(self):
        """Twice the share of a period twice as long takes four times the bytes. Half as many
        iterations take as long."""
        first, second = interleave.make_plans(UNLIKE, [0.1, 0.4])
        self.assertEqual(second.message_bytes, 4 * first.message_bytes)
        self.assertAlmostEqual(first.compute_s + 0.1, 0.4)
        self.assertAlmostEqual(second.compute_s + 0.4, 0.8)
        self.assertEqual((first.iterations, second.iterations), (8, 4))
        self.assertEqual((first.jitter, second.jitter), (0.1, 0.1))

    def test_every_size_is_whole_elements_of_whole_buckets(self):
        for case in interleave.make_cases(quick=False):
            for job in range(len(case["shares"])):
                self.assertEqual(interleave.bytes_of(case, job) % (4 * interleave_run.BUCKETS), 0)

    def test_bound_is_of_all_workers_over_one_link(self):
        # 832 KiB are 609 blocks of 1400 bytes at most, with headers.
        bound_s = interleave.bound_s(TWO)
        self.assertGreater(bound_s, 2 * interleave.BYTES * 8 / 1e8)
        self.assertLess(bound_s, 1.15 * 2 * interleave.BYTES * 8 / 1e8)


class Summary(unittest.TestCase):
    def test_ratios_are_from_end_to_end(self):
        self.assertEqual(interleave.ratios_of([10, 12, 13, 17], 2), [1.0, 0.5, 2.0])

    def test_as_alone_needs_all_jobs_and_enough_iterations(self):
        count = interleave.CONVERGED_ITERATIONS
        good, bad = [1.01] * count, [1.5]
        self.assertEqual(interleave.converged_at([good, good]), 0)
        self.assertEqual(interleave.converged_at([bad + good, good + bad]), None)
        self.assertEqual(interleave.converged_at([bad + good, bad + good]), 1)
        self.assertEqual(interleave.converged_at([good[1:], good[1:]]), None)
        self.assertEqual(interleave.converged_at([[1.03] * count] * 2), None)

    def test_an_entry_has_all_jobs(self):
        plans = interleave.make_plans(TWO, [1.0, 1.0])
        machine = FakeMachine()
        trained = [
            Trained([0.0], [1.0, 3.0, 5.0], correct=True, late_s=0.1),
            Trained([0.5], [2.0, 5.0, 9.0], correct=True, late_s=0.3),
        ]
        entry = interleave.result(plans, [1.0, 1.0], trained, stats(), machine)
        self.assertEqual(entry["ratios"], [[1.0, 1.0], [1.5, 2.0]])
        self.assertEqual((entry["runs"], entry["mean_over"], entry["p99_over"]), (4, 1.375, 2.0))
        self.assertEqual(entry["settled_over"], 1.5)
        self.assertEqual(entry["isolated_s"], [2.0, 2.0])
        self.assertEqual((entry["drops"], entry["marks"]), (5, 7))
        self.assertEqual(machine.asked, (0, int(9e9)))
        self.assertEqual((entry["machine_busy"], entry["cpu_bound"]), (0.75, False))
        whole = {"contestant": "grants-fair", "case": TWO, "bound_s": 0.1, **entry}
        row = interleave.tables([whole]).splitlines()[-1]
        self.assertEqual(
            row, "| grants-fair | 4 | 2000 | 1.375 | 2.000 | 1.500 | never | 5 | 2 KiB | 75 % |"
        )

    def test_a_wrong_sum_is_thrown_out(self):
        plans = interleave.make_plans(TWO, [1.0, 1.0])
        trained = [Trained([0], [1, 2], True, 0), Trained([0], [1, 2], False, 0)]
        entry = interleave.result(plans, [1.0, 1.0], trained, stats(), FakeMachine())
        self.assertEqual((entry["correct"], entry["runs"]), (False, 0))
        whole = {"contestant": "dctcp", "case": TWO, "bound_s": 0.1, **entry}
        self.assertIn("thrown out: a sum was wrong", interleave.tables([whole]))


class Answers(unittest.TestCase):
    def test_the_last_rank_counts(self):
        answers = [
            {"rank": 0, "start_ns": [1e9, 4e9], "end_ns": [2e9, 6e9], "late_ns": 5e8,
             "correct": True},
            {"rank": 1, "start_ns": [2e9, 3e9], "end_ns": [3e9, 5e9], "late_ns": 1e9,
             "correct": True},
            {"rank": "server", "correct": True},
        ]  # fmt: skip
        found = interleave_run.sum_up(answers)
        self.assertEqual(found, Trained([2.0, 4.0], [3.0, 6.0], correct=True, late_s=1.0))
        answers[1]["correct"] = False
        self.assertFalse(interleave_run.sum_up(answers).correct)

    def test_an_error_is_raised(self):
        with self.assertRaisesRegex(contestants.ContestantError, "no round"):
            interleave_run.sum_up([{"rank": 0, "error": "no round"}])


class Simulated(unittest.TestCase):
    SAID = {
        "setting": "2 jobs, jitter", "jobs": 2, "share": 0.5, "jitter": 0.05,
        "controller": "grants", "policy": "mltcp", "seed": 1, "iterations": 3, "mean": 1.25,
        "p99": 2.0, "settled_mean": 1.5, "ratios": [[1.0, 1.0], [1.0, 2.0]], "converged_at": -1,
        "drops": 4, "finished": True,
    }  # fmt: skip

    def test_a_line_becomes_an_entry(self):
        entry = interleave_simulated.entry_of(self.SAID, Setup(("grants",), 50, 60))
        self.assertEqual(entry["contestant"], "grants-mltcp")
        self.assertEqual(entry["bound_s"], 0.025)
        row = interleave_simulated.tables([entry]).splitlines()
        self.assertIn("**2 jobs, jitter 5 %, a = 0.5, 50 ms** (bound 25.0 ms)", row)
        self.assertEqual(row[-1], "| grants-mltcp | 4 | 1.250 | 2.000 | 1.500 | never | 4 |")

    def test_a_controller_has_its_own_name_and_case(self):
        said = {**self.SAID, "controller": "cubic+mltcp", "setting": "as asked", "jitter": 0.0,
                "converged_at": 7}  # fmt: skip
        entry = interleave_simulated.entry_of(
            said, Setup(("cubic",), 200, 30, jobs=2, mark_bytes=20000, nodes=True)
        )
        self.assertEqual((entry["contestant"], entry["converged_at"]), ("cubic+mltcp", 7))
        text = interleave_simulated.label(entry["case"])
        self.assertEqual(text, "2 jobs, a = 0.5, 200 ms, marks from 20000 B, nodes")


class Asked(unittest.TestCase):
    def test_everybody_in_the_case_of_the_predictions(self):
        names = [one.name for one in interleave.make_contestants(quick=False)]
        self.assertEqual(len(names), len(set(names)))
        cases_asked = interleave.make_cases(quick=False)
        for name in names:
            self.assertTrue(interleave.is_asked(name, cases_asked[0]), name)
        for case in cases_asked:
            asked = [name for name in names if interleave.is_asked(name, case)]
            self.assertIn("grants-fair", asked)
            self.assertIn("grants-mltcp", asked)

    def test_labels_tell_cases_apart(self):
        labels = [interleave.label(case) for case in interleave.make_cases(quick=False)]
        self.assertEqual(labels, [
            "2 jobs, a = 0.5", "3 jobs, a = 0.333", "4 jobs, a = 0.25",
            "2 jobs, a = 0.5, jitter 5 %", "2 jobs, a = 0.333, periods 1 : 1.5",
            "2 jobs, a = 0.7 and 0.5",
        ])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
