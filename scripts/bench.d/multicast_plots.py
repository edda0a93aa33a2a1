# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Plots `multicast` as SVG: for each case a bar for each contestant, its mean time over the
bound."""

import plots
import report
from plots import plt


def draw_all(entries, folder, label):
    """Draws all figures. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for case in report.unique(entry["case"] for entry in entries):
        good = [e for e in entries if e["case"] == case and "failure" not in e]
        if good:
            made.append(folder / f"multicast-{case['op']}-{case['switch']}.svg")
            draw(good, label(case), made[-1])
    return made


def draw(entries, title, path):
    """Draws the bars in order of time. Contestants with groups have their own colour."""
    entries = sorted(entries, key=lambda entry: entry["mean_s"])
    figure, axes = plt.subplots(figsize=(8, 1 + 0.3 * len(entries)))
    for row, entry in enumerate(entries):
        colour = plots.COLOURS[0 if entry["contestant"].endswith("-multicast") else 2]
        axes.barh(row, entry["over_bound"], color=colour)
    axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(entries)), [entry["contestant"] for entry in entries])
    axes.invert_yaxis()
    axes.set_xlabel("mean time over the bound")
    axes.set_title(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
