# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`selective`: DDP training on eight hosts until it reaches a target. The ranks exchange their
updates with some of the others (docs/selective.md), compared with exact sums, the preset `ltp`, and
local SGD. In one case a rank computes slower, in the other one links are unequal. The network is
that of `multicast`, with a switch that snoops. Measurements are as in `train`.

Replicas differ between averages. So parameters are evaluated after an exact mean, which all
contestants but the exact ones take at the latest at the end of each epoch. Its time counts, and all
replicas must have the same bits then. Local SGD has no gradients on the network, but a mean of the
parameters every few steps. It goes over gradplane, too.

`bound_s` is the least time of an all-reduce of the gradients, without computation.
"""

import dataclasses
import os
import re
import statistics
import subprocess
import tempfile
import time

import contestants as peers
import meters
import multicast
import multicast_bounds as bounds
import multicast_contestants as taking_part
import report
import train
from multicast_lab import MulticastLab
from train_run import FAILURES
from train_run import Contestant
from train_run import train as train_once

DESCRIPTION = __doc__
MODEL = "digits-small"
STEPS = 12  # of an epoch
COMPUTE_MS = 60  # in each step, as a pause that leaves the CPUs to the network
SLOW_RANK, SLOW_FACTOR = 1, 3
EQUAL_MBIT = 50
# They must divide the steps of an epoch.
LOCAL_STEPS = (4, 12)
MODES = {"selective-bsp": "", "selective-ssp": "ssp-"}
RUN_SECONDS = 240
SEEDS = 1
EXACT = "gradplane-exact"
QUICK = r"gradplane-(exact|local-4|p30)"
QUICK_EPOCHS = 7  # as many as exact sums need to the target
AVERAGED = ("--averaged",)
ACCEPTED = """\
control: {{socket: /run/gradplane/none.sock}}
port: {{kind: af_packet, interface: dp0}}
cluster:
  key: 00112233445566778899aabbccddeeff
  nodes:
    - {{name: a, address: 10.0.0.1/24, aggregate: true}}
    - {{name: b, address: 10.0.0.2/24}}
plan: {{kind: sharded, roots: training}}
training: {{mode: {mode}}}
"""


def case(name, rates, slow_rank=None):
    model = train.MODELS[MODEL]
    by_host = {multicast.COORDINATOR: multicast.COORDINATOR_RATE_BITS}
    by_host |= {f"h{number}": rate for number, rate in enumerate(rates)}
    return {
        "name": name, "model": MODEL, "epochs": model["epochs"], "target": model["target"],
        "bytes": model["bytes"], "hosts": len(rates), "rate_bits_per_second": by_host,
        "coordinator": multicast.COORDINATOR, "compute_ms": COMPUTE_MS, "slow_rank": slow_rank,
        "slow_factor": SLOW_FACTOR,
    }  # fmt: skip


def rates_of(of_case):
    """Of the ranks."""
    return [rate for host, rate in of_case["rate_bits_per_second"].items()
            if host != of_case["coordinator"]]  # fmt: skip


def make_cases(quick):
    unequal = bounds.draw_rates(multicast.HOSTS, multicast.LOW_MBIT, multicast.HIGH_MBIT,
                                multicast.RATE_SEED)  # fmt: skip
    if quick:
        return [{**case("unequal links", unequal), "epochs": QUICK_EPOCHS}]
    equal = [EQUAL_MBIT * 10**6] * multicast.HOSTS
    return [case("unequal links", unequal), case("a slow rank", equal, SLOW_RANK)]


def label(of_case):
    rates = [rate // 10**6 for rate in rates_of(of_case)]
    links = f"{min(rates)}-{max(rates)}" if min(rates) < max(rates) else f"{rates[0]}"
    return (f"{of_case['name']}: {of_case['model']} to {of_case['target']:.0%} accuracy, "
            f"{of_case['hosts']} hosts, {links} Mbit/s")  # fmt: skip


def slug(of_case):
    return "selective-" + re.sub(r"[^a-z]+", "-", of_case["name"])


def is_accepted(mode, cli):
    """Whether this build has a mode of training."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(ACCEPTED.format(mode=mode))
        file.flush()
        command = [cli, "check-config", "--node", "a", file.name]
        done = subprocess.run(command, capture_output=True, check=False, timeout=20)
    return done.returncode == 0


def selective(mode, share, tells_links=True, groups=False, freshness=taking_part.FRESHNESS):
    name = "all" if freshness == 0 else f"p{share:.0%}".rstrip("%")
    name = f"gradplane-{MODES[mode]}{name}" + ("" if tells_links else taking_part.MEASURED)
    section = taking_part.training_section(share, freshness=freshness, average_every=STEPS,
                                           mode=mode)  # fmt: skip
    return Contestant(
        name + (taking_part.SUFFIX if groups else ""), plan="sharded",
        extra=section + (taking_part.MULTICAST if groups else ""),
        tells_links=tells_links, job_options=AVERAGED,
    )  # fmt: skip


def local_sgd(steps):
    return Contestant(f"gradplane-local-{steps}", plan="sharded",
                      job_options=("--local-steps", str(steps)))  # fmt: skip


