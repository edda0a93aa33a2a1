# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Runs the parts of scripts/test and counts. scripts/test starts it; see there."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITES = ("unit", "protocol", "property", "conformance", "sim", "fuzz", "shim", "perf")
QUICK_SUITES = ("unit", "protocol", "property")
# The build without DPDK, torch and ns-3 has the same objects of the pure layers, so the long suites
# need not run there, too.
MINIMAL_SUITES = ("unit", "protocol", "conformance", "shim")
ASAN_SUITES = ("unit", "protocol", "property", "conformance", "sim", "fuzz", "shim")
# The ThreadSanitizer build only runs tests with threads. The meson.build files name these.
TSAN_SUITE = "threads"
# ninja's target for everything that meson's tests need.
TEST_TARGETS = ("meson-test-prereq",)
# The last line of a Catch2 program whose cases all passed.
CATCH_PASSED = re.compile(
    r"^All tests passed \((\d+) assertions? in (\d+) test cases?\)$", re.MULTILINE
)
PARTS = ("normal", "asan", "minimal", "tsan", "smoke", "vm", "lint")
# A machine half as fast needs twice the time, and other work on it half as much again. So each
# limit is at least LIMIT_MARGIN times the time on two cores. Tests nearer to it are named.
LIMIT_MARGIN = 3
BUILD_SECONDS = 1800
TESTS_SECONDS = 2400
SMOKE_SECONDS = 900
VM_SECONDS = 1440
LINT_SECONDS = 300
LEAVE_SECONDS = 2
# Limits in meson's files are for plain code; sanitizers slow it down.
PLAIN_MULTIPLIER = 3
SANITIZER_MULTIPLIER = 6
SKIP_CODE = 77
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=0",
    "LSAN_OPTIONS": f"suppressions={ROOT}/scripts/lib/lsan.supp:print_suppressions=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": f"suppressions={ROOT}/scripts/lib/tsan.supp:print_suppressions=0:"
    "halt_on_error=1:second_deadlock_stack=1",
}
# Simulations run without detect_stack_use_after_return, which doubles their time. The other suites
# run the same code with it.
SIMULATED_SUITES = ("property", "sim")
SIMULATED_ENVIRONMENT = {
    **SANITIZER_ENVIRONMENT,
    "ASAN_OPTIONS": "strict_string_checks=1:abort_on_error=0",
}


@dataclasses.dataclass
class Outcome:
    name: str
    verdict: str  # passed, failed or skipped
    detail: str = ""  # why it was skipped, what failed and the log, or a note of one that passed


class Run:
    """The outcomes of a run so far."""

    def __init__(self):
        self.outcomes = []
        self.cases = 0  # of Catch2 programs that passed
        self.assertions = 0

    def add(self, name, verdict, detail=""):
        self.outcomes.append(Outcome(name, verdict, detail))

    def count(self, verdict, since=0):
        return sum(outcome.verdict == verdict for outcome in self.outcomes[since:])

    def part(self, name, action):
        """Runs one part, and prints its outcome in one line."""
        print(f"== {name}", flush=True)
        before, begun = len(self.outcomes), time.monotonic()
        cases, assertions, used = self.cases, self.assertions, processor_seconds()
        action()
        numbers = ", ".join(f"{self.count(v, before)} {v}" for v in ("passed", "failed", "skipped"))
        if self.cases > cases:
            numbers += f", {self.cases - cases} cases"
            numbers += f" with {self.assertions - assertions} assertions"
        seconds, used = time.monotonic() - begun, processor_seconds() - used
        print(f"== {name}: {numbers}, {seconds:.0f} s, {used:.0f} s of processors", flush=True)

    def add_cases(self, text):
        """Adds the counts that a Catch2 program prints at its end; other programs print none."""
        for assertions, cases in CATCH_PASSED.findall(text or ""):
            self.assertions += int(assertions)
            self.cases += int(cases)

    def report(self):
        for verdict in ("passed", "skipped", "failed"):
            for outcome in self.outcomes:
                if outcome.verdict == verdict and outcome.detail:
                    print(f"{verdict}: {outcome.name}: {outcome.detail}")
        print(f"The programs that passed ran {self.cases} cases with {self.assertions} assertions.")
        print(", ".join(f"{self.count(v)} {v}" for v in ("passed", "failed", "skipped")))
        return 1 if self.count("failed") or not self.count("passed") else 0


def processor_seconds():
    """User and system seconds of the ended children of this process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_bounded(command, log, seconds, environment=None):
    """Runs a command in its own process group with its output in `log`, and ends the group.

    Returns the exit code, or None when the time was over.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_group(process)


