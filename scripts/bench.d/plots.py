# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Plots a benchmark's entries as SVG: time over the bound against the parameter that was varied."""

import itertools

import cases
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Text is not converted to outlines, with which a plot would take twice as many bytes.
matplotlib.rcParams["svg.fonttype"] = "none"

# The parameters that are varied, each with a function that formats a value.
AXES = {
    "bytes": cases.size_text,
    "loss": lambda loss: f"{loss * 100:g} %",
    "rtt_ms": lambda ms: f"{ms:g} ms",
    "hosts": str,
}
TITLES = {
    "bytes": "bytes of each host",
    "loss": "random loss of a path",
    "rtt_ms": "round trip",
    "hosts": "hosts",
}
COLOURS = ("#1b6ca8", "#5aa9e6", "#e07a5f", "#d9a441", "#81b29a", "#6d597a", "#9a8c98", "#2f3e46",
           "#c9184a", "#7cb518", "#8d5524", "#00a6a6", "#ff70a6", "#4b3fae")  # fmt: skip
# Slower contestants of ns-3 are cut off, because they would squeeze all others into one line.
MOST_OF_SENDERS = 15
PLAIN_TICKS = (1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500)


def series_along(entries, key):
    """Groups of entries whose cases differ only in `key`, with at least three values of it."""
    groups = {}
    for entry in entries:
        fixed = {k: v for k, v in entry["case"].items() if k not in (key, "queue_bytes")}
        if key == "loss":
            if entry["case"]["loss_model"] not in ("none", "random"):
                continue
            fixed.pop("loss_model")
        groups.setdefault(repr(sorted(fixed.items())), []).append(entry)
    for group in groups.values():
        if len({entry["case"][key] for entry in group}) >= 3:
            yield group


def label_ratios(axes, most=float("inf")):
    """Makes a logarithmic axis of times over the bound, up to `most`, with round numbers."""
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    low, high = 0.9, min(most, axes.get_ylim()[1])
    axes.set_ylim(low, high)
    axes.set_yticks([t for t in PLAIN_TICKS if low < t < high], minor=False)
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(True, axis="y", alpha=0.25)


def draw_senders(entries, title, path):
    """Draws `ns3`: a column for each number of senders, a line for each contestant. TCP is dashed.
    """
    figure, axes = plt.subplots(figsize=(8, 4))
    senders = sorted({entry["case"]["senders"] for entry in entries})
    names = list(dict.fromkeys(entry["contestant"] for entry in entries))
    for colour, name in zip(itertools.cycle(COLOURS), names):
        mine = sorted((e for e in entries if e["contestant"] == name),
                      key=lambda e: e["case"]["senders"])  # fmt: skip
        x = [senders.index(entry["case"]["senders"]) for entry in mine]
        style = "--" if name.startswith("tcp-") else "-"
        axes.plot(x, [entry["over_bound"] for entry in mine], label=name, color=colour,
                  linestyle=style, marker="o", markersize=4, linewidth=1.4)  # fmt: skip
    axes.set_xticks(range(len(senders)), [str(count) for count in senders])
    axes.set_xlabel("senders")
    axes.set_ylabel("push / bound, median round")
    label_ratios(axes, MOST_OF_SENDERS)
    axes.set_title(title, fontsize=9)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def draw(group, key, path):
    """Draws a column for each value of `key`, and a line for each contestant."""
    figure, axes = plt.subplots(figsize=(8, 4))
    values = sorted({entry["case"][key] for entry in group})
    names = list(dict.fromkeys(entry["contestant"] for entry in group))
    for colour, name in zip(itertools.cycle(COLOURS), names):
        mine = {e["case"][key]: e for e in group if e["contestant"] == name and "failure" not in e}
        x = [values.index(value) for value in values if value in mine]
        shown = [mine[values[place]] for place in x]
        y = [e["over_bound"] for e in shown]
        best = [(e["ci95_s"] or [e["median_s"]])[0] / e["bound_s"] for e in shown]
        low = [max(0, e["over_bound"] - b) for e, b in zip(shown, best)]
        high = [e["p99_over_bound"] - e["over_bound"] for e in shown]
        axes.errorbar(x, y, yerr=[low, high], label=name, color=colour, marker="o", markersize=4,
                      capsize=3, linewidth=1.4)  # fmt: skip
    axes.set_xticks(range(len(values)), [AXES[key](value) for value in values])
    axes.set_xlabel(TITLES[key])
    axes.set_ylabel("time / bound, median to p99")
    label_ratios(axes)
    axes.set_title(cases.label({**group[0]["case"], **neutral(key)}, without=key), fontsize=9)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def neutral(key):
    """Values that leave the varied parameter out of the title."""
    return {"loss": 0, "loss_model": "none"} if key == "loss" else {}


def draw_all(name, entries, folder):
    """Draws all figures. Returns the files."""
    made = []
    folder.mkdir(parents=True, exist_ok=True)
    for key in AXES:
        for index, group in enumerate(series_along(entries, key)):
            path = folder / f"{name}-{key}{'' if index == 0 else f'-{index + 1}'}.svg"
            draw(group, key, path)
            made.append(path)
    return made
