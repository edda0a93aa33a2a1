# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`reach`: one model on four hosts, trained by DDP, with a sharded optimizer, and by DiLoCo, over
Gloo and gradplane.

The programs are those of reach_job.py, the same over both; each trains for the same number of
steps, over a network without loss, with 1 % of it, and with a round trip of 40 ms. `s in all` is
the time of a whole training, its evaluation not counted, and `of Gloo's` its share of the time that
Gloo takes with CUBIC. `carried` are the collectives that gradplane carried, of those that it
carried, passed through and gave up.
"""

import statistics

import cases
import report
import train
from train_run import Contestant

DESCRIPTION = __doc__
MODEL = "text"
EPOCHS = 12
QUICK_EPOCHS = 6
PROGRAMS = {
    "ddp": "DDP",
    "zero": "DDP and ZeroRedundancyOptimizer",
    "diloco": "DiLoCo, 8 steps",
}
CONTESTANTS = (
    Contestant("gloo-cubic", cc="cubic"),
    Contestant("gradplane-sharded", plan="sharded"),
)
NETWORKS = ({}, {"loss": 0.01, "loss_model": "random"}, {"rtt_ms": 40})


def make_cases(quick):
    goal = train.MODELS[MODEL]
    return [
        {**cases.case(train.HOSTS, goal["bytes"], train.RATE_MBIT, **network),
         "model": MODEL, "program": program, "epochs": QUICK_EPOCHS if quick else EPOCHS,
         "target": goal["target"]}
        for program in PROGRAMS
        for network in NETWORKS[: 2 if quick else None]
    ]  # fmt: skip


def label(case):
    network = cases.label(case, without="bytes")
    return f"{PROGRAMS[case['program']]}, {case['bytes'] / 1e6:.1f} MB of parameters, {network}"


def median_total(entry):
    return statistics.median(entry["total_s"])


def total(entry):
    times = entry["total_s"]
    return train.with_range(median_total(entry), min(times), max(times), "{:.1f}")


def carried(entry):
    if entry["carried_ops"] is None:
        return "-"
    ops = entry["carried_ops"]
    every = ops + entry["passed_through"] + entry["fallen_back"]
    return f"{ops / every:.1%} of {every}" if every else "-"


def of_gloo(entry):
    return f"{entry['over_gloo']:.2f}" if "over_gloo" in entry else "-"


COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("seeds", lambda e: str(e["runs"])),
    ("s in all", total),
    ("of Gloo's", of_gloo),
    ("in sync", lambda e: f"{e['sync_share'] * 100:.0f} %"),
    ("step p50 ms", lambda e: report.milliseconds(e["median_s"])),
    ("p99 ms", lambda e: report.milliseconds(e["p99_s"])),
    ("MB on wire, a step", lambda e: f"{e['wire_bytes'] / 1e6:.1f}"),
    ("loss at the end", train.final),
    ("carried", carried),
    *report.CPU_COLUMNS,
)


def compare(entries):
    """Adds the share of Gloo's time, where there is one."""
    gloo = [e for e in entries if e["contestant"].startswith("gloo") and e["correct"]]
    for entry in entries:
        if gloo and entry["correct"]:
            entry["over_gloo"] = median_total(entry) / median_total(gloo[0])
    return entries


def measure(case, options, machine):
    return compare(train.measure(case, options, machine, CONTESTANTS, label))


def run(options):
    """The entries of all cases that are asked for."""
    return train.run_cases("reach", make_cases(options.quick), options, label, measure)