def end_group(process):
    """Ends processes that a test has left, first by SIGTERM, so that traps can clean up."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
            process.wait(10)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def why(code, seconds):
    return f"no end within {seconds} s" if code is None else f"exit code {code}"


def near_limit(seconds, limit):
    """A note if something has passed that might not pass on a slower machine; else empty."""
    if seconds * LIMIT_MARGIN <= limit:
        return ""
    return f"took {seconds:.0f} s of {limit:.0f} s, which is more than one in {LIMIT_MARGIN}"


def build(run, label, folder, options, targets=()):
    """Builds all or some targets. A failure counts as one failed test, named after the build."""
    log = f"{folder}/build.log"
    begun = time.monotonic()
    console = ROOT / ".cache" / f"{label}-build.log"
    code = run_bounded(
        ["scripts/build", "--dir", folder, *options, *targets], console, BUILD_SECONDS
    )
    if code != 0:
        print(console.read_text(errors="replace"), end="")
        run.add(f"{label}: build", "failed", f"{why(code, BUILD_SECONDS)}; log: {log}")
    elif note := near_limit(time.monotonic() - begun, BUILD_SECONDS):
        print(f"-- {label}: build: {note}", flush=True)
    return code == 0


def said(word, text):
    """The text of the line `WORD: ...` in a test's output; empty if there is none."""
    match = re.search(rf"^{word}: *(.*)$", text or "", re.MULTILINE)
    return match[1] if match else ""


def skip_reason(text):
    return said("SKIP", text) or "it gives no reason (no line `SKIP: ...` on stdout)"


def meson_tests(run, label, folder, selection, environment=None, log_name=None):
    """Runs meson tests of a build folder, and adds an outcome for each."""
    log_name = log_name or label
    logs = ROOT / folder / "meson-logs"
    report = logs / f"{log_name}.json"
    report.unlink(missing_ok=True)
    multiplier = SANITIZER_MULTIPLIER if environment else PLAIN_MULTIPLIER
    limits = {test["name"]: multiplier * test["timeout"] for test in tests_of(folder)}
    command = ["meson", "test", "-C", folder, "--no-rebuild", "--logbase", log_name, *selection]
    command += ["--timeout-multiplier", multiplier]
    console = logs / f"{log_name}-console.log"
    code = run_bounded(command, console, TESTS_SECONDS, environment)
    log = report.with_suffix(".txt")
    lines = report.read_text(errors="replace").splitlines() if report.exists() else []
    failed = 0
    for line in lines:
        entry = json.loads(line)
        name = f"{label}: {entry['name'].removeprefix('gradplane:')}"
        if entry["result"] in ("OK", "EXPECTEDFAIL"):
            near = near_limit(entry["duration"], limits[entry["name"].split(" / ")[-1]])
            notes = (near, said("NOTE", entry.get("stdout")))
            run.add(name, "passed", "; ".join(note for note in notes if note))
            run.add_cases(entry.get("stdout"))
        elif entry["result"] == "SKIP":
            run.add(name, "skipped", skip_reason(entry.get("stdout")))
        else:
            failed += 1
            note = said("NOTE", entry.get("stdout"))
            detail = f"{entry['result']}, exit code {entry.get('returncode')}"
            detail += f", {note}" if note else ""
            run.add(name, "failed", f"{detail}; log: {log}")
            words = (entry.get("stdout") or "") + (entry.get("stderr") or "")
            print(f"-- {name}: {detail}; its last lines:")
            print("\n".join(words.splitlines()[-30:]), flush=True)
    if code != 0 and not failed:
        run.add(f"{label}: meson test", "failed", f"{why(code, TESTS_SECONDS)}; log: {console}")