def make_contestants(modes):
    tolerant = "gather: {preset: ltp, compensation: rescale}\n"
    found = [
        Contestant(EXACT, plan="sharded"),
        Contestant(EXACT + taking_part.SUFFIX, plan="sharded", extra=taking_part.MULTICAST),
        Contestant("gradplane-ltp", plan="sharded", gather=tolerant),
        *map(local_sgd, LOCAL_STEPS),
    ]
    for mode in modes:
        found += [selective(mode, share, groups=groups)
                  for share in (0.3, 0.5) for groups in (False, True)]  # fmt: skip
        found.append(selective(mode, 0.3, tells_links=False))
        found.append(selective(mode, 1.0, freshness=0))
    return found


def is_asked(name, options):
    return bool(options.contestant.search(name)) and (
        not options.quick or bool(re.fullmatch(QUICK, name))
    )


def with_case(contestant, of_case):
    """The contestant with the computing times of the case."""
    options = ["--compute-ms", str(of_case["compute_ms"])]
    if of_case["slow_rank"] is not None:
        options += ["--slow", str(of_case["slow_rank"])]
        options += ["--slow-factor", str(of_case["slow_factor"])]
    return dataclasses.replace(contestant, job_options=(*contestant.job_options, *options))


def is_selective(contestant):
    return "training:" in contestant.extra


def failure_of(contestant, runs):
    """Why runs do not count that should have exchanged updates; else empty."""
    exchanged = all(run.exchanged for run in runs)
    if is_selective(contestant) and not exchanged:
        return "no update was exchanged"
    return ""


def bound_s(of_case):
    return bounds.allreduce_s(rates_of(of_case), of_case["bytes"])


def result(contestant, of_case, runs, failure, cores):
    failure = failure or failure_of(contestant, runs)
    entry = train.result(contestant, of_case, runs, failure, cores, bound_s(of_case))
    if "failure" not in entry:
        entry["cpu_seconds_of_step"] = statistics.mean(
            sum(run.cpu_seconds.values()) / run.iterations for run in runs
        )
        entry["mean_step_s"] = statistics.mean(s for run in runs for s in run.steps)
    return entry


def with_ratios(entries):
    """Adds how many times as fast each entry is as exact sums, to the target and in a step."""
    exact = next((e for e in entries if e["contestant"] == EXACT and "failure" not in e), None)
    for entry in (e for e in entries if exact and "failure" not in e):
        entry["step_over_exact"] = exact["mean_step_s"] / entry["mean_step_s"]
        if exact["median_to_target_s"] and entry["median_to_target_s"]:
            entry["over_exact"] = exact["median_to_target_s"] / entry["median_to_target_s"]
    return entries


def measure(of_case, chosen, options, machine):
    """The entries of one case. Runs all seeds of all contestants in turn."""
    runs, failures = {c.name: [] for c in chosen}, {}
    name = f"se{os.getpid() % 100000}"
    with MulticastLab(name, of_case["rate_bits_per_second"], "snoop") as lab:
        for seed in range(1, (options.repeats or SEEDS) + 1):
            for contestant in (c for c in chosen if c.name not in failures):
                where = f"{label(of_case)}: {contestant.name}, seed {seed}"
                logs = options.logs / "selective" / slug(of_case) / contestant.name
                begun = time.monotonic()
                try:
                    run = train_once(lab, with_case(contestant, of_case), of_case, seed, logs,
                                     machine, RUN_SECONDS)  # fmt: skip
                    runs[contestant.name].append(run)
                    train.say(f"{where}: {run.seconds:.1f} s, {run.curve[-1][1]:.3f}, "
                              f"{time.monotonic() - begun:.0f} s in all")  # fmt: skip
                except FAILURES as problem:
                    failures[contestant.name] = str(problem)
                    train.say(f"{where}: {problem}")
    return with_ratios([
        result(c, of_case, runs[c.name], failures.get(c.name, ""), machine.cores) for c in chosen
    ])  # fmt: skip


def run(options):
    """The entries of all chosen cases."""
    cli = peers.Contestant("none").build / "control/cli/gradplane"
    modes = [mode for mode in MODES if is_accepted(mode, cli)]
    chosen = [c for c in make_contestants(modes) if is_asked(c.name, options)]
    entries = []
    settings = {"quick": options.quick, "repeats": options.repeats, "modes": modes}
    with meters.Machine() as machine:
        for of_case in make_cases(options.quick):
            if chosen and options.case.search(label(of_case)):
                entries += measure(of_case, chosen, options, machine)
            if options.json:  # results are kept even if a later case fails
                document = report.document("selective", entries, settings)
                report.write_json(options.json, document)
    return entries


def restate(entry):
    return train.restate(entry)


def ratio(key):
    return lambda entry: f"{entry[key]:.2f}" if entry.get(key) else "-"


COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("seeds", lambda e: str(e["runs"])),
    ("s to target (95 %)", train.to_target),
    ("x exact", ratio("over_exact")),
    ("final (95 %)", train.final),
    ("step p50 ms", lambda e: report.milliseconds(e["median_s"])),
    ("mean ms", lambda e: report.milliseconds(e["mean_step_s"])),
    ("x exact in a step", ratio("step_over_exact")),
    ("MB on wire", lambda e: f"{e['wire_bytes'] / 1e6:.1f}"),
    ("sent again", lambda e: f"{e['retransmitted_over_needed'] * 100:.1f} %"),
    ("carried", lambda e: str(e["carried"])),
    ("exchanged", lambda e: str(e["exchanged"])),
    ("partial", train.partial),
    ("CPU s of a step", ratio("cpu_seconds_of_step")),
    ("CPU", report.machine_text),
)


def draw(entries, folder):
    import train_plots  # only here, so that tables need no matplotlib

    return train_plots.draw_all(entries, folder, label, slug)
