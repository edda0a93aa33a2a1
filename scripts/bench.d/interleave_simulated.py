# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`interleave-simulated`: `interleave` in virtual time (tests/sim/interleave). It gives the same
results each time, and has cases that a testbed cannot have: wrong totals, and jitter of any size.

One kind of case has the production grant scheduler and controllers with a model of senders, switch
and receiver, at 1 Gbit/s. Iterations take 50 ms under grants and 200 ms without, and the switch
marks from 20 KB on. The other kind ("nodes") has whole daemons, two workers and a root, at
100 Mbit/s as in `interleave`.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import harness
import interleave
import report

DESCRIPTION = __doc__
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "tests/sim/interleave"
RUN_SECONDS = 300
CONTROLLERS = ("reno", "cubic", "dctcp", "swift")
MAX_JOBS = 4
# For "nodes": the time of communication as in `interleave`, and the buffer that daemons are told.
NODES_COMMUNICATION_MS = 150
NODES_BUFFER_BYTES = 128 << 10
NODES_MBIT = 100


@dataclasses.dataclass(frozen=True)
class Setup:
    """One run of the program."""

    controllers: tuple
    period_ms: float
    iterations: int
    jobs: int | None = None  # None: all numbers that the program has
    mark_bytes: int = 0
    nodes: bool = False

    def arguments(self):
        words = ["--controller", *self.controllers, "--iterations", self.iterations,
                 "--mark", self.mark_bytes]  # fmt: skip
        if self.jobs:
            words += ["--jobs", self.jobs, "--share", 1 / self.jobs, "--period-ms", self.period_ms]
        if self.nodes:
            words += ["--nodes", "--mbit", NODES_MBIT, "--buffer", NODES_BUFFER_BYTES]
        return list(map(str, words))


def make_setups(quick):
    if quick:
        return [Setup(("grants",), 50, 60, jobs=2)]
    counts = range(2, MAX_JOBS + 1)
    setups = [Setup(("grants",), 50, 60)]
    setups += [Setup(CONTROLLERS, 200, 30, jobs, mark_bytes=20_000) for jobs in counts]
    return setups + [
        Setup(("grants", "shares"), jobs * NODES_COMMUNICATION_MS, 40, jobs, nodes=True)
        for jobs in counts
    ]


def contestant_of(said):
    name = said["controller"]
    return f"{name}-{said['policy']}" if name == "grants" else name


def entry_of(said, setup):
    """One entry of "cases" of the JSON from a line of the program."""
    alike = f"{said['jobs']} jobs"
    return {
        "contestant": contestant_of(said),
        "case": {
            "setting": alike if said["setting"] == "as asked" else said["setting"],
            "jobs": said["jobs"], "share": said["share"], "jitter": said["jitter"],
            "period_ms": setup.period_ms, "mark_bytes": setup.mark_bytes, "nodes": setup.nodes,
            "iterations": said["iterations"], "seed": said["seed"],
        },
        "bound_s": setup.period_ms / 1e3 * said["share"],
        **interleave.summary(said["ratios"]),
        # Stricter than for the testbed: each of ten iterations counts.
        "converged_at": said["converged_at"] if said["converged_at"] >= 0 else None,
        "drops": said["drops"],
        "correct": said["finished"],
        "cpu_bound": False,
        "late_frames_share": 0.0,
    }  # fmt: skip


def label(case):
    jitter = f" {case['jitter'] * 100:g} %" if case["jitter"] else ""
    words = [f"{case['setting']}{jitter}, a = {case['share']:.3g}", f"{case['period_ms']} ms"]
    words += [f"marks from {case['mark_bytes']} B"] if case["mark_bytes"] else []
    return ", ".join(words + (["nodes"] if case["nodes"] else []))


def run_program(arguments):
    """The lines of the program's output. Raises BenchError if it fails."""
    build = pathlib.Path(os.environ.get("GRADPLANE_BUILD", ROOT / "build"))
    command = [str(build / PROGRAM), "--series", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=RUN_SECONDS
    )
    if done.returncode != 0:
        raise harness.BenchError(f"{' '.join(command)}: exit code {done.returncode}: "
                                 f"{done.stderr.strip()[:400]}")  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def run(options):
    """The entries of all chosen settings."""
    entries = []
    for setup in make_setups(options.quick):
        print(f"simulating {' '.join(setup.arguments())}", file=sys.stderr, flush=True)
        found = [entry_of(said, setup) for said in run_program(setup.arguments())]
        entries += [
            entry for entry in found
            if options.case.search(label(entry["case"]))
            and options.contestant.search(entry["contestant"])
        ]  # fmt: skip
    if options.json:
        document = report.document("interleave-simulated", entries, {"quick": options.quick})
        report.write_json(options.json, document)
    return entries


COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("iterations", lambda e: str(e["runs"])),
    ("mean over alone", interleave.over("mean_over")),
    ("p99", interleave.over("p99_over")),
    ("last half", interleave.over("settled_over")),
    ("as alone from", interleave.converged_text),
    ("drops", lambda e: str(e["drops"])),
)


def tables(entries):
    return report.table(entries, COLUMNS, label)


def draw(entries, folder):
    import interleave_plots  # only here, so that tables need no matplotlib

    return interleave_plots.draw_all("interleave-simulated", entries, folder, label)
