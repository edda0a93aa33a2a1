# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Runs mutations in copies of the tree, one at a time in each. scripts/mutate starts it; see there.

A copy and its build folder stay in .cache/mutate, so that a later run builds only what has changed
since. Nothing in the checkout itself is changed.
"""

import dataclasses
import json
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import time

from mutations import DoesNotApply
from sources import ROOT, project_files

KEPT = ROOT / ".cache" / "mutate"
# Less optimised code builds faster. A mutation may leave a parameter or a function unused.
OPTIONS = ("-Doptimization=1", "-Dwerror=false")
BUILD_SECONDS = 1800
# A test may take so many times as long as without a mutation, and at least SHORTEST_SECONDS. If it
# takes longer, it hangs, which counts as a failure.
SLOWER = 10
SHORTEST_SECONDS = 20
BASELINE_SECONDS = 300
# Limits the memory of a test, because broken code may ask for any amount.
MEMORY_BYTES = 8 << 30
SKIP_CODE = 77
VERDICTS = ("killed", "survived", "stale", "does not build", "not run")
BAD_VERDICTS = ("survived", "stale", "does not build")


@dataclasses.dataclass(frozen=True)
class Outcome:
    verdict: str  # one of VERDICTS
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    folder: str = "."


@dataclasses.dataclass(frozen=True)
class Test:
    """How one entry of a mutation's `tests` is built and run."""

    targets: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    missing: str = ""  # why it cannot run here


class CannotBegin(Exception):
    """Tests or the build fail without any mutation."""


def plain_path(word):
    return os.path.normpath(word) if os.path.isabs(word) else word


def run_bounded(words, folder, seconds, environment=None, output=subprocess.DEVNULL):
    """Runs a command, and ends its whole process group afterwards. Returns (exit code, or None when
    the time was over; seconds)."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    begun = time.monotonic()
    process = subprocess.Popen(
        words, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        env={**os.environ, **(environment or {})}, start_new_session=True, preexec_fn=limit,
    )  # fmt: skip
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    return code, time.monotonic() - begun


class Tests:
    """Finds the program that meson builds from a test's source file."""

    def __init__(self, tree, targets, tests):
        self._tree = tree
        # Meson has scripts as BUILD/../tests/x.py.
        self._tests = [{**t, "cmd": [plain_path(word) for word in t["cmd"]]} for t in tests]
        self._files = {target["id"]: target["filename"] for target in targets}
        self._program_of = {}
        for target in targets:
            if target["type"] != "executable":
                continue
            for part in target["target_sources"]:
                for source in part.get("sources", ()):
                    self._program_of.setdefault(source, target["filename"][0])

    def find(self, test):
        source, *arguments = shlex.split(test)
        path = str(self._tree / source)
        program = self._program_of.get(path)
        if program and arguments:
            return Test((self._target(program),), (Command((program, *arguments)),))
        if program and "TEST_CASE" in pathlib.Path(path).read_text():
            # Catch2's tag selects the cases of one file; the program may have cases of others, too.
            only = ("-#", f"[#{pathlib.Path(source).stem}]")
            return Test((self._target(program),), (Command((program, *only)),))
        runs = [test for test in self._tests if path in test["cmd"] or program == test["cmd"][0]]
        if not runs:
            return Test(missing=f"this build has no program or test of {source}")
        needs = [self._files[name][0] for run in runs for name in run["depends"]]
        targets = sorted({self._target(name) for name in [*needs, *([program] if program else [])]})
        commands = (
            Command((*run["cmd"], *arguments), run["env"], run["workdir"] or ".") for run in runs
        )
        return Test(tuple(targets), tuple(commands))

    def _target(self, path):
        return str(pathlib.Path(path).relative_to(self._tree / "build"))


