# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""What a benchmark shows of its entries: tables, an overview and plots, each as its module has them
or as all benchmarks of rounds have them."""

import importlib

import cases
import report

# Each is a module: DESCRIPTION, and either run(options), which gives the entries, or what
# bench.measure() asks for.
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
    """The text of an entry that has one; else a dash."""
    return lambda entry: "-" if entry is None or "failure" in entry else text(entry)


class Shown:
    """A module may have COLUMNS, label(case), restate(entry), tables(entries), draw(entries,
    folder), and MORE_OVERVIEWS: pairs of a title and the text of an entry's cell."""

    def __init__(self, name):
        self.name = name
        self.module = importlib.import_module(name.replace("-", "_"))
        self.label = getattr(self.module, "label", cases.label)

    def restate(self, entry):
        """An entry of a file as the code of today would have written it, as far as it can."""
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
        """Markdown: a row for each case, a column for each contestant, and in it the median and the
        p99 over the bound. A star stands where the processors were the limit, a dash where the
        contestant was thrown out or not asked."""
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
        """Files made; none when there is nothing that a plot could show."""
        if hasattr(self.module, "draw"):
            return self.module.draw(entries, folder)
        import plots  # here alone, so that tables need no matplotlib

        return plots.draw_all(self.name, entries, folder)
