# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""scripts/mutate: it puts a mutation where its table says, and tells the outcomes apart. The
programs that it builds and runs are shell commands here."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/lib")]
sys.dont_write_bytecode = True
import mutate_run  # noqa: E402
import mutations  # noqa: E402

SOURCE = """\
int f(int a) {
  if (a > 3) return 1;
  return 0;
}

int g(int a) {
  if (a > 3)
    return 1;
  return 2;
}
"""

ENTRY = '[m]\nbreaks = "It breaks."\nfile = "f"\ntext = "a"\nbecomes = ""\ntests = ["t"]\n'


def mutation(**changed):
    values = {
        "name": "m", "table": "a.toml", "breaks": "It breaks.", "file": "f.cc", "text": "return 0;",
        "becomes": "return 9;", "tests": ("tests/f_test.cc",),
    }  # fmt: skip
    return mutations.Mutation(**{**values, **changed})


class Apply(unittest.TestCase):
    def test_replaces_the_text(self):
        self.assertEqual(mutation().apply(SOURCE), SOURCE.replace("return 0;", "return 9;"))

    def test_finds_the_text_however_it_is_wrapped(self):
        found = mutation(text="if (a > 3) return 1; return 2;", becomes="").apply(SOURCE)
        self.assertEqual(found, SOURCE[: SOURCE.rindex("if")] + "\n}\n")

    def test_refuses_a_text_that_is_there_twice_or_never(self):
        for text in ("if (a > 3) return 1;", "return 3;"):
            with self.assertRaises(mutations.DoesNotApply):
                mutation(text=text).apply(SOURCE)

    def test_looks_only_into_the_function(self):
        found = mutation(inside="int f(", text="a > 3", becomes="true").apply(SOURCE)
        self.assertEqual(found, SOURCE.replace("a > 3", "true", 1))
        with self.assertRaises(mutations.DoesNotApply):
            mutation(inside="int f(", text="return 2;").apply(SOURCE)
        with self.assertRaises(mutations.DoesNotApply):
            mutation(inside="int a)", text="a > 3").apply(SOURCE)


class Tables(unittest.TestCase):
    def findings(self, *tables):
        """Those of reading these tables."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / mutations.FOLDER).mkdir(parents=True)
            for number, table in enumerate(tables):
                (root / mutations.FOLDER / f"{number}.toml").write_text(table)
            return mutations.read_all(root)[1]

    def test_the_tables_of_the_tree_have_no_findings(self):
        known, findings = mutations.read_all()
        self.assertEqual([], [str(finding) for finding in findings])
        self.assertGreater(len(known), 50)

    def test_a_mutation_has_a_sentence_and_a_plain_name(self):
        self.assertEqual([], self.findings(ENTRY))
        for wrong in (
            ENTRY.replace("It breaks.", "it breaks."),
            ENTRY.replace("It breaks.", "It breaks"),
            ENTRY.replace("It breaks.", ""),
            ENTRY.replace("[m]", "[M_1]"),
        ):
            self.assertEqual(1, len(self.findings(wrong)), wrong)

    def test_names_are_unique_over_all_tables(self):
        self.assertEqual(1, len(self.findings(ENTRY, ENTRY)))


class Find(unittest.TestCase):
    """The program of a test is found by its source, whatever its name and its other sources."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        (self.tree / "tests").mkdir()
        (self.tree / "tests/one.cc").write_text("TEST_CASE(\"a\") {}\n")
        (self.tree / "tests/sim.cc").write_text("int main() {}\n")
        build = self.tree / "build"
        targets = [
            self.target("u", "all_unit", ["tests/one.cc", "tests/two.cc"]),
            self.target("s", "sim", ["tests/sim.cc"]),
            {**self.target("l", "lib.so", []), "type": "shared library"},
        ]
        tests = [
            {"cmd": [f"{build}/tests/sim", "--fast"], "env": {}, "workdir": None, "depends": []},
            {"cmd": ["/usr/bin/python3", f"{build}/../tests/t.py"], "env": {"A": "1"},
             "workdir": None, "depends": ["l"]},
        ]  # fmt: skip
        self.tests = mutate_run.Tests(self.tree, targets, tests)

    def target(self, name, file, sources):
        return {
            "id": name, "type": "executable", "filename": [f"{self.tree}/build/tests/{file}"],
            "target_sources": [{"sources": [str(self.tree / source) for source in sources]}],
        }  # fmt: skip

    def test_cases_of_one_file(self):
        found = self.tests.find("tests/one.cc")
        self.assertEqual(("tests/all_unit",), found.targets)
        self.assertEqual(("-#", "[#one]"), found.commands[0].words[1:])

    def test_a_program_with_arguments(self):
        found = self.tests.find("tests/sim.cc --count 3")
        self.assertEqual(("--count", "3"), found.commands[0].words[1:])
        self.assertEqual(("tests/sim",), found.targets)

    def test_a_program_as_meson_runs_it(self):
        self.assertEqual(("--fast",), self.tests.find("tests/sim.cc").commands[0].words[1:])

    def test_a_script_brings_what_it_depends_on(self):
        found = self.tests.find("tests/t.py test_one")
        self.assertEqual((("tests/lib.so",), {"A": "1"}),
                         (found.targets, found.commands[0].environment))  # fmt: skip
        self.assertEqual("test_one", found.commands[0].words[-1])

    def test_a_test_that_this_build_lacks(self):
        self.assertIn("tests/none.cc", self.tests.find("tests/none.cc").missing)


