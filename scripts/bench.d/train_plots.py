# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Plots `train` as SVG: accuracy or loss against time, in a figure for each case."""

import itertools

import plots
import report
from plots import plt


def draw(entries, title, path):
    """Draws a line for each seed. Lines of one contestant have one colour."""
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for colour, entry in zip(itertools.cycle(plots.COLOURS), entries):
        for number, curve in enumerate(entry.get("curves", [])):
            seconds, values = zip(*curve)
            axes.plot(seconds, values, color=colour, marker=".", linewidth=1,
                      label=entry["contestant"] if number == 0 else None)  # fmt: skip
    axes.axhline(entries[0]["case"]["target"], color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("seconds since the first step, without evaluation")
    measure = next((e["measure"] for e in entries if "measure" in e), "")
    axes.set_ylabel("validation loss, nats" if measure == "loss" else "accuracy on test images")
    axes.set_title(title, fontsize=9)
    axes.set_xlim(0, None)
    axes.grid(True, alpha=0.25)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def draw_all(entries, folder, label, slug):
    """Draws all figures. Returns the files."""
    made = []
    folder.mkdir(parents=True, exist_ok=True)
    for case in report.unique(entry["case"] for entry in entries):
        mine = [entry for entry in entries if entry["case"] == case]
        if any("curves" in entry for entry in mine):
            made.append(folder / f"train-{slug(case)}.svg")
            draw(mine, label(case), made[-1])
    return made
