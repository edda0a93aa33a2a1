# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""How `scripts/bench train` evaluates whole trainings: which count, their tables and JSON, and
their confidence intervals. Needs no network and no torch."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench.d"), str(ROOT / "scripts/lib")]
sys.dont_write_bytecode = True
import bounds  # noqa: E402
import meters  # noqa: E402
import report  # noqa: E402
import train  # noqa: E402
import train_run  # noqa: E402

DIGITS, TEXT = (
    next(case for case in train.make_cases(quick=False) if case["model"] == model)
    for model in ("digits", "text")
)
CORES = 2


def run(seed=1, **changed):
    """A training over Gloo that reaches 96 % after 4 s and ends with 97 % after 8."""
    values = {
        "seed": seed,
        "about": {"begin_ns": 5, "local_step_s": 0.02, "parameters": 7},
        "curve": [[2.0, 0.5], [4.0, 0.96], [8.0, 0.97]],
        "steps": [0.1] * 97,
        "first_step_s": 0.5,
        "seconds": 8.0,
        "sync_s": 6.0,
        "identical": True,
        "cpu_seconds": {"h0": 4.0, "h1": 2.0, "switch": 6.0},
        "busy_core_seconds": 12.0,
        "busy_of_seconds": 8.0,
        "wire_bytes": 10_000,
        "needed": 200,
        "retransmitted": 1,
        "deepest_queue_bytes": 10,
        "queue_drops": 0,
        "late_frames": 1,
        "latest_frame_us": 1500.0,
        "delivered_frames": 100,
        "lost_by_switch": 0,
    }
    return train_run.Run(**{**values, **changed})


def gradplane_run(seed=1, **changed):
    counted = {"carried": 400, "fallen_back": 0, "passed_through": 0, "rounds": 400,
               "partial_rounds": 100, "partial_blocks": 150}  # fmt: skip
    return run(seed, **{**counted, **changed})


def result(*runs, case=DIGITS, failure=""):
    contestant, bound_s = train_run.Contestant("somebody"), train.link_bound_s(case)
    return train.result(contestant, case, list(runs), failure, CORES, bound_s)


def reaching(*seconds):
    """Returns a run for each time to the target. None: the run misses the target."""
    curves = [[[s or 1.0, 0.96 if s else 0.5], [20.0, 0.94]] for s in seconds]
    return [run(seed, curve=curve) for seed, curve in enumerate(curves, 1)]


class FromTheNetwork(unittest.TestCase):
    def test_a_training_takes_all_that_the_network_counts(self):
        direction = {"sent_wire_bytes": 5, "deepest_queue_bytes": 7, "queue_drops": 1}
        links = {"a": {"up": direction, "down": direction},
                 "l1-2": {"forward": direction, "backward": direction}}  # fmt: skip
        used = meters.network_use({"switch": {}, "links": links})
        self.assertEqual(run(**used).queue_drops, 4)
        self.assertEqual(meters.site_link_bytes({"links": links}), {"l1-2": [5, 5]})


class WhatCounts(unittest.TestCase):
    def test_good_runs_count(self):
        self.assertEqual(train.failure_of([run(1), run(2)]), "")
        self.assertEqual(train.failure_of([gradplane_run()]), "")
        self.assertTrue(result(run())["correct"])

    def test_one_bad_run_of_several_is_seen(self):
        for bad, why in (
            (run(2, identical=False), "replicas differ"),
            (gradplane_run(2, fallen_back=3), "3 fallen back"),
            (gradplane_run(2, passed_through=4), "4 passed through"),
            (gradplane_run(2, carried_ops=0), "carried nothing"),
        ):
            found = result(gradplane_run(1), bad)
            self.assertFalse(found["correct"])
            self.assertIn(why, found["failure"])
            self.assertNotIn("median_s", found)

    def test_a_failure_and_no_run_at_all_are_told(self):
        self.assertEqual(result(run(), failure="rank 2 ended")["failure"], "rank 2 ended")
        self.assertEqual(result()["failure"], "no run")
        table = report.table([result(run(), failure="rank 2 ended")], train.COLUMNS, train.label)
        self.assertIn("| thrown out: rank 2 ended |", table)


