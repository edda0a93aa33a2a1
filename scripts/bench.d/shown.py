# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Shows the entries of a benchmark: as tables, an overview and plots. A module may have its own;
otherwise they are those of all benchmarks with rounds."""

import importlib

import cases
import report

# Each is a module. It has DESCRIPTION, and either run(options), which returns the entries, or what
# bench.measure() needs.
NAMES = (
    "allreduce", "incast", "incast-sim", "ltp", "interleave", "interleave-simulated", "train",
    "accuracy", "ns3", "wan", "wan-train", "multicast",
    "selective", "dataplane", "aggregator", "reach",
)  # fmt: skip


def cell(entry):
    if entry is None or "failure" in entry:
        return "-"
    star = "*" if entry["cpu_bound"] else ""
    return f"{entry['over_bound']:.2f} / {entry['p99_over_bound']:.2f}{star}"


def told_by(text):
    """A function that returns the text of an entry, or a dash if it has failed or is missing."""
    return lambda entry: "-" if entry is None or "failure" in entry else text(entry)


class Shown:
    """Shows a benchmark. Its module may have COLUMNS, label(case), restate(entry), tables(entries),
    draw(entries, folder), and MORE_OVERVIEWS: pairs of a title and a function for the text of a
    cell."""

    def __init__(self, name):
        self.name = name
        self.module = importlib.import_module(name.replace("-", "_"))
        self.label = getattr(self.module, "label", cases.label)

    def restate(self, entry):
        """An entry of a file, brought as far as possible to the form that today's code writes."""
        return self.module.restate(entry) if hasattr(self.module, "restate") else entry

    def tables(self, entries):
        """Markdown: a table for each case."""
        if hasattr(self.module, "tables"):
            return self.module.tables(entries)
        return report.table(entries, getattr(self.module, "COLUMNS", report.COLUMNS), self.label)

    @property
    def has_overview(self):
        return not hasattr(self.module, "tables")

    def overview(self, entries):
        """Markdown: a row for each case, a column for each contestant, and in the cells the median
        and the p99 over the bound. A star means that CPUs were the limit, a dash that the
        contestant has failed or did not take part."""
        parts = [self._overview(entries, cell)]
        for title, text in getattr(self.module, "MORE_OVERVIEWS", ()):
            parts += [f"**{title}**\n", self._overview(entries, told_by(text))]
        return "\n".join(parts)

    def _overview(self, entries, text):
        names = list(dict.fromkeys(entry["contestant"] for entry in entries))
        rows = {}
        for entry in entries:
            row = rows.setdefault(self.label(entry["case"]), {"bound_s": entry["bound_s"]})
            row[entry["contestant"]] = entry
        lines = ["| case | bound | " + " | ".join(names) + " |", "| --- " * (len(names) + 2) + "|"]
        for label, row in rows.items():
            bound_ms = row["bound_s"] * 1000
            texts = [f"{bound_ms:.4g} ms" if bound_ms < 1000 else f"{bound_ms:.0f} ms"]
            texts += [text(row.get(name)) for name in names]
            lines.append(f"| {label} | " + " | ".join(texts) + " |")
        return "\n".join(lines) + "\n"

    def draw(self, entries, folder):
        """Draws the plots. Returns the files; none if there is nothing to plot."""
        if hasattr(self.module, "draw"):
            return self.module.draw(entries, folder)
        import plots  # only here, so that tables need no matplotlib

        return plots.draw_all(self.name, entries, folder)
