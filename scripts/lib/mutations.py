# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The tables of tests/mutations: small defects that the tests must notice. This module only reads
and checks them. scripts/mutate runs them, and scripts/lint checks that each applies to the tree.

A table is a TOML file, whose name up to the first `_` is its area. Each entry is one mutation:

    [waiting-is-not-counted]
    breaks = "A user with many waiting jobs is not the one who gives way."
    file = "control/session/admission.cc"
    inside = "who_gives_way("       # optional: the head of the function that has the text
    text = "if (slot.waiting) ++waiting[slot.user];"
    becomes = ""
    tests = ["tests/unit/session_admission_test.cc"]

`text` is found whatever white space the formatter puts between its words, and it must be found
exactly once: in the file, or in the function that `inside` names. A test is the source file of a
test, or a source file and the arguments of the program that is built from it.
"""

import dataclasses
import pathlib
import re
import tomllib

from sources import ROOT, Finding, read

FOLDER = "tests/mutations"
_KEYS = {"breaks", "file", "text", "becomes", "tests"}
_OPTIONAL_KEYS = {"inside"}
_SENTENCE = re.compile(r"[A-Z].*\.", re.DOTALL)
_NAME = re.compile(r"[a-z0-9-]+")


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    table: str  # its file
    breaks: str  # one sentence: what is wrong with the mutation
    file: str
    text: str
    becomes: str
    tests: tuple[str, ...]  # each "SOURCE [ARGUMENT...]"; one of them must fail
    inside: str = ""

    @property
    def area(self):
        return pathlib.PurePath(self.table).stem.split("_")[0]

    def sources(self):
        """The file that it changes, and those of its tests."""
        return (self.file, *(test.split()[0] for test in self.tests))

    def apply(self, source):
        """The source with the defect. Raises DoesNotApply."""
        if self.inside:
            begin, end = _function(source, self.inside)
        else:
            begin, end = 0, len(source)
        places = list(_pattern(self.text).finditer(source, begin, end))
        if len(places) != 1:
            where = f"in '{self.inside}'" if self.inside else "in the file"
            raise DoesNotApply(f"'{self.text}' is {len(places)} times {where}, not once")
        return source[: places[0].start()] + self.becomes + source[places[0].end() :]


class DoesNotApply(Exception):
    """The text of a mutation is not in the tree, or more than once."""


def _pattern(text):
    return re.compile(r"\s+".join(re.escape(word) for word in text.split()))


def _function(source, head):
    """(begin, end) of the function whose head has this text."""
    heads = list(_pattern(head).finditer(source))
    if len(heads) != 1:
        raise DoesNotApply(f"the head '{head}' is {len(heads)} times in the file, not once")
    begin = heads[0].start()
    line = source[source.rfind("\n", 0, begin) + 1 : begin]
    indent = line[: len(line) - len(line.lstrip())]
    end = re.compile(rf"^{indent}}}", re.MULTILINE).search(source, begin)
    return begin, end.start() if end else len(source)


def _faults(name, entry):
    """The errors in the form of an entry."""
    if not isinstance(entry, dict):
        return [f"'{name}' is no table"]
    faults = [f"{name}: the key '{key}' is missing" for key in sorted(_KEYS - set(entry))]
    unknown = sorted(set(entry) - _KEYS - _OPTIONAL_KEYS)
    faults += [f"{name}: there is no key '{key}'" for key in unknown]
    if not faults and entry["text"] == entry["becomes"]:
        faults.append(f"{name}: 'text' and 'becomes' are the same")
    if not faults and not (entry["text"].strip() and entry["tests"]):
        faults.append(f"{name}: 'text' or 'tests' is empty")
    if not faults and not _SENTENCE.fullmatch(entry["breaks"]):
        faults.append(f"{name}: 'breaks' is no sentence: it needs a capital and a full stop")
    if not _NAME.fullmatch(name):
        faults.append(f"{name}: a name has only a-z, 0-9 and '-'")
    return faults


def _read_table(root, name):
    """(mutations, findings) of one file."""
    try:
        entries = tomllib.loads(read(root, name))
    except tomllib.TOMLDecodeError as error:
        return [], [Finding(name, 0, f"TOML: {error}")]
    mutations, findings = [], []
    for key, entry in entries.items():
        faults = _faults(key, entry)
        findings += [Finding(name, 0, fault) for fault in faults]
        if not faults:
            tests = tuple(entry["tests"])
            mutations.append(Mutation(**{**entry, "name": key, "table": name, "tests": tests}))
    return mutations, findings


def read_all(root=ROOT, names=None):
    """(mutations, findings) of all tables, in the order of the files."""
    if names is None:
        names = sorted(str(path.relative_to(root)) for path in (root / FOLDER).glob("*.toml"))
    mutations, findings = [], []
    for name in names:
        if name.startswith(f"{FOLDER}/") and name.endswith(".toml"):
            more, faults = _read_table(root, name)
            known = {mutation.name for mutation in mutations}
            findings += faults
            findings += [Finding(name, 0, f"{mutation.name}: another table has this name too")
                         for mutation in more if mutation.name in known]  # fmt: skip
            mutations += more
    return mutations, findings


def _why_stale(root, mutation):
    """Why a mutation does not apply to the tree; empty when it does."""
    for name in mutation.sources():
        if not (root / name).is_file():
            return f"{name} is not there"
    try:
        mutation.apply(read(root, mutation.file))
    except DoesNotApply as error:
        return f"{mutation.file}: {error}"
    return ""


def check(root, names):
    """Every mutation still applies to the tree. This is a rule of scripts/lint."""
    mutations, findings = read_all(root, names)
    for mutation in mutations:
        if why := _why_stale(root, mutation):
            findings.append(Finding(mutation.table, 0, f"{mutation.name} does not apply: {why}"))
    return findings
