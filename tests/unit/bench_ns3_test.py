# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`scripts/bench ns3`: the results and tables from the output of ns3_incast. Needs no ns-3."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench.d"), str(ROOT / "scripts/lib")]
sys.dont_write_bytecode = True
import harness  # noqa: E402
import ns3  # noqa: E402

DROP_TAIL, ECN = ns3.make_cases(quick=True)[0], ns3.make_cases(quick=True)[-1]
SAID = {
    "bound_s": 0.1, "drops": 6, "marks": 3, "marks_heard": 2, "deepest_queue_bytes": 2048,
    "drops_elsewhere": 0, "needed_bytes": 1000, "repeated_bytes": 50, "failure": "",
    "rounds": [{"push_s": 0.3, "all_reduce_s": 0.31, "spread": 2.0},
               {"push_s": 0.1, "all_reduce_s": 0.13, "spread": 1.0},
               {"push_s": 0.2, "all_reduce_s": 0.22, "spread": 4.0}],
}  # fmt: skip


def of_program(text, code="0"):
    """Replaces ns3_incast by a program that prints `text`."""
    words = [sys.executable, "-c", f"print({text!r}); raise SystemExit({code})"]
    return mock.patch.object(ns3, "command", lambda *_: words)


class Ns3Test(unittest.TestCase):
    def test_a_result_is_of_rounds(self):
        entry = ns3.result("gradplane-grants", DROP_TAIL, SAID)
        self.assertTrue(entry["correct"])
        self.assertEqual(entry["runs"], 3)
        self.assertAlmostEqual(entry["median_s"], 0.2)
        self.assertAlmostEqual(entry["over_bound"], 2)
        self.assertAlmostEqual(entry["first_over_bound"], 3)
        self.assertAlmostEqual(entry["worst_over_bound"], 3)
        self.assertAlmostEqual(entry["all_reduce_over_bound"], 2.2)
        self.assertEqual(entry["spread"], 2)
        self.assertEqual((entry["drops"], entry["marks"]), (2, 1))  # per round
        self.assertAlmostEqual(entry["retransmitted_over_needed"], 0.05)

    def test_tcp_sums_nothing(self):
        rounds = [{**one, "all_reduce_s": None} for one in SAID["rounds"]]
        entry = ns3.result("tcp-reno", DROP_TAIL, {**SAID, "rounds": rounds})
        self.assertIsNone(entry["all_reduce_over_bound"])
        self.assertIn("| 3.000 | - | 2.00 |", ns3.tables([entry]))

    def test_a_failure_is_told_and_not_plotted(self):
        for changed, why in (
            ({"failure": "only 1 of 3 rounds ended"}, "only 1 of 3"),
            ({"drops_elsewhere": 4}, "4 packets lost where nothing may be"),
        ):
            entry = ns3.result("tcp-bbr", DROP_TAIL, {**SAID, **changed})
            self.assertFalse(entry["correct"])
            text = ns3.tables([entry])
            self.assertIn(why, text)
            self.assertIn("| tcp-bbr | - |", text)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(ns3.draw([entry], pathlib.Path(folder)), [])

    def test_what_the_program_says_becomes_an_entry(self):
        with of_program('{"no": "json'):
            self.assertIn("exit code 0", ns3.measure("tcp-bbr", ECN, 3)["failure"])
        with of_program(ns3.json.dumps({**SAID, "failure": "host 3 got a wrong sum"}), "1"):
            self.assertIn("wrong sum", ns3.measure("tcp-bbr", ECN, 3)["failure"])
        with of_program(ns3.json.dumps(SAID)):
            self.assertTrue(ns3.measure("tcp-bbr", ECN, 3)["correct"])

    def test_tables_have_a_column_for_each_number_of_senders(self):
        entries = [ns3.result(name, case, SAID) for case in ns3.make_cases(quick=True)
                   for name in ("gradplane-grants", "tcp-cubic")]  # fmt: skip
        text = ns3.tables(entries)
        self.assertEqual(text.count("| contestant | 8 senders | 32 senders |"), 2)
        self.assertIn("**128 KiB, drop-tail**: median", text)
        self.assertIn("**8 senders, 128 KiB, marks from 30 KB on**", text)
        self.assertIn("| tcp-cubic | 2.00 / 3.00 | 2.00 / 3.00 |", text)

    def test_without_ns3_it_says_what_to_do(self):
        with mock.patch.object(ns3, "PROGRAM", pathlib.Path("/nowhere/ns3_incast")):
            with self.assertRaisesRegex(harness.BenchError, "libns3-dev"):
                ns3.run(None)


if __name__ == "__main__":
    unittest.main()