def introspect(folder, what):
    """What meson says of a configured build folder: its `--tests` or `--targets`."""
    listed = subprocess.run(
        ["meson", "introspect", folder, what],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return json.loads(listed.stdout)


def tests_of(folder):
    return introspect(folder, "--tests")


def run_build_and_suites(run, label, options, suites, environment=None, targets=()):
    folder = f"build{'' if label == 'normal' else '-' + label}"
    if not build(run, label, folder, options, targets):
        return
    names = (suite for test in tests_of(folder) for suite in test["suite"])
    present = {name.removeprefix("gradplane:") for name in names}
    wanted = [suite for suite in suites if suite in present]
    simulated = [suite for suite in wanted if environment and suite in SIMULATED_SUITES]
    others = [suite for suite in wanted if suite not in simulated]
    for chosen, log_name, own in (
        (simulated, f"{label}-simulated", SIMULATED_ENVIRONMENT),
        (others, label, environment),
    ):
        if chosen:
            selection = [word for suite in chosen for word in ("--suite", suite)]
            meson_tests(run, label, folder, selection, own, log_name)


def run_tsan(run):
    """Builds and runs the tests with threads. The first target only configures the folder."""
    folder, options = "build-tsan", ["--tsan"]
    if not build(run, "tsan", folder, options, ["build.ninja"]):
        return
    suite = f"gradplane:{TSAN_SUITE}"
    needed = {one for test in tests_of(folder) if suite in test["suite"] for one in test["depends"]}
    programs = {t["filename"][0] for t in introspect(folder, "--targets") if t["id"] in needed}
    targets = sorted(program.removeprefix(f"{ROOT / folder}/") for program in programs)
    if build(run, "tsan", folder, options, targets):
        meson_tests(run, "tsan", folder, ["--suite", TSAN_SUITE], SANITIZER_ENVIRONMENT)


def live_things():
    """Our namespaces, and all processes. Only inside the container all of these are ours."""
    if "GP_CONTAINED" not in os.environ:
        return set()
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    found = {line.split()[0] for line in listed.stdout.splitlines() if line.startswith("gp-")}
    ours = {1, os.getpid()}
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if words and int(path.parent.name) not in ours:
            found.add(f"process {path.parent.name} '{words[:60]}'")
    return found


def leftovers(before):
    """What a test has left behind, after a moment for processes that are ending."""
    deadline = time.monotonic() + LEAVE_SECONDS
    while (left := live_things() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    return sorted(left)


def run_scripts(run, part, seconds):
    """Runs tests/PART/*_test.*. Each is a program that uses the normal build."""
    scripts = sorted((ROOT / "tests" / part).glob("*_test.*"))
    for script in scripts:
        name = f"{part}: {script.stem}"
        log = ROOT / f"build/{part}-logs" / f"{script.stem}.log"
        before, begun = live_things(), time.monotonic()
        code = run_bounded([script], log, seconds, {"GRADPLANE_BUILD": str(ROOT / "build")})
        text = log.read_text(errors="replace")
        left = leftovers(before)
        if code in (0, SKIP_CODE) and left:
            run.add(name, "failed", f"it left {', '.join(left)} behind; log: {log}")
        elif code == 0:
            notes = (near_limit(time.monotonic() - begun, seconds), said("NOTE", text))
            run.add(name, "passed", "; ".join(note for note in notes if note))
        elif code == SKIP_CODE:
            run.add(name, "skipped", skip_reason(text))
        else:
            run.add(name, "failed", f"{why(code, seconds)}; log: {log}")
            print(f"-- {name}; its last lines:")
            print("\n".join(text.splitlines()[-30:]), flush=True)


def run_lint(run):
    for name, options in (("lint", []), ("lint --self-test", ["--self-test"])):
        log = ROOT / ".cache" / f"{name.replace(' ', '')}.log"
        begun = time.monotonic()
        code = run_bounded(["scripts/lint", *options], log, LINT_SECONDS)
        text = log.read_text(errors="replace")
        if code == 0:
            notes = (near_limit(time.monotonic() - begun, LINT_SECONDS), said("NOTE", text))
            run.add(name, "passed", "; ".join(note for note in notes if note))
        else:
            print(text, end="", flush=True)
            run.add(name, "failed", f"{why(code, LINT_SECONDS)}; log: {log}")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/test")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("part", nargs="*", metavar="PART")
    arguments = parser.parse_args()
    unknown = set(arguments.part) - set(PARTS) - set(SUITES)
    if unknown:
        known = ", ".join(PARTS + SUITES)
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {known}")
    return arguments


def main():
    arguments = parse_arguments()
    suites = tuple(part for part in arguments.part if part in SUITES)
    parts = {part for part in arguments.part if part in PARTS}
    if arguments.quick and not arguments.part:
        suites, parts = QUICK_SUITES, {"normal", "lint"}
    elif not arguments.part:
        parts = set(PARTS)
    built = {"smoke", "vm"} & parts
    if suites or built:
        parts.add("normal")
    # If only `smoke` and `vm` are asked for, the build is needed, but not its tests.
    only_built = built & set(arguments.part) and "normal" not in arguments.part and not suites
    normal_suites = () if only_built else suites or SUITES
    run = Run()
    actions = {
        "normal": lambda: run_build_and_suites(run, "normal", [], normal_suites),
        "asan": lambda: run_build_and_suites(
            run, "asan", ["--asan"], ASAN_SUITES, SANITIZER_ENVIRONMENT, TEST_TARGETS
        ),
        "minimal": lambda: run_build_and_suites(run, "minimal", ["--minimal"], MINIMAL_SUITES),
        "tsan": lambda: run_tsan(run),
        "smoke": lambda: run_scripts(run, "smoke", SMOKE_SECONDS),
        "vm": lambda: run_scripts(run, "vm", VM_SECONDS),
        "lint": lambda: run_lint(run),
    }
    for name, action in actions.items():
        if name in parts:
            run.part(name, action)
    return run.report()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
