# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Plots the simulated incast as SVG."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import report  # noqa: E402
from plots import COLOURS  # noqa: E402

PARTS = (("over_bound", "time / bound"), ("sender_spread", "last / first sender"))


def by_contestant(entries):
    names = report.unique(entry["contestant"] for entry in entries)
    for colour, name in zip(COLOURS, names):
        yield name, colour, [entry for entry in entries if entry["contestant"] == name]


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
    return [path]


def draw_against_senders(entries, title, path):
    """Draws two charts side by side. Charts with fewer than two values are not drawn."""
    senders = sorted({entry["case"]["senders"] for entry in entries})
    if len(senders) < 2:
        return []
    figure, places = plt.subplots(1, 2, figsize=(10, 3.8))
    for axes, (key, words) in zip(places, PARTS):
        for name, colour, mine in by_contestant(entries):
            x = [senders.index(entry["case"]["senders"]) for entry in mine]
            axes.plot(x, [entry[key] for entry in mine], label=name, color=colour, marker="o",
                      markersize=4, linewidth=1.4)  # fmt: skip
        axes.set_xticks(range(len(senders)), list(map(str, senders)))
        axes.set_xlabel("senders")
        axes.set_ylabel(words)
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.95)
        if axes.get_ylim()[1] < 5:
            ticks = [t for t in (1, 1.2, 1.5, 2, 2.5, 3, 4) if t < axes.get_ylim()[1]]
            axes.set_yticks(ticks, list(map(str, ticks)))
            axes.set_yticks([], minor=True)
        axes.grid(True, axis="y", alpha=0.25)
    figure.suptitle(title, fontsize=9)
    places[1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    return save(figure, path)


def draw_completion(entries, path):
    """Draws the share of the blocks that had come from all senders against time over bound."""
    figure, axes = plt.subplots(figsize=(8, 4))
    for name, colour, mine in by_contestant(entries):
        quantiles = mine[0]["block_complete_quantiles_s"]
        x = [seconds / mine[0]["bound_s"] for seconds in quantiles]
        shares = [100 * i / (len(x) - 1) for i in range(len(x))]
        axes.plot(x, shares, label=name, color=colour, linewidth=1.4)
    axes.set_xlabel("time / bound")
    axes.set_ylabel("blocks complete, %")
    axes.set_xlim(left=0)
    axes.grid(True, alpha=0.25)
    axes.set_title(f"{entries[0]['case']['senders']} senders", fontsize=9)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    return save(figure, path)
