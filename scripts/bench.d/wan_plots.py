# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Plots `wan` as SVG: for each case bars with the times of all contestants, and lines with the
progress of those that were followed while the network changes."""

import plots
import report
import wan_cases as cases
import wan_network as network
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
        if any("progress" in entry for entry in good):
            made.append(path.with_name(f"{path.stem}-progress.svg"))
            draw_progress([e for e in good if "progress" in e], label(case), made[-1])
    return made


def draw_bars(entries, title, path):
    """Draws the bars in order of time. gradplane has its own colour."""
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


def oracle_line(case):
    """The progress of a planner that knows all draws of a first round: [seconds], [share]."""
    seconds, shares = [0.0], [0.0]
    period_s = cases.period_s(case)
    while shares[-1] < 1:
        whole_s = network.packing_bound_s(network.draw(len(seconds) - 1), case["bytes"])
        step_s = min(period_s, (1 - shares[-1]) * whole_s)
        seconds.append(seconds[-1] + step_s)
        shares.append(min(1.0, shares[-1] + step_s / whole_s))
        if step_s < period_s:
            break
    return seconds, shares


def draw_progress(entries, title, path):
    """Draws the share of sums that are done in first rounds against time, with a line at each
    redraw."""
    case = entries[0]["case"]
    figure, axes = plt.subplots(figsize=(8, 4.5))
    axes.plot(*oracle_line(case), color="black", linewidth=1, linestyle="--", label="oracle")
    rounds = case["bytes"] / 1024 / entries[0]["round_kib"]
    for number, entry in enumerate(sorted(entries, key=lambda entry: entry["median_s"])):
        first = entry["progress"][0][1]
        seconds = [at for at, _ in entry["progress"] if at >= 0]
        shares = [(done - first) / rounds for at, done in entry["progress"] if at >= 0]
        axes.plot(seconds, shares, linewidth=1, color=f"C{number % 10}", label=entry["contestant"])
    for number in range(1, int(max(e["median_s"] for e in entries) / cases.period_s(case)) + 1):
        axes.axvline(number * cases.period_s(case), color="grey", linewidth=0.6, linestyle=":")
    axes.set_xlabel("seconds")
    axes.set_ylabel("share of the sums")
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
