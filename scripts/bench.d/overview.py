#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Usage: scripts/bench.d/overview.py RESULTS.json...

Prints one Markdown table of what `scripts/bench NAME --json RESULTS.json` has found: a row for each
case, a column for each contestant, and in it the median and the p99 over the bound. A star stands
where the processors were the limit, a dash where the contestant was thrown out or not asked.
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
import cases  # noqa: E402


def cell(entry):
    if entry is None or "failure" in entry:
        return "-"
    star = "*" if entry["cpu_bound"] else ""
    return f"{entry['over_bound']:.2f} / {entry['p99_over_bound']:.2f}{star}"


def overview(entries):
    names = list(dict.fromkeys(entry["contestant"] for entry in entries))
    rows = {}
    for entry in entries:
        row = rows.setdefault(cases.label(entry["case"]), {"bound_s": entry["bound_s"]})
        row[entry["contestant"]] = entry
    lines = ["| case | bound | " + " | ".join(names) + " |", "| --- " * (len(names) + 2) + "|"]
    for label, row in rows.items():
        cells = [cell(row.get(name)) for name in names]
        lines.append(f"| {label} | {row['bound_s'] * 1000:.4g} ms | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    entries = []
    for path in sys.argv[1:]:
        entries += json.loads(pathlib.Path(path).read_text())["cases"]
    print(overview(entries), end="")


if __name__ == "__main__":
    main()
