# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Plots `interleave` as SVG: the iterations over those of a lone job, one after the other, in a
figure for each case."""

import itertools
import re
import statistics

import plots
import report
from plots import plt


def means(ratios):
    """The means over the jobs, as long as all of them go on."""
    return [statistics.mean(one) for one in zip(*ratios)]


def draw(entries, title, path):
    figure, axes = plt.subplots(figsize=(8, 4))
    for colour, entry in zip(itertools.cycle(plots.COLOURS), entries):
        values = means(entry["ratios"])
        axes.plot(range(1, len(values) + 1), values, label=entry["contestant"], color=colour,
                  linewidth=1.3, linestyle="-" if is_turn_taker(entry) else "--")  # fmt: skip
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("iteration")
    axes.set_ylabel("iteration time / alone, mean of the jobs")
    axes.set_title(title, fontsize=9)
    axes.set_xlim(1, None)
    axes.grid(True, alpha=0.25)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def is_turn_taker(entry):
    """Whether a contestant is meant to make jobs take turns. Its line is solid."""
    return re.search("mltcp|strict", entry["contestant"]) is not None


def draw_all(name, entries, folder, label):
    """Draws all figures. Returns the files."""
    made = []
    folder.mkdir(parents=True, exist_ok=True)
    shown = [entry for entry in entries if "ratios" in entry]
    for case in report.unique(entry["case"] for entry in shown):
        slug = re.sub(r"[^a-z0-9.]+", "-", label(case).lower().replace("%", "")).strip("-")
        made.append(folder / f"{name}-{slug}.svg")
        draw([entry for entry in shown if entry["case"] == case], label(case), made[-1])
    return made
