# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Makes tables and plots from files of `scripts/bench NAME --json FILE`. It measures nothing.

Several files of one benchmark become one set of tables. If two have the same contestant in the same
case, the later file counts. Notes say so, and also if the rows of a case come from different files,
because they were not measured at the same time.

`--summary FOLDER --samples WHERE` writes the summary of each file that the repository keeps: see
summary.py.
"""

import argparse
import collections
import json
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts/lib")]
import report  # noqa: E402
import shown  # noqa: E402
import summary  # noqa: E402

MAX_FILE_BYTES = 256 << 20


class SavedError(Exception):
    """A file is no result of a benchmark, or of another one. The message says which, and why."""


def parse_arguments(words):
    parser = argparse.ArgumentParser(prog="scripts/bench report", description=__doc__)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--overview", action="store_true",
                        help="one table: a row a case, a column a contestant")  # fmt: skip
    parser.add_argument("--plots", type=pathlib.Path, metavar="FOLDER", help="draw plots here")
    parser.add_argument("--summary", type=pathlib.Path, metavar="FOLDER",
                        help="write a file of the same name without samples here")  # fmt: skip
    parser.add_argument("--samples", metavar="WHERE",
                        help="what the summary says of where the samples are")  # fmt: skip
    options = parser.parse_args(words)
    if bool(options.summary) != bool(options.samples):
        parser.error("--summary and --samples need each other: say where the samples stay")
    return options


def load(path):
    """Loads one document of report.document()."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SavedError(f"{path}: more than {MAX_FILE_BYTES >> 20} MiB")
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SavedError(f"{path}: {error}") from error
    if not isinstance(document, dict) or document.get("benchmark") not in shown.NAMES:
        known = ", ".join(shown.NAMES)
        raise SavedError(f"{path}: its `benchmark` is none of {known}")
    if "summary" in document:
        where = document.get("samples")
        raise SavedError(f"{path}: it is a summary without samples; those are in: {where}")
    entries = document.get("cases")
    if not isinstance(entries, list) or not entries:
        raise SavedError(f"{path}: it has no `cases`")
    for entry in entries:
        if not isinstance(entry, dict) or not {"contestant", "case"} <= entry.keys():
            raise SavedError(f"{path}: one of its `cases` lacks `contestant` or `case`")
    return document


def load_all(paths):
    """Loads {path: document}. All must be of one benchmark."""
    documents = {path: load(path) for path in paths}
    names = {document["benchmark"] for document in documents.values()}
    if len(names) > 1:
        raise SavedError(f"files of different benchmarks: {', '.join(sorted(names))}")
    return documents


class Merged:
    """The entries of several documents, in the order of the files."""

    def __init__(self, documents):
        self._found = {}  # (case, contestant): (path, entry)
        self.replaced = collections.Counter()  # (path, later path): entries that both have
        for path, document in documents.items():
            for entry in document["cases"]:
                key = json.dumps([entry["case"], entry["contestant"]], sort_keys=True)
                if key in self._found:
                    self.replaced[self._found[key][0], path] += 1
                self._found[key] = (path, entry)

    @property
    def entries(self):
        return [entry for _, entry in self._found.values()]

    def files_of(self, case):
        return {path for path, entry in self._found.values() if entry["case"] == case}


def notes(documents, merged, label):
    """Markdown: which code each file measured, and which tables have rows of several files."""
    lines = []
    for path, document in documents.items():
        machine, settings = document.get("machine", {}), document.get("settings", {})
        asked = " --quick" if settings.get("quick") else ""
        repeats = settings.get("repeats") or len(settings.get("seeds", []))
        asked += f" --repeats {repeats}" if repeats else ""
        lines.append(f"- `{path}`: `scripts/bench {document['benchmark']}{asked}`, commit "
                     f"{document.get('commit', 'unknown')}, {machine.get('cores', '?')} cores, "
                     f"Linux {machine.get('kernel', '?')}")  # fmt: skip
    for case in report.unique(entry["case"] for entry in merged.entries):
        paths = sorted(str(path) for path in merged.files_of(case))
        if len(paths) > 1:
            of_files = ", ".join(f"`{path}`" for path in paths)
            lines.append(f"- rows of different runs, {label(case)}: {of_files}")
    for (old, new), count in merged.replaced.items():
        lines.append(f"- {count} rows of `{old}` are left out, because `{new}` has them too")
    return "\n".join(lines) + "\n"


def summarise(options, documents, benchmark):
    """Writes a summary of each document. Returns the files."""
    made = []
    for path, document in documents.items():
        entries = [benchmark.restate(entry) for entry in document["cases"]]
        made.append(summary.write(options.summary, path, document, entries, benchmark.label,
                                  options.samples))  # fmt: skip
    return made


def main(words):
    options = parse_arguments(words)
    documents = load_all(options.files)
    benchmark = shown.Shown(next(iter(documents.values()))["benchmark"])
    if options.overview and not benchmark.has_overview:
        raise SavedError(f"{benchmark.name} has no overview; leave --overview out")
    merged = Merged(documents)
    try:
        entries = [benchmark.restate(entry) for entry in merged.entries]
        text = benchmark.overview(entries) if options.overview else benchmark.tables(entries)
        said = notes(documents, merged, benchmark.label)
        made = benchmark.draw(entries, options.plots) if options.plots else []
        made += summarise(options, documents, benchmark) if options.summary else []
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise SavedError(f"a file lacks a field, or has something else in it: {error!r}") from error
    print(text)
    print(said, end="")
    for path in made:
        print(f"made: {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SavedError as error:
        sys.exit(f"bench report: {error}")
