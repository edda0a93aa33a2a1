# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`accuracy`: how much accuracy a training loses by loss bounds. It trains the models of `train`
with four ranks in one process, and a model of the gather (gather_model.py) instead of a network:
bounds x compensation x loss, and wire types x compensation without loss.

As there is no network and no time, it only shows how missing blocks affect what is learned, when
every round lacks as much as its bounds allow. `train` has gradplane's real rounds.

A final value is the mean of the last three epochs. Every run has the same start, data and order as
the lossless run with the same seed. A difference is called visible when every seed is worse than
its lossless run, and the mean difference is more than the standard deviation of the lossless runs
over the seeds.
"""

import concurrent.futures
import dataclasses
import multiprocessing
import os
import statistics
import sys
import time

import report
import train

DESCRIPTION = __doc__
RANKS = train.HOSTS
SEEDS = 5
QUICK_SEEDS = 2
EXACT = "exact"
# The end of a curve goes up and down from epoch to epoch.
FINAL_EPOCHS = 3
# A share of the optimiser's own rate at which a network is still learning when it ends.
SLOW = 0.2


@dataclasses.dataclass(frozen=True)
class Setting:
    """The settings of a training, without its seed."""

    model: str
    bounds: str  # a name of BOUNDS, or EXACT
    compensation: str = "zero"
    loss_model: str = "none"
    loss: float = 0.0
    rate: float = 1.0  # learning rate, as a share of the optimiser's own
    wire: str | None = None  # the wire type of blocks; None: none

    @property
    def lossless(self):
        return Setting(self.model, EXACT, rate=self.rate)

    @property
    def name(self):
        if self.wire is not None:
            return self.wire + (", carry" if self.compensation == "carry" else "")
        return EXACT if self.bounds == EXACT else f"{self.bounds}, {self.compensation}"

    @property
    def case(self):
        return {"model": self.model, "rate": self.rate, "loss_model": self.loss_model,
                "loss": self.loss}  # fmt: skip


# Settings of the section `gather`, each with the function of the model and its argument.
BOUNDS = {
    "5 %": ("uniform_bounds", 0.05),
    "ltp (20 %)": ("uniform_bounds", 0.20),
    "plot (20 % in all)": ("plot_bounds", 0.20),
    "50 %": ("uniform_bounds", 0.50),
}


def make_settings(quick):
    """All settings to run. 50 % with 30 % of loss is no advice: it shows what `zero` does when much
    is missing, above all to a network that learns slowly."""
    if quick:
        models, bounds, losses = ("digits",), ("ltp (20 %)",), (0.1,)
        processes = ("one-sided",)
    else:
        models, bounds, losses = tuple(train.MODELS), tuple(BOUNDS)[:3], (0.01, 0.05, 0.1)
        processes = ("random", "bursty", "one-sided")
    conditions = [(b, p, loss, 1.0) for p in processes for loss in losses for b in bounds]
    conditions += [("50 %", "random", 0.3, rate) for rate in (1.0, SLOW)]
    lossy = [
        Setting(model, bound, compensation, process, loss, rate)
        for model in models
        for bound, process, loss, rate in conditions
        for compensation in ("zero", "rescale", "carry")
    ]
    return lossy + [
        Setting(model, EXACT, compensation, wire=wire, rate=rate)
        for model in models
        for rate in ((1.0,) if quick else (1.0, SLOW))
        for wire in (("int8",) if quick else ("bf16", "fp16", "int8"))
        for compensation in ("zero", "carry")
    ]


def run_one(setting, seed, epochs):
    """Runs one training, in its own process, where torch has no other threads."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import gather_model
    import numpy
    import torch
    import train_job

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    kind = {"digits": train_job.Digits, "text": train_job.Text}[setting.model]
    tasks = [kind(seed, rank, RANKS) for rank in range(RANKS)]
    network = tasks[0].network()
    buckets = gather_model.buckets_of(network)
    bound_of, loss = gather_model.uniform_bounds(network, 0), None
    if setting.bounds != EXACT:
        function, argument = BOUNDS[setting.bounds]
        bound_of = getattr(gather_model, function)(network, argument)
        loss = gather_model.LOSSES[setting.loss_model](
            setting.loss, RANKS, numpy.random.RandomState(seed)
        )
    gather = gather_model.Gather(
        buckets, bound_of, setting.compensation, loss, RANKS, setting.wire
    )
    optimizer = tasks[0].optimizer(network.parameters())
    for group in optimizer.param_groups:
        group["lr"] *= setting.rate
    curve = train_together(tasks, network, optimizer, buckets, gather, epochs)
    return {
        "seed": seed,
        "curve": curve,
        "missing_share": gather.missing_share,
        "error": gather.error,
        "bound_in_all": gather_model.bound_in_all(network, bound_of),
    }


