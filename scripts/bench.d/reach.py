# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`reach`: one model on four hosts, trained by DDP, with a sharded optimizer, by FSDP and FSDP2
where PyTorch has them for processors (2.6), by DiLoCo, and by a program of mpi4py, over gradplane
and over what the program uses without it: Gloo or Open MPI.

The programs are those of reach_job.py, the same over both; each trains for the same number of
steps, over a network without loss, with 1 % of it, and with a round trip of 40 ms. `s in all` is
the time of a whole training, its evaluation not counted, and `of TCP's` its share of the time that
Gloo or Open MPI takes over the kernel's TCP with CUBIC. `carried` are the collectives that
gradplane carried, of those that it carried, passed through and gave up.
"""

import statistics
from importlib import metadata

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
    "fsdp": "FSDP",
    "fsdp2": "FSDP2",
    "diloco": "DiLoCo, 8 steps",
    "mpi4py": "mpi4py",
}
GRADPLANE = (
    Contestant("gradplane-sharded", plan="sharded"),
    # Ranks and daemons share processors here. The kernel's own network code waits for no program.
    Contestant("gradplane-real-time", plan="sharded", extra="poll: {real_time: true}\n"),
)
NETWORKS = ({}, {"loss": 0.01, "loss_model": "random"}, {"rtt_ms": 40})


def programs():
    """Those that the PyTorch here can run: older ones have no reduce_scatter over Gloo."""
    version = tuple(int(part) for part in metadata.version("torch").split(".")[:2])
    return [name for name in PROGRAMS if not name.startswith("fsdp") or version >= (2, 6)]


def contestants_of(case):
    return (Contestant("openmpi-cubic" if case["mpi"] else "gloo-cubic", cc="cubic"), *GRADPLANE)


def make_cases(quick):
    goal = train.MODELS[MODEL]
    return [
        {**cases.case(train.HOSTS, goal["bytes"], train.RATE_MBIT, **network),
         "model": MODEL, "program": program, "mpi": program == "mpi4py",
         "epochs": QUICK_EPOCHS if quick else EPOCHS, "target": goal["target"]}
        for program in programs()
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


def of_tcp(entry):
    return f"{entry['over_tcp']:.2f}" if "over_tcp" in entry else "-"


COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("seeds", lambda e: str(e["runs"])),
    ("s in all", total),
    ("of TCP's", of_tcp),
    ("in sync", lambda e: f"{e['sync_share'] * 100:.0f} %"),
    ("step p50 ms", lambda e: report.milliseconds(e["median_s"])),
    ("p99 ms", lambda e: report.milliseconds(e["p99_s"])),
    ("MB on wire, a step", lambda e: f"{e['wire_bytes'] / 1e6:.1f}"),
    ("loss at the end", train.final),
    ("carried", carried),
    *report.CPU_COLUMNS,
)


def compare(entries):
    """Adds the share of the time over TCP, where there is one."""
    ours = {contestant.name for contestant in GRADPLANE}
    tcp = [e for e in entries if e["contestant"] not in ours and e["correct"]]
    for entry in entries:
        if tcp and entry["correct"]:
            entry["over_tcp"] = median_total(entry) / median_total(tcp[0])
    return entries


def measure(case, options, machine):
    return compare(train.measure(case, options, machine, contestants_of(case), label))


def run(options):
    """The entries of all cases that are asked for."""
    return train.run_cases("reach", make_cases(options.quick), options, label, measure)
