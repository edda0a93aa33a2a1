# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Runs one benchmark. scripts/bench starts it; see there."""

import argparse
import contextlib
import os
import pathlib
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "scripts/lib")]
import cases  # noqa: E402
import emulated_lab  # noqa: E402
import harness  # noqa: E402
import meters  # noqa: E402
import netlab  # noqa: E402
import report  # noqa: E402
import shown  # noqa: E402
import victim as victims  # noqa: E402
from together import Contestants  # noqa: E402

# Each contestant has time for so many rounds at the bound, however large a case is.
LIMIT_BOUNDS = 3
# How long the victim flow is measured in a case before the first round.
VICTIM_IDLE_SECONDS = 1


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("name", choices=shown.NAMES)
    parser.add_argument("--quick", action="store_true", help="few cases, under two minutes")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results here")
    parser.add_argument("--plots", type=pathlib.Path, metavar="FOLDER", help="draw plots here")
    parser.add_argument("--case", type=re.compile, default=re.compile(""), metavar="REGEX",
                        help="only cases whose label matches")  # fmt: skip
    parser.add_argument("--contestant", type=re.compile, default=re.compile(""), metavar="REGEX",
                        help="only contestants whose name matches")  # fmt: skip
    parser.add_argument("--repeats", type=int, help="measured rounds of each contestant")
    parser.add_argument("--logs", type=pathlib.Path, default=ROOT / ".cache/bench")
    return parser.parse_args()


class Progress:
    """Shows progress: on a terminal in one line that is rewritten, else in a line for each case."""

    def __init__(self):
        self.is_live = sys.stderr.isatty()
        self._begun = time.monotonic()

    def say(self, text):
        end = "\r" if self.is_live else "\n"
        print(f"\r\033[K{text}" if self.is_live else text, end=end, file=sys.stderr, flush=True)

    def round(self, where):
        def say(contestant, number):
            if self.is_live:
                seconds = time.monotonic() - self._begun
                self.say(f"{where}: {contestant}, round {number + 1}, {seconds:.0f} s")

        return say

    def end(self):
        if self.is_live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def set_links(lab, case):
    """Sets the links of a lab to those of another case with as many hosts."""
    for host in cases.network(case, list(lab.hosts))["hosts"]:
        for direction in ("up", "down"):
            lab.set(host["name"], direction, {"loss": "0 %", **host[direction]})


def is_asked(module, contestant, case):
    return not hasattr(module, "is_asked") or module.is_asked(contestant.name, case)


def chosen_of(module, group, options):
    """The contestants that take part in some case of the group."""
    return [
        contestant
        for contestant in module.make_contestants(options.quick)
        if options.contestant.search(contestant.name)
        and any(is_asked(module, contestant, case) for case in group)
    ]


@contextlib.contextmanager
def lab_of(module, case):
    """The emulated network of a case, and the victim flow through it if the module wants one."""
    names = [f"h{index}" for index in range(case["hosts"])]
    network = cases.network(case, names)
    has_victim = getattr(module, "HAS_VICTIM", False)
    if has_victim:
        link = {"delay": network["hosts"][0]["up"]["delay"]}
        network["hosts"].append({"name": victims.HOST, "up": link, "down": link})
    run = f"bench{os.getpid() % 100000}"
    with emulated_lab.EmulatedLab(run, network) as lab, contextlib.ExitStack() as stack:
        victim = None
        if has_victim:
            sender = lab.hosts.pop(victims.HOST)  # no contestant's
            server = lab.hosts[names[0]]
            victim = stack.enter_context(
                victims.VictimFlow(sender.namespace, server.namespace, server.kernel_address)
            )
        yield lab, victim


def measure(module, group, options, machine, progress, done):
    """Measures cases with the same hosts, one after the other. Contestants are started once for
    all. Calls `done` with the entries of each case. Returns {contestant: why its entries are
    void}."""
    quick = options.quick
    chosen = chosen_of(module, group, options)
    with lab_of(module, group[0]) as (lab, victim):
        with Contestants(lab, chosen, group[0], options.logs) as contestants:
            for case in group:
                set_links(lab, case)
                progress.say(f"{cases.label(case)}: starting")
                up = [o for o in contestants.start_missing() if is_asked(module, o, case)]
                idle = victim.idle(VICTIM_IDLE_SECONDS) if victim else victims.Sample([], 0)
                bound_s = module.bound_s(case)
                series = harness.run_case(
                    lab, up, machine, case["bytes"],
                    options.repeats or (module.QUICK_REPEATS if quick else module.REPEATS),
                    1 if quick else module.WARM_UP,
                    progress.round(cases.label(case)),
                    max(LIMIT_BOUNDS * bound_s,
                        module.QUICK_LIMIT_SECONDS if quick else module.LIMIT_SECONDS),
                    getattr(module, "ROUND_SECONDS", harness.ROUND_SECONDS),
                    victim,
                )  # fmt: skip
                for one in series:
                    if one.failure:  # its failure must not affect the next case
                        contestants.give_up(one.contestant)
                failed = [harness.Series(n, failure=w) for n, w in contestants.failures.items()]
                quiet = victims.summary(idle.delays_s, "victim_idle")
                done([{**harness.result(s, case, bound_s, machine.cores), **quiet}
                      for s in series + failed])  # fmt: skip
    return contestants.troubles


def hosts_of(case):
    return case["hosts"]


def make_void(entries, group, troubles):
    for entry in entries:
        if entry["case"] in group and entry["contestant"] in troubles:
            kept = ("contestant", "case", "bound_s", "runs")
            kept = {key: entry[key] for key in kept}
            entry.clear()
            entry.update(kept, correct=False, failure=troubles[kept["contestant"]])


def measure_all(module, options):
    """The entries of all chosen cases."""
    progress = Progress()
    entries = []
    with meters.Machine() as machine:

        def done(of_a_case):
            entries.extend(of_a_case)
            if options.json:  # results are kept even if a later case fails
                write(options, entries)

        wanted = [c for c in module.make_cases(options.quick)
                  if options.case.search(cases.label(c))]  # fmt: skip
        group_of = getattr(module, "group_of", hosts_of)
        for key in sorted({group_of(case) for case in wanted}):
            group = [case for case in wanted if group_of(case) == key]
            make_void(entries, group, measure(module, group, options, machine, progress, done))
            done([])
    progress.end()
    return entries


def write(options, entries):
    settings = {
        "quick": options.quick,
        "repeats": options.repeats,
        "first_seed": harness.FIRST_SEED,  # of the first round of a case; each round has the next
        "tcp": "congestion control in the contestant's name; socket buffers autotuned",
    }
    report.write_json(options.json, report.document(options.name, entries, settings))


def known_cases(benchmark, options):
    """For a message: the cases that --case could have named."""
    try:
        made = benchmark.module.make_cases(options.quick)
    except (AttributeError, TypeError):
        return ""
    names = "".join(f"\n  {benchmark.label(case)}" for case in made)
    return f"; the cases{' with --quick' if options.quick else ''} are:{names}"


def main():
    options = parse_arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _: sys.exit(128 + caught))
    benchmark = shown.Shown(options.name)
    if hasattr(benchmark.module, "run"):  # a benchmark that does not consist of rounds
        entries = benchmark.module.run(options)
    else:
        entries = measure_all(benchmark.module, options)
    if not entries:
        sys.exit("bench: no case matches --case, or no contestant --contestant"
                 + known_cases(benchmark, options))
    print(benchmark.tables(entries))
    for path in benchmark.draw(entries, options.plots) if options.plots else []:
        print(f"plot: {path}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (harness.BenchError, netlab.LabError) as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