def train_together(tasks, network, optimizer, buckets, gather, epochs):
    """The same as train_job.train(), with all ranks in this process. Returns accuracy or loss after
    every epoch."""
    import torch

    iteration, curve = 0, []
    for epoch in range(1, epochs + 1):
        for batches in zip(*(task.batches(epoch) for task in tasks)):
            gradients = [[] for _ in buckets]
            for task, (inputs, targets) in zip(tasks, batches):
                optimizer.zero_grad()
                task.loss(network(inputs), targets).backward()
                for rows, bucket in zip(gradients, buckets):
                    rows.append(bucket.gradient())
            for index, bucket in enumerate(buckets):
                bucket.set_gradient(gather.mean(index, torch.stack(gradients[index]), iteration))
            optimizer.step()
            iteration += 1
        with torch.no_grad():
            curve.append(tasks[0].evaluate(network))
    return curve


def run_all(settings, seeds, quick):
    """{setting: its runs}. As many run at a time as there are CPUs."""
    found = {setting: [] for setting in settings}
    begun = time.monotonic()
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), context) as pool:
        waiting = {}
        for setting in settings:
            epochs = train.QUICK_EPOCHS if quick else train.MODELS[setting.model]["epochs"]
            for seed in seeds:
                waiting[pool.submit(run_one, setting, seed, epochs)] = setting
        for number, done in enumerate(concurrent.futures.as_completed(waiting), 1):
            setting = waiting[done]
            found[setting].append(done.result())
            progress = f"{number} of {len(waiting)}, {time.monotonic() - begun:.0f} s"
            what = f"{label(setting.case)}: {setting.name}"
            print(f"{progress}: {what}", file=sys.stderr, flush=True)
    for runs in found.values():
        runs.sort(key=lambda run: run["seed"])
    return found


def final(run):
    return statistics.mean(run["curve"][-FINAL_EPOCHS:])


def epochs_to_target(model, curve):
    """The first epoch that ends with the target of `train`; None when none does."""
    goal = train.MODELS[model]
    rising = goal["measure"] == "accuracy"
    for epoch, value in enumerate(curve, 1):
        if value >= goal["target"] if rising else value <= goal["target"]:
            return epoch
    return None


def result(setting, runs, lossless):
    """One entry of "cases" of the JSON. `worse` says by how much the accuracy or loss of each run
    is worse than that of the lossless run with the same seed."""
    measure = train.MODELS[setting.model]["measure"]
    finals, exact = [final(run) for run in runs], [final(run) for run in lossless]
    sign = 1 if measure == "accuracy" else -1
    worse = [sign * (e - f) for e, f in zip(exact, finals)]
    return {
        "contestant": setting.name,
        "case": setting.case,
        "measure": measure,
        "seeds": [run["seed"] for run in runs],
        "final_mean": statistics.mean(finals),
        "final_range": [min(finals), max(finals)],
        "worse": worse,
        "worse_mean": statistics.mean(worse),
        "spread": statistics.stdev(exact) if len(exact) > 1 else 0.0,
        "epochs_to_target": [epochs_to_target(setting.model, run["curve"]) for run in runs],
        "missing_share": statistics.mean(run["missing_share"] for run in runs),
        "gradient_error": statistics.mean(run["error"] for run in runs),
        "bound_in_all": runs[0]["bound_in_all"],
        "curves": [run["curve"] for run in runs],
    }


