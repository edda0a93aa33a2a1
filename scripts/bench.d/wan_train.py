# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`wan-train`: DDP training on nine distant sites until it reaches a target, over the network of
`wan`. Measurements and the model, digits, are as in `train`.
`server` is a parameter server over TCP at one site (train_job.py).

`bound_s` is the packing bound of the gradients of an iteration under the first draw.
"""

import os
import time

import emulated_lab
import meters
import report
import train
import wan_network as network
from train_run import FAILURES
from train_run import Contestant
from train_run import train as train_once
from wan import Redraws, set_rates

DESCRIPTION = __doc__
COLUMNS = train.COLUMNS
MODEL = "digits"
EPOCHS = 16  # with nine ranks an epoch has fewer steps, because a step has more images
REDRAW_SECONDS = 18
ROUNDS = "rounds: {bytes: 64 KiB}\n"  # small, so that another plan comes into force soon
RUN_SECONDS = 420
SEEDS = 2


def case(redraw_s):
    model = train.MODELS[MODEL]
    return {
        "model": MODEL, "epochs": EPOCHS, "target": model["target"], "bytes": model["bytes"],
        "hosts": network.SITES, "rate_bits_per_second": network.ACCESS_RATE_BITS,
        "redraw_s": redraw_s, "network_seed": network.SEED,
    }  # fmt: skip


def make_cases(quick):
    return [case(None)] if quick else [case(None), case(REDRAW_SECONDS)]


def label(of_case):
    network_text = "static"
    if of_case["redraw_s"]:
        network_text = f"redrawn every {of_case['redraw_s']} s"
    return f"{of_case['model']} to {of_case['target']:.0%} accuracy, nine sites, {network_text}"


def slug(of_case):
    return "wan-redrawn" if of_case["redraw_s"] else "wan-static"


def make_contestants(quick):
    rates = network.draw(0)
    best = network.roots_by_time(rates)[0]
    section = network.yaml_section(rates, None, train.MODELS[MODEL]["bytes"]) + ROUNDS
    server = ("--server", str(best - 1))
    found = [Contestant("gradplane-packed", plan="packed", extra=section, tells_links=False)]
    for cc in ("cubic",) if quick else ("cubic", "bbr"):
        found.append(Contestant(f"gloo-{cc}", cc=cc))
        found.append(Contestant(f"tcp-server-{cc}", cc=cc, job_options=server))
    return found


def bound_s(of_case):
    return network.packing_bound_s(network.draw(0), of_case["bytes"])


def train_on_network(lab, contestant, of_case, seed, logs, machine):
    """Makes one run. From its first step on, the network goes through its draws."""
    set_rates(lab, network.draw(0))
    if not of_case["redraw_s"]:
        return train_once(lab, contestant, of_case, seed, logs, machine, RUN_SECONDS)
    redraws = Redraws(lab, of_case["redraw_s"], of_case["bytes"])
    try:
        return train_once(lab, contestant, of_case, seed, logs, machine, RUN_SECONDS,
                          on_begin=lambda at_ns: redraws.begin(1, at_ns))  # fmt: skip
    finally:
        redraws.stop()


def measure(of_case, options, machine):
    """The entries of one case. Runs all seeds of all contestants in turn."""
    chosen = [c for c in make_contestants(options.quick) if options.contestant.search(c.name)]
    runs, failures = {c.name: [] for c in chosen}, {}
    seeds = options.repeats or (1 if options.quick else SEEDS)
    described = network.description(network.draw(0), None)
    with emulated_lab.EmulatedLab(f"wt{os.getpid() % 100000}", described) as lab:
        for seed in range(1, seeds + 1):
            for contestant in (c for c in chosen if c.name not in failures):
                where = f"{label(of_case)}: {contestant.name}, seed {seed}"
                logs = options.logs / "wan-train" / slug(of_case) / contestant.name
                begun = time.monotonic()
                try:
                    run = train_on_network(lab, contestant, of_case, seed, logs, machine)
                    runs[contestant.name].append(run)
                    train.say(f"{where}: {run.seconds:.1f} s, {run.curve[-1][1]:.3f}, "
                              f"{time.monotonic() - begun:.0f} s in all")  # fmt: skip
                except FAILURES as problem:
                    failures[contestant.name] = str(problem)
                    train.say(f"{where}: {problem}")
    return [
        train.result(c, of_case, runs[c.name], failures.get(c.name, ""), machine.cores,
                     bound_s(of_case))
        for c in chosen
    ]  # fmt: skip


def run(options):
    """The entries of all chosen cases."""
    entries = []
    settings = {"quick": options.quick, "repeats": options.repeats}
    with meters.Machine() as machine:
        for of_case in make_cases(options.quick):
            if options.case.search(label(of_case)):
                entries += measure(of_case, options, machine)
            if options.json:  # results are kept even if a later case fails
                document = report.document("wan-train", entries, settings)
                report.write_json(options.json, document)
    return entries


def restate(entry):
    return train.restate(entry)


def draw(entries, folder):
    import train_plots  # only here, so that tables need no matplotlib

    return train_plots.draw_all(entries, folder, label, slug)
