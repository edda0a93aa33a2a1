# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Reports the results of a benchmark: as JSON for programs, and as tables for people."""

import json
import os
import pathlib
import platform
import statistics
import subprocess

import cases
import meters

ROOT = pathlib.Path(__file__).resolve().parents[2]


def commit():
    """The commit of this tree, with + if files have changed since."""

    def git(*words):
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=20
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    name = git("rev-parse", "--short", "HEAD") or "unknown"
    return name + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def document(name, entries, settings):
    return {
        "benchmark": name,
        "commit": commit(),
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "cpu": cpu_model()},
        "settings": settings,
        "cases": entries,
    }


def milliseconds(seconds):
    return f"{seconds * 1000:.0f}" if seconds >= 0.1 else f"{seconds * 1000:.1f}"


def machine_text(entry):
    """The share of all cores that was busy."""
    share = entry["machine_busy"]
    return "?" if share is None else f"{share * 100:.0f} %"


def hosts_text(entry):
    """The cores that the busiest host used, and the mean over the hosts."""
    hosts = [cores for name, cores in entry["cpu"].items() if name != meters.SWITCH]
    return f"{max(hosts):.2f} / {statistics.mean(hosts):.2f} cores" if hosts else "-"


def switch_text(entry):
    return f"{entry['cpu'][meters.SWITCH]:.2f} cores" if meters.SWITCH in entry["cpu"] else "-"


def interval_text(interval):
    return "-".join(milliseconds(seconds) for seconds in interval) if interval else "-"


# If a larger share of frames came over 1 ms late, the network was not as the case describes it.
LATE_SHARE = 0.02

# The last column of a table takes the remarks.
CPU_COLUMNS = (
    ("busiest / mean host", hosts_text),
    ("switch", switch_text),
    ("CPU", machine_text),
)
COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("runs", lambda e: str(e["runs"])),
    ("median ms", lambda e: milliseconds(e["median_s"])),
    ("95 % interval", lambda e: interval_text(e["ci95_s"])),
    ("p99 ms", lambda e: milliseconds(e["p99_s"])),
    ("over bound", lambda e: f"{e['over_bound']:.2f}"),
    ("spread", lambda e: f"{e['spread']:.2f}"),
    ("of pushes", lambda e: f"{e['push_spread']:.2f}" if e["push_spread"] else "-"),
    ("sent again", lambda e: f"{e['retransmitted_over_needed'] * 100:.1f} %"),
    ("MB on wire", lambda e: f"{e['wire_bytes'] / 1e6:.1f}"),
    ("deepest queue", lambda e: f"{e['deepest_queue_bytes'] / 1024:.0f} KiB"),
    *CPU_COLUMNS,
)


def share_text(share):
    return "-" if share is None else f"{share * 100:.2f} %"


def closes_text(entry):
    """The rounds that closed before they were complete: early / by deadline."""
    if entry["missing_share"] is None:
        return "-"
    return f"{entry['rounds_closed_early']} / {entry['rounds_closed_deadline']}"


# Columns for rounds that may lack something.
TOLERANT_COLUMNS = (
    *COLUMNS[: -len(CPU_COLUMNS)],
    ("missing", lambda e: share_text(e["missing_share"])),
    ("of a tensor", lambda e: share_text(e["worst_missing_share"])),
    ("early / deadline", closes_text),
    *CPU_COLUMNS,
)


def remarks(entry):
    """Reasons for which the results of a row may not be trusted."""
    late = entry["late_frames_share"]
    found = []
    if entry["cpu_bound"]:
        found.append("CPU-bound")
    if late > LATE_SHARE:
        found.append(f"{late * 100:.0f} % of frames late")
    if entry.get("lost_by_switch"):
        found.append(f"{entry['lost_by_switch']} frames lost by the emulator")
    if entry.get("accepted_late"):
        found.append(f"{entry['accepted_late']} rounds begun late")
    return found


def table(entries, columns=COLUMNS, label=cases.label):
    """Markdown: a heading for each case, a row for each contestant. The row says if a contestant
    has failed, and why, or if CPUs were its limit."""
    lines = []
    for case in unique(entry["case"] for entry in entries):
        mine = [entry for entry in entries if entry["case"] == case]
        bound = milliseconds(mine[0]["bound_s"])
        lines += ["", f"**{label(case)}** (bound {bound} ms)", ""]
        lines.append("| " + " | ".join(title for title, _ in columns) + " |")
        lines.append("| " + " | ".join("---" for _ in columns) + " |")
        for entry in mine:
            if "failure" in entry:
                why = entry["failure"].splitlines()[0].replace("|", "/")[:120]
                lines.append(f"| {entry['contestant']} | {entry['runs']} | thrown out: {why} |"
                             + " |" * (len(columns) - 3))  # fmt: skip
                continue
            row = [text(entry) for _, text in columns]
            row[-1] = ", ".join([row[-1], *remarks(entry)])
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def local_table(entries, columns, label):
    """The same for cases without a network, where the only remark is that sums were wrong."""
    lines = []
    for case in unique(entry["case"] for entry in entries):
        lines += ["", f"**{label(case)}**", "",
                  "| " + " | ".join(title for title, _ in columns) + " |",
                  "| --- " * len(columns) + "|"]  # fmt: skip
        for entry in (entry for entry in entries if entry["case"] == case):
            texts = [text(entry) for _, text in columns]
            if not entry["correct"]:
                texts[0] += ", WRONG"
            lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def unique(values):
    found = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def write_json(path, content):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    whole = pathlib.Path(f"{path}.new")
    whole.write_text(json.dumps(content, indent=1) + "\n")
    whole.rename(path)  # so the file is complete even if this process is killed
