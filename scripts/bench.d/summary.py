# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Writes the summary of a measurement that the repository keeps: the quantiles and totals of each
row, without samples. So a clone needs only kilobytes. The samples are in the file of --json."""

import json
import pathlib

# The numbers of a row, in the order in which they are written; each benchmark has some of them.
KEPT = (
    "runs", "iterations", "median_s", "p99_s", "over_bound", "p99_over_bound", "over_oracle",
    "over_server", "over_fapt", "plans", "worst_over_bound",
    "all_reduce_over_bound", "mean_over", "p99_over", "settled_over", "converged_at",
    "median_to_target_s", "final_median", "final_mean", "worse_mean", "gradient_error",
    "missing_share", "worst_missing_share", "partial_rounds", "rounds_closed_early",
    "rounds_closed_deadline", "spread", "sender_spread", "retransmitted_over_needed",
    "queue_drops", "drops", "marks", "deepest_queue_bytes", "copies_between_sites",
    "victim_p50_s", "victim_p99_s", "victim_idle_p50_s", "wire_bytes", "machine_busy",
    "late_frames_share", "mean_s", "over_own_bound", "receivers", "over_random", "over_all",
    "over_unicast", "over_gloo", "to_groups_share", "cpu_seconds_of_round", "over_exact",
    "mean_step_s", "step_over_exact", "cpu_seconds_of_step", "exchanged", "commit",
)  # fmt: skip
DIGITS = 4


def rounded(value):
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def row(entry):
    """The row of a contestant in a case: why it has failed, or its numbers."""
    found = {"contestant": entry["contestant"]}
    if "failure" in entry:
        return {**found, "failure": entry["failure"].splitlines()[0]}
    for name in KEPT:
        if isinstance(entry.get(name), (int, float, str)):
            found[name] = rounded(entry[name])
    if entry.get("copies_by_link"):
        found["copies_by_link"] = {link: list(map(rounded, ways))
                                   for link, ways in entry["copies_by_link"].items()}  # fmt: skip
    if entry.get("cpu_bound"):
        found["cpu_bound"] = True
    return found


def text(document, entries, label, samples):
    """JSON with a line for each row. `samples` is the place of the file with the samples."""
    head = {key: document[key] for key in ("benchmark", "commit", "machine", "settings")
            if key in document}  # fmt: skip
    cases = {}
    for entry in entries:
        case = cases.setdefault(label(entry["case"]), {"rows": []})
        if "bound_s" in entry:
            case["bound_s"] = rounded(entry["bound_s"])
        case["rows"].append(row(entry))
    lines = ["{"]
    for key, value in {**head, "samples": samples}.items():
        lines.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)},")
    lines.append(' "summary": [')
    parts = []
    for name, case in cases.items():
        bound = f' "bound_s": {case["bound_s"]},' if "bound_s" in case else ""
        rows = ",\n".join(f"   {json.dumps(one, ensure_ascii=False)}" for one in case["rows"])
        title = json.dumps(name, ensure_ascii=False)
        parts.append(f'  {{"case": {title},{bound} "rows": [\n{rows}]}}')
    lines.append(",\n".join(parts) + "]")
    lines.append("}")
    return "\n".join(lines) + "\n"


def write(folder, path, document, entries, label, samples):
    """Writes the summary of the file `path` under the same name to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / pathlib.Path(path).name
    if made.exists() and made.samefile(path):
        raise ValueError(f"{path} would be overwritten by its own summary")
    made.write_text(text(document, entries, label, samples))
    return made