class Tree:
    """A copy of the checkout with a build folder."""

    def __init__(self, folder, say, root=ROOT):
        self.folder = folder
        self._root = root
        self._say = say
        self._log = folder / "build" / "mutate.log"
        self._tests = None
        self._seconds = {}  # by command: its time without a mutation

    def update(self):
        """Updates the copy from the checkout. Files that are the same are not written."""
        names = set(project_files(self._root))
        for name in names:
            content = (self._root / name).read_bytes()
            copy = self.folder / name
            if not copy.is_file() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
            copy.chmod((self._root / name).stat().st_mode)
        build = self.folder / "build"
        for path in self.folder.rglob("*"):
            inside = build in path.parents or path == build
            if not inside and path.is_file() and str(path.relative_to(self.folder)) not in names:
                path.unlink()

    def configure(self):
        build = self.folder / "build"
        if not (build / "build.ninja").exists():
            build.mkdir(exist_ok=True)
            words = ["meson", "setup", "--wipe", "build", *OPTIONS]
            if self._logged(words) != 0 and self._logged(["meson", "setup", "build", *OPTIONS]):
                raise CannotBegin(f"meson cannot set up {build}:\n{self._log_end()}")
        elif self._logged(["ninja", "-C", "build", "build.ninja"]) != 0:
            raise CannotBegin(f"meson cannot set up {build}:\n{self._log_end()}")
        self._tests = Tests(self.folder, self._introspect("targets"), self._introspect("tests"))

    def prepare(self, mutations):
        """Builds all tests of these mutations, and checks that they pass without mutations."""
        names = sorted({test for mutation in mutations for test in mutation.tests})
        tests = {name: self._tests.find(name) for name in names}
        targets = sorted({target for test in tests.values() for target in test.targets})
        self._say(f"building {len(targets)} programs in {self.folder}")
        if targets and not self._build(targets):
            raise CannotBegin(f"the tree does not build:\n{self._log_end()}")
        failures = [self._why_fails(name, test) for name, test in tests.items()]
        if any(failures):
            raise CannotBegin("\n".join(filter(None, failures)))

    def run(self, mutation):
        """The Outcome of one mutation. It restores the copy."""
        file = self.folder / mutation.file
        before = file.read_bytes()
        try:
            broken = mutation.apply(before.decode())
        except DoesNotApply as error:
            return Outcome("stale", str(error))
        tests = [self._tests.find(name) for name in mutation.tests]
        able = [test for test in tests if not test.missing]
        if not able:
            return Outcome("not run", tests[0].missing)
        file.write_text(broken)
        try:
            targets = sorted({target for test in able for target in test.targets})
            if not self._build(targets, "-j", "1"):
                return Outcome("does not build", self._log_end())
            return self._run_tests(mutation, able)
        finally:
            file.write_bytes(before)

    def _run_tests(self, mutation, tests):
        skipped = 0
        for test in tests:
            for command in test.commands:
                usual = self._seconds[command.words]
                if usual is None:
                    skipped += 1
                    continue
                limit = max(SHORTEST_SECONDS, SLOWER * usual)
                code, seconds = self._run(command, limit)
                name = pathlib.Path(command.words[0]).name
                if code is None:
                    return Outcome("killed", f"{name} has no end within {limit:.0f} s")
                if code != 0:
                    return Outcome("killed", f"{name}, {seconds:.1f} s")
        if skipped == sum(len(test.commands) for test in tests):
            return Outcome("not run", "every test of it is skipped here")
        return Outcome("survived", f"all pass: {', '.join(mutation.tests)}")

    def _why_fails(self, name, test):
        """Why a test fails without a mutation; empty when it passes or is skipped."""
        for command in test.commands:
            if command.words in self._seconds:
                continue
            why, seconds = self._why_not_passed(command)
            if why:  # tried once more, so that a rare failure does not end a long run
                why, seconds = self._why_not_passed(command)
            if why:
                return f"{name} fails without a mutation: {why}"
            self._seconds[command.words] = seconds
        return ""

    def _why_not_passed(self, command):
        """(why a test does not pass, empty if it does; its seconds, None if it is skipped)."""
        output = self.folder / "build" / "mutate-test.log"
        with open(output, "wb") as file:
            code, seconds = self._run(command, BASELINE_SECONDS, file)
        text = output.read_text(errors="replace")
        if code == SKIP_CODE:
            return "", None
        if code == 0 and "No tests ran" not in text and "No test cases matched" not in text:
            return "", seconds
        why = f"exit code {code}" if code is not None else f"no end within {BASELINE_SECONDS} s"
        return f"{why}\n{text[-2000:]}", None

    def _run(self, command, seconds, output=subprocess.DEVNULL):
        folder = self.folder / "build" / command.folder
        return run_bounded(command.words, folder, seconds, command.environment, output)

    def _build(self, targets, *options):
        return self._logged(["ninja", "-C", "build", *options, *targets]) == 0

    def _logged(self, words):
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with open(self._log, "wb") as log:
            done = subprocess.run(
                words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, timeout=BUILD_SECONDS, check=False,
            )  # fmt: skip
        return done.returncode

    def _log_end(self):
        lines = self._log.read_text(errors="replace").splitlines()
        errors = [number for number, line in enumerate(lines) if "error:" in line]
        return "\n".join(lines[errors[0] : errors[0] + 6] if errors else lines[-20:])

    def _introspect(self, what):
        done = subprocess.run(["meson", "introspect", "build", f"--{what}"], cwd=self.folder,
                              capture_output=True, check=True, timeout=120)  # fmt: skip
        return json.loads(done.stdout)
