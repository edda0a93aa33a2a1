# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The plot of `wan`: a panel for each case, a bar for each contestant. SVG."""

import plots
import report
from plots import plt

OURS = "gradplane"


def draw_all(entries, folder, label):
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for case in report.unique(entry["case"] for entry in entries):
        good = [e for e in entries if e["case"] == case and "failure" not in e]
        if not good:
            continue
        name = "".join(c if c.isalnum() else "-" for c in label(case)).replace("--", "-")
        path = folder / f"wan-{name}.svg"
        draw_bars(good, label(case), path)
        made.append(path)
    return made


def draw_bars(entries, title, path):
    """Ordered by time; gradplane has a colour of its own."""
    entries = sorted(entries, key=lambda entry: entry["median_s"])
    key = "over_oracle" if entries[0].get("over_oracle") else "over_bound"
    figure, axes = plt.subplots(figsize=(8, 1 + 0.25 * len(entries)))
    for row, entry in enumerate(entries):
        colour = plots.COLOURS[0 if entry["contestant"].startswith(OURS) else 2]
        axes.barh(row, entry[key], color=colour)
    axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(entries)), [entry["contestant"] for entry in entries])
    axes.invert_yaxis()
    axes.set_xlabel("time over the packing bound")
    axes.set_title(title, fontsize=10)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