def is_visible(entry):
    """Whether it is worse with every seed, and on average by more than seeds differ."""
    return min(entry["worse"]) > 0 and entry["worse_mean"] > entry["spread"]


def label(case):
    rate = "" if case["rate"] == 1 else f" at {case['rate']:g} of the rate"
    loss = "" if case["loss_model"] == "none" else f", {case['loss']:.0%} {case['loss_model']} loss"
    return case["model"] + rate + loss


def value_text(entry, value):
    return f"{value:.1%}" if entry["measure"] == "accuracy" else f"{value:.3f}"


def worse_text(entry):
    sign = "+" if entry["worse_mean"] < 0 else "-"  # better, worse
    return sign + value_text(entry, abs(entry["worse_mean"]))


def target_text(entry):
    reached = [epochs for epochs in entry["epochs_to_target"] if epochs is not None]
    missed = len(entry["epochs_to_target"]) - len(reached)
    return f"missed in {missed}" if missed else f"{statistics.mean(reached):.1f}"


def final_text(entry):
    values = (entry["final_mean"], *entry["final_range"])
    return train.with_range(*(value_text(entry, value) for value in values), "{}")


def details(entries):
    """Markdown: a heading for each model and loss, a row for each setting."""
    lines = []
    for case in report.unique(entry["case"] for entry in entries):
        mine = [entry for entry in entries if entry["case"] == case]
        spread = value_text(mine[0], mine[0]["spread"])
        lines += ["", f"**{label(case)}** (lossless runs: {spread} from seed to seed)", ""]
        lines.append("| bounds, compensation | missing | gradient error | epochs to target | "
                     "final | against lossless |")  # fmt: skip
        lines.append("| --- " * 6 + "|")
        for e in mine:
            mark = ", visible" if is_visible(e) else ""
            lines.append(f"| {e['contestant']} | {e['missing_share']:.2%} | "
                         f"{e['gradient_error']:.2g} | {target_text(e)} | {final_text(e)} | "
                         f"{worse_text(e)}{mark} |")  # fmt: skip
    return "\n".join(lines)


def choices(entries):
    """Markdown: a row for each setting, with the worst result under any loss for each model."""
    lossy = [e for e in entries if e["case"]["loss_model"] != "none" and e["case"]["rate"] == 1]
    if not lossy:
        return ""
    models = report.unique(entry["case"]["model"] for entry in lossy)
    lines = ["", "**What to choose** (the worst over all losses above, against lossless)", "",
             "| bounds, compensation | " + " | ".join(models) + " | verdict |",
             "| --- " * (len(models) + 2) + "|"]  # fmt: skip
    for name in report.unique(entry["contestant"] for entry in lossy):
        worst = []
        for model in models:
            mine = [e for e in lossy if e["contestant"] == name and e["case"]["model"] == model]
            worst += [max(mine, key=lambda entry: entry["worse_mean"])] if mine else []
        visible = [label(entry["case"]) for entry in worst if is_visible(entry)]
        verdict = "worse: " + "; ".join(visible) if visible else "no difference to be seen"
        cells = " | ".join(worse_text(entry) for entry in worst)
        lines.append(f"| {name} | {cells} | {verdict} |")
    return "\n".join(lines) + "\n"


def tables(entries):
    return details(entries) + "\n" + choices(entries)


def draw(entries, folder):
    """Draws nothing, because the tables have all results."""
    return []


def run(options):
    """The entries of all chosen settings, and of their lossless runs."""
    lossy = [
        s for s in make_settings(options.quick)
        if options.case.search(label(s.case)) and options.contestant.search(s.name)
    ]  # fmt: skip
    if not lossy:
        return []
    settings = list(dict.fromkeys(setting.lossless for setting in lossy)) + lossy
    seeds = range(1, (options.repeats or (QUICK_SEEDS if options.quick else SEEDS)) + 1)
    found = run_all(settings, seeds, options.quick)
    entries = [
        result(setting, runs, found[setting.lossless]) for setting, runs in found.items()
    ]
    if options.json:
        said = {"quick": options.quick, "seeds": list(seeds), "gather": "modelled"}
        report.write_json(options.json, report.document("accuracy", entries, said))
    return entries
