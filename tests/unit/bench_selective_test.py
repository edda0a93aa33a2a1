# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`scripts/bench selective`: the contestants, the trainings that count, and the results from their
times. Needs no network and no torch."""

import pathlib
import stat
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench.d"), str(ROOT / "scripts/lib"),
                str(ROOT / "tests/unit")]  # fmt: skip
sys.dont_write_bytecode = True
import report  # noqa: E402
import selective  # noqa: E402
import train  # noqa: E402
from bench_train_test import gradplane_run  # noqa: E402

UNEQUAL, SLOW = selective.make_cases(quick=False)
BY_NAME = {c.name: c for c in selective.make_contestants(["selective-bsp", "selective-ssp"])}
P30 = BY_NAME["gradplane-p30"]


def result(contestant, *runs):
    return selective.result(contestant, UNEQUAL, list(runs), "", 2)


def exchanged_run(seed=1, **changed):
    return gradplane_run(seed, **{"exchanged": 300, **changed})


class Cases(unittest.TestCase):
    def test_one_has_unequal_links_and_one_a_slow_rank(self):
        self.assertGreater(len(set(selective.rates_of(UNEQUAL))), 1)
        self.assertIsNone(UNEQUAL["slow_rank"])
        self.assertEqual(set(selective.rates_of(SLOW)), {50_000_000})
        self.assertNotEqual(selective.slug(UNEQUAL), selective.slug(SLOW))
        for case in (UNEQUAL, SLOW):
            self.assertEqual(len(selective.rates_of(case)), case["hosts"])

    def test_ranks_compute_as_the_case_says(self):
        self.assertEqual(selective.with_case(P30, UNEQUAL).job_options,
                         ("--averaged", "--compute-ms", "60"))  # fmt: skip
        self.assertEqual(selective.with_case(P30, SLOW).job_options[-4:],
                         ("--slow", "1", "--slow-factor", "3"))  # fmt: skip

    def test_averages_fall_on_the_end_of_an_epoch(self):
        for steps in selective.LOCAL_STEPS:
            self.assertEqual(selective.STEPS % steps, 0)
        self.assertIn(f"average_every: {selective.STEPS}}}", P30.extra)


class TakingPart(unittest.TestCase):
    def test_a_quick_run_has_few(self):
        asked = types.SimpleNamespace(contestant=selective.re.compile(""), quick=True)
        found = {name for name in BY_NAME if selective.is_asked(name, asked)}
        self.assertEqual(found, {"gradplane-exact", "gradplane-p30", "gradplane-local-4"})
        self.assertEqual([c["epochs"] for c in selective.make_cases(quick=True)], [7])

    def test_every_requirement_has_its_contestants(self):
        wanted = {"exact", "ltp", "local-4", "p30", "p50", "all", "p30-measured",
                  "p30-multicast", "ssp-p30", "ssp-p50", "ssp-all"}  # fmt: skip
        self.assertLessEqual({f"gradplane-{name}" for name in wanted}, set(BY_NAME))
        for name, contestant in BY_NAME.items():
            self.assertEqual("multicast: {enabled: true}" in contestant.extra,
                             name.endswith("-multicast"))  # fmt: skip
            self.assertEqual("mode: selective-ssp" in contestant.extra, "ssp" in name)
            self.assertEqual(contestant.tells_links, "measured" not in name)

    def test_a_mode_that_the_build_has_not_is_not_listed(self):
        names = [c.name for c in selective.make_contestants(["selective-bsp"])]
        self.assertFalse([name for name in names if "ssp" in name])

    def test_the_program_is_asked_what_it_accepts(self):
        with tempfile.TemporaryDirectory() as folder:
            cli = pathlib.Path(folder, "cli")
            cli.write_text('#!/bin/sh\ngrep -q "mode: selective-bsp" "$4"\n')
            cli.chmod(cli.stat().st_mode | stat.S_IXUSR)
            self.assertTrue(selective.is_accepted("selective-bsp", cli))
            self.assertFalse(selective.is_accepted("selective-ssp", cli))


class Results(unittest.TestCase):
    def test_who_exchanged_nothing_does_not_count(self):
        found = result(P30, exchanged_run(1), exchanged_run(2, exchanged=0))
        self.assertEqual(found["failure"], "no update was exchanged")
        self.assertNotIn("failure", result(P30, exchanged_run()))
        self.assertNotIn("failure", result(BY_NAME["gradplane-exact"], gradplane_run()))

    def test_who_fell_back_or_differs_after_an_average_does_not_count(self):
        self.assertIn("fallen back", result(P30, exchanged_run(fallen_back=1))["failure"])
        self.assertEqual(result(P30, exchanged_run(identical=False))["failure"], "replicas differ")

    def test_times_are_told_over_those_of_exact_sums(self):
        exact = result(BY_NAME[selective.EXACT], gradplane_run())
        curve = [[2.0, 0.96], [8.0, 0.97]]
        fast = result(P30, exchanged_run(curve=curve, steps=[0.05] * 97))
        missed = result(P30, exchanged_run(curve=[[2.0, 0.5]]))
        selective.with_ratios([exact, fast, missed])
        self.assertEqual(exact["over_exact"], 1)
        self.assertEqual(fast["over_exact"], 2)
        self.assertAlmostEqual(fast["step_over_exact"], 2)
        self.assertNotIn("over_exact", missed)
        self.assertAlmostEqual(fast["cpu_seconds_of_step"], 12.0 / 100)
        row = report.table([fast], selective.COLUMNS, selective.label).splitlines()[-1]
        self.assertIn("| 2.0 | 2.00 | 97.0% |", row)

    def test_without_exact_sums_there_is_no_ratio(self):
        alone = result(P30, exchanged_run())
        self.assertNotIn("over_exact", selective.with_ratios([alone])[0])

    def test_the_others_benches_train_other_models(self):
        self.assertNotIn(selective.MODEL, {case["model"] for case in train.make_cases(False)})


if __name__ == "__main__":
    unittest.main()