class Outcomes(unittest.TestCase):
    """The outcome of a run. The test is a script that looks at the mutated file."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.tree = mutate_run.Tree(self.root, lambda text: None)
        (self.root / "build").mkdir()
        (self.root / "f.cc").write_text(SOURCE)

    def outcome(self, script, builds=True, **changed):
        command = mutate_run.Command(("/bin/sh", "-c", script))
        self.tree._tests = mock.Mock()
        self.tree._tests.find.return_value = mutate_run.Test(("t",), (command,))
        with mock.patch.object(self.tree, "_build", return_value=True):
            self.tree.prepare([mutation()])
        with mock.patch.object(self.tree, "_build", return_value=builds):
            return self.tree.run(mutation(**changed)).verdict

    def tearDown(self):
        self.assertEqual(SOURCE, (self.root / "f.cc").read_text())

    def test_a_failing_test_kills(self):
        self.assertEqual("killed", self.outcome("grep -q 'return 0' ../f.cc"))

    def test_a_test_without_an_end_kills(self):
        with mock.patch.object(mutate_run, "SHORTEST_SECONDS", 1):
            script = "grep -q 'return 0' ../f.cc || exec tail -f /dev/null"
            self.assertEqual("killed", self.outcome(script))

    def test_what_no_test_sees_survives(self):
        self.assertEqual("survived", self.outcome("true"))

    def test_a_text_that_is_gone_is_stale(self):
        self.assertEqual("stale", self.outcome("true", text="return 7;"))

    def test_what_does_not_build_is_told(self):
        (self.root / "build/mutate.log").write_text("f.cc:1: error: no\n")
        self.assertEqual("does not build", self.outcome("true", builds=False))

    def test_what_is_skipped_shows_nothing(self):
        self.assertEqual("not run", self.outcome(f"exit {mutate_run.SKIP_CODE}"))

    def test_a_test_that_fails_without_a_mutation_ends_the_run(self):
        for script in ("false", "echo No tests ran"):
            with self.assertRaises(mutate_run.CannotBegin):
                self.outcome(script)


class Update(unittest.TestCase):
    def test_the_copy_becomes_the_checkout_and_keeps_what_is_built(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            root, copy = pathlib.Path(one), pathlib.Path(two)
            (root / "same.cc").write_text("a")
            (root / "new.cc").write_text("b")
            (copy / "build").mkdir()
            (copy / "build/object.o").write_text("o")
            (copy / "same.cc").write_text("a")
            (copy / "gone.cc").write_text("c")
            before = (copy / "same.cc").stat().st_mtime_ns
            mutate_run.Tree(copy, lambda text: None, root).update()
            names = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
            self.assertEqual({"same.cc", "new.cc", "build/object.o"}, names)
            self.assertEqual(before, (copy / "same.cc").stat().st_mtime_ns)


if __name__ == "__main__":
    unittest.main()
