# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`scripts/bench report`: files of one benchmark become one set of tables, which say what differs
between their runs. Needs no network and no root."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench.d"), str(ROOT / "scripts/lib")]
sys.dont_write_bytecode = True
import cases  # noqa: E402
import report  # noqa: E402
import saved  # noqa: E402
import shown  # noqa: E402
import train  # noqa: E402

CLEAN = cases.case(4, 1 << 20)
LOSSY = cases.case(4, 1 << 20, loss=0.01, loss_model="random")


def entry(contestant, case, over_bound, **changed):
    """An entry as harness.result() makes it."""
    values = {
        "contestant": contestant, "case": case, "bound_s": 0.1, "runs": 5,
        "median_s": 0.1 * over_bound, "p99_s": 0.2 * over_bound, "ci95_s": None,
        "over_bound": over_bound, "p99_over_bound": 2 * over_bound, "wire_bytes": 10**6,
        "cpu": {"h0": 0.5, "switch": 0.25}, "machine_busy": 0.4, "cpu_bound": False,
        "correct": True, "spread": 1.5, "push_spread": None, "retransmitted_over_needed": 0.01,
        "deepest_queue_bytes": 2048, "late_frames_share": 0.0,
    }  # fmt: skip
    return {**values, **changed}


def training(contestant, seconds):
    """An entry of an older train.result(), which had no intervals and no counts of rounds."""
    case = {**CLEAN, "model": "digits", "target": 0.95}
    curves = [[[s, 0.96], [s + 1, 0.97]] for s in seconds]
    return entry(contestant, case, 1.5, measure="accuracy", to_target_s=seconds, curves=curves,
                 runs=len(seconds), final_mean=0.97, sync_share=0.5, carried=None)  # fmt: skip


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, entries, benchmark="allreduce", **settings):
        path = self.folder / f"{name}.json"
        report.write_json(path, {**report.document(benchmark, entries, settings), "commit": name})
        return str(path)

    def shown(self, *words):
        quiet = contextlib.redirect_stderr(io.StringIO())
        with quiet, contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertEqual(saved.main(list(words)), 0)
        return output.getvalue()

    def refused(self, *words):
        with self.assertRaises(saved.SavedError) as caught:
            saved.main(list(words))
        return str(caught.exception)

    def test_a_file_gives_the_tables_that_its_run_has_printed(self):
        entries = [entry("a", CLEAN, 1.25), entry("b", CLEAN, 3), entry("a", LOSSY, 7)]
        text = self.shown(self.file("one", entries, repeats=7))
        self.assertTrue(text.startswith(report.table(entries)))
        self.assertIn("`scripts/bench allreduce --repeats 7`, commit one", text)
        self.assertNotIn("different runs", text)

    def test_files_are_merged_by_case_and_what_was_not_measured_together_is_said(self):
        one = self.file("one", [entry("a", CLEAN, 1.25), entry("a", LOSSY, 7)])
        two = self.file("two", [entry("b", CLEAN, 3)])
        text = self.shown(one, two)
        self.assertEqual(text.count("**" + cases.label(CLEAN) + "**"), 1)
        first, second = text.split("**" + cases.label(LOSSY) + "**")
        self.assertIn("| b | 5 |", first)
        self.assertNotIn("| b | 5 |", second)
        self.assertIn(f"- rows of different runs, {cases.label(CLEAN)}: `{one}`, `{two}`", text)
        self.assertNotIn(f"different runs, {cases.label(LOSSY)}", text)

    def test_the_later_file_counts(self):
        old = self.file("old", [entry("a", CLEAN, 1.25), entry("b", CLEAN, 3)])
        new = self.file("new", [entry("a", CLEAN, 9.75)])
        text = self.shown("--overview", old, new)
        self.assertIn(f"| {cases.label(CLEAN)} | 100 ms | 9.75 / 19.50 | 3.00 / 6.00 |", text)
        self.assertIn(f"- 1 rows of `{old}` are left out, because `{new}` has them too", text)
        self.assertIn("| 1.25 / 2.50 |", self.shown("--overview", new, old).replace("3.00", ""))

    def test_an_overview_marks_who_was_thrown_out_and_whose_processors_were_the_limit(self):
        thrown_out = {"contestant": "c", "case": CLEAN, "bound_s": 0.1, "runs": 1,
                      "correct": False, "failure": "a sum was wrong"}  # fmt: skip
        entries = [entry("a", CLEAN, 1, cpu_bound=True), thrown_out, entry("b", LOSSY, 2)]
        text = self.shown("--overview", self.file("one", entries))
        self.assertIn("| case | bound | a | c | b |", text)
        self.assertIn("| 1.00 / 2.00* | - | - |", text)
        self.assertIn("| - | - | 2.00 / 4.00 |", text)
        text = self.shown("--overview", self.file("one", [entry("a", CLEAN, 1, bound_s=10.156)]))
        self.assertIn("| 10156 ms |", text)

    def test_trainings_of_older_code_have_todays_statistics(self):
        text = self.shown(self.file("old", [training("a", [4.0, 9.0, 5.0])], benchmark="train"))
        self.assertIn("| a | 3 | 5.0 (4.0-9.0) | 97.0% |", text)
        failed = {**training("b", [1.0]), "failure": "replicas differ"}
        del failed["curves"]
        text = self.shown(self.file("failed", [failed], benchmark="train"))
        self.assertIn("thrown out: replicas differ", text)

    def test_accuracy_has_its_own_tables_and_no_overview(self):
        case = {"model": "digits", "rate": 1.0, "loss_model": "random", "loss": 0.1}
        one = {"contestant": "ltp, zero", "case": case, "measure": "accuracy", "final_mean": 0.9,
               "final_range": [0.8, 0.95], "worse": [0.1, 0.2], "worse_mean": 0.15, "spread": 0.01,
               "epochs_to_target": [4, None], "missing_share": 0.1,
               "gradient_error": 0.2}  # fmt: skip
        path = self.file("one", [one], benchmark="accuracy", seeds=[1, 2, 3])
        text = self.shown(path, "--plots", str(self.folder / "plots"))
        self.assertIn("| ltp, zero | 10.00% | 0.2 | missed in 1 |", text)
        self.assertIn("What to choose", text)
        self.assertIn("`scripts/bench accuracy --repeats 3`", text)
        self.assertIn("no overview", self.refused("--overview", path))

    def test_a_summary_has_the_numbers_of_each_row_and_no_samples(self):
        thrown_out = {"contestant": "c", "case": CLEAN, "bound_s": 0.1, "runs": 1,
                      "correct": False, "failure": "a sum was wrong\nat 7"}  # fmt: skip
        long = entry("a", CLEAN, 1.23456, samples_s=[0.1] * 5, cpu_bound=True,
                     copies_by_link={"l1-2": [0.56789, 1.0]})  # fmt: skip
        path = self.file("one", [long, entry("b", LOSSY, 3), thrown_out], repeats=7)
        self.shown(path, "--summary", str(self.folder / "kept"), "--samples", "the shelf")
        kept = (self.folder / "kept/one.json").read_text()
        self.assertNotIn("samples_s", kept)
        found = json.loads(kept)
        self.assertEqual((found["benchmark"], found["commit"], found["settings"]["repeats"]),
                         ("allreduce", "one", 7))  # fmt: skip
        self.assertEqual([case["case"] for case in found["summary"]],
                         [cases.label(CLEAN), cases.label(LOSSY)])  # fmt: skip
        first, second = found["summary"][0]["rows"]
        self.assertEqual((first["runs"], first["median_s"], first["p99_s"], first["over_bound"]),
                         (5, 0.1235, 0.2469, 1.235))  # fmt: skip
        self.assertTrue(first["cpu_bound"])
        self.assertEqual(first["copies_by_link"], {"l1-2": [0.5679, 1.0]})
        self.assertEqual(second, {"contestant": "c", "failure": "a sum was wrong"})
        self.assertNotIn("cpu_bound", found["summary"][1]["rows"][0])
        self.assertEqual(found["summary"][0]["bound_s"], 0.1)

    def test_a_summary_neither_replaces_its_samples_nor_passes_for_them(self):
        path = self.file("one", [entry("a", CLEAN, 1)])
        refused = self.refused(path, "--summary", str(self.folder), "--samples", "the shelf")
        self.assertIn("overwritten by its own summary", refused)
        self.shown(path, "--summary", str(self.folder / "kept"), "--samples", "the shelf")
        self.assertIn("those are in: the shelf", self.refused(str(self.folder / "kept/one.json")))

    def test_every_measurement_in_the_repository_is_a_summary(self):
        paths = sorted((ROOT / "docs/performance").glob("*.json"))
        self.assertTrue(paths)
        for path in paths:
            self.assertIn("without samples", self.refused(str(path)), path)

    def test_what_is_no_result_is_refused_by_name(self):
        good = self.file("good", [entry("a", CLEAN, 1)])
        other = self.file("other", [training("a", [4.0])], benchmark="train")
        self.assertIn("different benchmarks: allreduce, train", self.refused(good, other))
        self.assertIn("nowhere.json", self.refused(good, str(self.folder / "nowhere.json")))
        path = self.folder / "bad.json"
        for text, why in (
            ("nonsense", "Expecting value"),
            ("[]", "`benchmark` is none of"),
            (json.dumps({"benchmark": "os", "cases": [1]}), "`benchmark` is none of"),
            (json.dumps({"benchmark": ["ltp"], "cases": [1]}), "`benchmark` is none of"),
            (json.dumps({"benchmark": "ltp", "cases": []}), "no `cases`"),
            (json.dumps({"benchmark": "ltp", "cases": [{"case": 1}]}), "lacks `contestant`"),
            (json.dumps({"benchmark": "ltp", "cases": [{"case": {}, "contestant": "a"}]}),
             "lacks a field"),
            (json.dumps({"benchmark": "train", "cases": [{**training("a", [1.0]), "curves": []}]}),
             "lacks a field"),
            (json.dumps({"benchmark": "ltp", "machine": 1, "cases": [
                {"case": CLEAN, "contestant": "a", "bound_s": 1, "runs": 1, "failure": "x"}]}),
             "lacks a field"),
        ):  # fmt: skip
            path.write_text(text)
            self.assertIn(why, self.refused(str(path)))

    def test_plots_are_drawn_again(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("matplotlib is not installed")
        entries = [entry("a", cases.case(4, 1 << 20, rtt_ms=ms), ms) for ms in (1, 10, 40)]
        plots = self.folder / "plots"
        self.shown("--plots", str(plots), self.file("one", entries[:2]),
                   self.file("two", entries[2:]))  # fmt: skip
        self.assertEqual([path.name for path in plots.iterdir()], ["allreduce-rtt_ms.svg"])

    def test_a_plot_of_trainings_has_every_contestant_in_a_colour_of_its_own(self):
        try:
            import train_plots
        except ImportError:
            self.skipTest("matplotlib is not installed")
        names = [contestant.name for contestant in train.make_contestants(quick=False)]
        figure, axes = mock.MagicMock(), mock.MagicMock()
        with mock.patch.object(train_plots.plt, "subplots", return_value=(figure, axes)):
            train_plots.draw([training(name, [4.0]) for name in names], "title", "path")
        drawn = {call.kwargs["label"]: call.kwargs["color"] for call in axes.plot.mock_calls}
        self.assertEqual(list(drawn), names)
        self.assertEqual(len(set(drawn.values())), len(names))

    def test_every_benchmark_can_be_shown(self):
        for name in shown.NAMES:
            self.assertTrue(shown.Shown(name).module.DESCRIPTION)


if __name__ == "__main__":
    unittest.main()
