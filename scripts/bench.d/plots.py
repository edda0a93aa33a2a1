# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Plots of a benchmark's entries: time over the bound against what was varied. SVG."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# What is varied, what it is called, and whether its axis is logarithmic.
AXES = (
    ("bytes", "bytes of each host", True),
    ("loss", "loss of a path", False),
    ("rtt_ms", "round trip, ms", True),
    ("hosts", "hosts", False),
)
COLOURS = ("#1b6ca8", "#5aa9e6", "#e07a5f", "#d9a441", "#81b29a", "#6d597a", "#9a8c98")
MOST_SHOWN_OVER_BOUND = 40


def series_along(entries, key):
    """For the key: groups of cases that differ in it alone, with at least three values."""
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


def draw(group, key, title, logarithmic, path):
    figure, axes = plt.subplots(figsize=(7, 4.2))
    names = list(dict.fromkeys(entry["contestant"] for entry in group))
    for colour, name in zip(COLOURS, names):
        mine = sorted(
            (e for e in group if e["contestant"] == name and "failure" not in e),
            key=lambda e: e["case"][key],
        )
        if not mine:
            continue
        x = [e["case"][key] for e in mine]
        y = [e["over_bound"] for e in mine]
        low = [e["over_bound"] - e["ci95_s"][0] / e["bound_s"] for e in mine]
        high = [e["p99_over_bound"] - e["over_bound"] for e in mine]
        axes.errorbar(x, y, yerr=[low, high], label=name, color=colour, marker="o", capsize=3)
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel(title)
    axes.set_ylabel("time / bound: median, up to p99")
    axes.set_yscale("log")
    axes.set_ylim(0.9, None)
    if logarithmic:
        axes.set_xscale("log")
    elif key == "loss":
        axes.set_xscale("symlog", linthresh=0.0001)
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def draw_all(name, entries, folder):
    """Files made, each with what it shows."""
    made = []
    folder.mkdir(parents=True, exist_ok=True)
    for key, title, logarithmic in AXES:
        for index, group in enumerate(series_along(entries, key)):
            path = folder / f"{name}-{key}{'' if index == 0 else f'-{index + 1}'}.svg"
            draw(group, key, title, logarithmic, path)
            made.append(path)
    return made
