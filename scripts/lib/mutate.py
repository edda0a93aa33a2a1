# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Chooses mutations and runs them. scripts/mutate starts it; see there."""

import argparse
import collections
import queue
import random
import subprocess
import sys
import threading
import time

import mutate_run
import mutations
from sources import ROOT


def parse_arguments(known):
    parser = argparse.ArgumentParser(prog="scripts/mutate")
    areas = sorted({mutation.area for mutation in known})
    parser.add_argument("--list", action="store_true", help="list them and what each breaks")
    parser.add_argument("--check", action="store_true", help="only see that each still applies")
    parser.add_argument("--area", nargs="+", metavar="AREA", choices=areas, help=", ".join(areas))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only those of these names")
    parser.add_argument("--changed", nargs="?", const="main", metavar="REF",
                        help="only those whose code or test differs from REF (main)")  # fmt: skip
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them")
    parser.add_argument("--seed", type=int, help="which of them --sample draws")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="in N copies of the tree at a time (default: 1)")  # fmt: skip
    arguments = parser.parse_args()
    names = {mutation.name for mutation in known}
    for name in arguments.only or ():
        if name not in names:
            parser.error(f"there is no mutation '{name}'; see --list")
    return arguments


def changed_files(ref):
    """Files that have changed since this branch left `ref`, and files that are not committed."""
    # In a container the checkout may belong to another user.
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]

    def ask(*words):
        done = subprocess.run([*git, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"scripts/mutate: --changed {ref}: {done.stderr.strip()}")
        return done.stdout.split()

    return set(ask("diff", "--name-only", *ask("merge-base", ref, "HEAD")))


def choose(known, arguments):
    chosen = known
    if arguments.area:
        chosen = [mutation for mutation in chosen if mutation.area in arguments.area]
    if arguments.only:
        chosen = [mutation for mutation in chosen if mutation.name in arguments.only]
    if arguments.changed:
        changed = changed_files(arguments.changed)
        chosen = [mutation for mutation in chosen if set(mutation.sources()) & changed]
    if arguments.sample is not None and arguments.sample < len(chosen):
        seed = random.randrange(10**6) if arguments.seed is None else arguments.seed
        print(f"drawn with --sample {arguments.sample} --seed {seed}")
        drawn = random.Random(seed).sample(sorted(m.name for m in chosen), arguments.sample)
        chosen = [mutation for mutation in chosen if mutation.name in drawn]
    return chosen


def print_list(chosen):
    for mutation in chosen:
        print(f"{mutation.area:11} {mutation.name:44} {mutation.breaks}")
    print(f"{len(chosen)} mutations")


class Runs:
    """The mutations that wait for a copy of the tree, and the outcomes of the others."""

    def __init__(self, chosen):
        self._waiting = queue.SimpleQueue()
        for mutation in sorted(chosen, key=lambda mutation: mutation.file):
            self._waiting.put(mutation)
        self.outcomes = collections.Counter()
        self.bad = []
        self.trouble = None
        self._lock = threading.Lock()

    def work(self, tree):
        while self.trouble is None:
            try:
                mutation = self._waiting.get_nowait()
            except queue.Empty:
                return
            begun = time.monotonic()
            try:
                outcome = tree.run(mutation)
            except Exception as error:  # the main thread reports it
                self.trouble = error
                return
            self._note(mutation, outcome, time.monotonic() - begun)

    def _note(self, mutation, outcome, seconds):
        with self._lock:
            self.outcomes[outcome.verdict] += 1
            print(f"{outcome.verdict:9} {mutation.area}/{mutation.name} ({outcome.detail}; "
                  f"{seconds:.0f} s in all)", flush=True)  # fmt: skip
            if outcome.verdict in mutate_run.BAD_VERDICTS:
                self.bad.append((mutation, outcome))


def run_all(chosen, jobs):
    begun = time.monotonic()
    trees = []
    for number in range(max(1, min(jobs, len(chosen)))):
        tree = mutate_run.Tree(
            mutate_run.KEPT / f"tree{number}", lambda text: print(text, flush=True)
        )
        tree.folder.mkdir(parents=True, exist_ok=True)
        tree.update()
        tree.configure()
        tree.prepare(chosen)
        trees.append(tree)
    ready = time.monotonic()
    print(f"all of their tests pass without a mutation; {ready - begun:.0f} s", flush=True)
    runs = Runs(chosen)
    workers = [threading.Thread(target=runs.work, args=(tree,)) for tree in trees]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if runs.trouble is not None:
        raise runs.trouble
    for mutation, outcome in runs.bad:
        print(f"\n{outcome.verdict}: {mutation.area}/{mutation.name}: {mutation.breaks}\n"
              f"  {mutation.file}: '{mutation.text}' becomes '{mutation.becomes}'\n"
              f"  {outcome.detail}")  # fmt: skip
    counts = [f"{runs.outcomes[verdict]} {verdict}" for verdict in mutate_run.VERDICTS]
    print(f"{', '.join(counts)}; {time.monotonic() - ready:.0f} s")
    return 1 if runs.bad else 0


def main():
    known, faults = mutations.read_all()
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        return 1
    arguments = parse_arguments(known)
    if arguments.check:
        findings = mutations.check(ROOT, None)
        for finding in findings:
            print(finding)
        print(f"{len(known) - len(findings)} of {len(known)} mutations apply to the tree")
        return 1 if findings else 0
    chosen = choose(known, arguments)
    if arguments.list or not chosen:
        print_list(chosen)
        return 0
    try:
        return run_all(chosen, arguments.jobs)
    except mutate_run.CannotBegin as error:
        print(f"mutate: cannot begin: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