class Iterations(unittest.TestCase):
    def test_they_are_of_all_runs_together(self):
        found = result(run(1, steps=[0.1] * 60), run(2, steps=[0.1] * 37 + [0.9] * 3))
        self.assertEqual((found["runs"], found["iterations"]), (2, 100))
        self.assertAlmostEqual(found["median_s"], 0.1)
        self.assertAlmostEqual(found["p99_s"], 0.9)  # three of a hundred are slow
        found = result(run(1, steps=[0.1] * 160), run(2, steps=[0.1] * 38 + [0.9] * 2))
        self.assertAlmostEqual(found["p99_s"], 0.1)  # two of two hundred, all of one run

    def test_costs_are_shares_of_what_they_are_of(self):
        cpu = {"h0": 8.0, "h1": 2.0, "switch": 2.0}
        found = result(run(1), run(2, cpu_seconds=cpu, latest_frame_us=500.0))
        self.assertAlmostEqual(found["cpu"]["h0"], 0.75)  # 12 of 16 seconds
        self.assertAlmostEqual(found["cpu"]["switch"], 0.5)
        self.assertAlmostEqual(found["machine_busy"], 0.75)
        self.assertAlmostEqual(found["sync_share"], 0.75)
        self.assertAlmostEqual(found["retransmitted_over_needed"], 0.005)
        self.assertEqual(found["wire_bytes"], 100)  # per iteration, of 97 + 3
        self.assertEqual(found["latest_frame_us"], 1500.0)
        row = report.table([found], train.COLUMNS, train.label).splitlines()[-1]
        self.assertIn("| 0.75 / 0.50 cores | 0.50 cores | 75 % |", row)

    def test_busy_processors_are_said(self):
        self.assertFalse(result(run(busy_core_seconds=14.0))["cpu_bound"])
        found = result(run(busy_core_seconds=15.0))
        self.assertTrue(found["cpu_bound"])
        self.assertIn("94 %, CPU-bound |", report.table([found], train.COLUMNS, train.label))

    def test_rounds_that_lacked_something_are_a_share(self):
        self.assertEqual(train.partial(result(gradplane_run(1), gradplane_run(2))), "25%")
        self.assertEqual(train.partial(result(run())), "-")


class Seeds(unittest.TestCase):
    def test_the_target_is_reached_at_the_end_of_an_epoch(self):
        self.assertEqual(train.seconds_to_target(DIGITS, run().curve), 4.0)
        self.assertIsNone(train.seconds_to_target(DIGITS, [[2.0, 0.5], [4.0, 0.9499]]))
        losses = [[2.0, 3.0], [4.0, 2.58], [8.0, 2.4]]
        self.assertEqual(train.seconds_to_target(TEXT, losses), 4.0)
        self.assertIsNone(train.seconds_to_target(TEXT, [[2.0, 3.0], [4.0, 2.59]]))

    def test_median_and_interval_of_the_time_to_target(self):
        found = result(*reaching(9.0, 4.0, 5.0, 6.0, 30.0))
        self.assertEqual(found["to_target_s"], [9.0, 4.0, 5.0, 6.0, 30.0])
        self.assertEqual(found["median_to_target_s"], 6.0)
        self.assertEqual(found["to_target_ci95_s"], [4.0, 30.0])
        self.assertEqual(train.to_target(found), "6.0 (4.0-30.0)")
        row = report.table([found], train.COLUMNS, train.label).splitlines()[-1]
        self.assertIn("| somebody | 5 | 6.0 (4.0-30.0) | 94.0% |", row)

    def test_one_seed_has_no_interval(self):
        found = result(run())
        self.assertIsNone(found["to_target_ci95_s"])
        self.assertIsNone(found["final_ci95"])
        self.assertEqual((train.to_target(found), train.final(found)), ("4.0", "97.0%"))

    def test_a_missed_target_is_not_left_out_of_the_median(self):
        found = result(*reaching(4.0, None, 5.0))
        self.assertIsNone(found["median_to_target_s"])
        self.assertIsNone(found["to_target_ci95_s"])
        self.assertEqual(train.to_target(found), "missed in 1 of 3")

    def test_final_values(self):
        runs = [run(seed, curve=[[9.0, value]]) for seed, value in enumerate((2.5, 2.3, 2.4), 1)]
        found = result(*runs, case=TEXT)
        self.assertAlmostEqual(found["final_median"], 2.4)
        self.assertEqual(found["final_ci95"], [2.3, 2.5])
        self.assertEqual(train.final(found), "2.400 (2.300-2.500)")


class Bootstrap(unittest.TestCase):
    def test_few_samples_give_their_range_and_many_a_narrow_interval(self):
        self.assertIsNone(bounds.bootstrap_interval([3.0]))
        self.assertEqual(bounds.bootstrap_interval([3.0, 1.0]), [1.0, 3.0])
        self.assertEqual(bounds.bootstrap_interval([5.0] * 4), [5.0, 5.0])
        low, high = bounds.bootstrap_interval(list(range(1, 101)))
        # Near the interval from order statistics, which is 40 to 61.
        self.assertTrue(38 <= low <= 43 and 58 <= high <= 63, (low, high))

    def test_a_lower_confidence_is_narrower(self):
        samples = [float(number) for number in range(1, 12)]
        low, high = bounds.bootstrap_interval(samples)
        inner_low, inner_high = bounds.bootstrap_interval(samples, confidence=0.5)
        self.assertTrue(low < inner_low < 6 < inner_high < high)

    def test_it_is_the_same_each_time(self):
        samples = [float(number * number) for number in range(8)]
        first = bounds.bootstrap_interval(samples)
        self.assertEqual(bounds.bootstrap_interval(samples), first)


class Json(unittest.TestCase):
    def test_the_json_keeps_what_each_run_gave(self):
        found = result(gradplane_run(1), gradplane_run(2))
        self.assertEqual(found["seeds"], [1, 2])
        self.assertEqual(found["total_s"], [8.0, 8.0])
        self.assertEqual(len(found["curves"]), 2)
        self.assertEqual(found["about"], {"parameters": 7})


if __name__ == "__main__":
    unittest.main()
