# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`wan`: all-reduces between nine distant sites, over the network with which NetStorm was measured
(wan_network.py). Compares gradplane with each of its planners, and other designs over TCP: a
parameter server at one site, one at every site, a balanced tree (MLNET), pairs that a scheduler
makes (TSEngine), and Gloo's ring. It also has three sites of several hosts, each of which a sum
should leave only once.

`bound_s` is the packing bound. If the network is redrawn, it is that of the first draw, and
`over_oracle` is over the bound of a planner that has the best trees for each draw at once.
"""

import itertools
import os
import sys
import threading
import time

import contestants as peers
import emulated_lab
import harness
import meters
import report
import wan_cases as cases
import wan_contestants as wan_peers
import wan_network as network
from together import Contestants

DESCRIPTION = __doc__
SERVERS = ("tcp-server-cubic", "tcp-server-bbr")
FAPTS = ("gradplane-fapt-delay",)
label = cases.label
PLANNERS = ("star", "sharded", "fapt", "packed", "auto")
DRAWS = 40  # in a round; after the last one the network does not change any more
DRAWS_BETWEEN_ROUNDS = 10
REPEATS = 3
QUICK_REPEATS = 2
LIMIT_SECONDS = 60
QUICK_LIMIT_SECONDS = 10
ROUND_SECONDS = 600
SHOWN_LINKS = 3  # in a table; the JSON has all
# Modes for changing networks: the default, only the first plan, and auxiliary routes.
MODES = ("", "fixed", "routes")


def make_contestants(quick, of_case):
    """The contestants of the cases in the group of this one."""
    rates, paths = cases.rates_of(of_case), cases.paths_of(of_case)
    layout, roots = cases.layout_of(of_case), network.roots_by_time(rates)
    message_bytes = network.volume_bytes(cases.VOLUMES_MB[0])
    hosts = [layout.hosts_of(root)[0] for root in roots]
    several = cases.has_several_hosts(of_case)
    known = wan_peers.Known(network.yaml_section(rates, paths, message_bytes), hosts[0],
                            layout.site_of_host() if several else None)  # fmt: skip
    if several:
        return [*steady_contestants(True, known), peers.GlooContestant("cubic"),
                wan_peers.ServerContestant("cubic", hosts[0])]  # fmt: skip
    if of_case["redraw_s"]:
        ours = changing_contestants(known)
    else:
        ours = steady_contestants(quick, known)
    found = ours + tcp_contestants(("cubic",) if quick else ("cubic", "bbr"), roots[0])
    for word, host in (("middle", hosts[len(hosts) // 2]), ("worst", hosts[-1])):
        found.append(wan_peers.ServerContestant("cubic", host, name=f"server-{word}"))
    return found


def steady_contestants(quick, known):
    wanted = [(plan, "delay", "") for plan in PLANNERS]
    if not quick:
        wanted.append(("packed", "cubic", ""))
        wanted += [(plan, "bbr", "") for plan in ("packed", "fapt", "auto")]
        wanted += [(plan, "delay", "routes") for plan in ("packed", "fapt")]
    return [wan_peers.WanContestant(plan, known, controller, cases.STEADY_ROUND_KIB, mode)
            for plan, controller, mode in wanted]  # fmt: skip


def changing_contestants(known):
    wanted = [(plan, "delay", mode) for plan in ("packed", "fapt") for mode in MODES]
    wanted += [("packed", "cubic", mode) for mode in ("", "fixed")]
    wanted += [("packed", "bbr", ""), ("auto", "delay", "")]
    return [wan_peers.WanContestant(plan, known, controller, cases.CHANGING_ROUND_KIB, mode,
                                    follows=True)
            for plan, controller, mode in wanted]  # fmt: skip


def tcp_contestants(controls, best):
    stars = [wan_peers.parents_of_star(site) for site in range(1, network.SITES + 1)]
    balanced = [wan_peers.parents_of_balanced_tree(best)]
    found = []
    for cc in controls:
        found += [
            wan_peers.ServerContestant(cc, network.NAMES[best - 1]),
            wan_peers.trees("sharded", cc, stars),
            wan_peers.trees("balanced", cc, balanced),
            wan_peers.OverlayContestant("pairs", cc, "pairs", wan_peers.SLICE_BYTES,
                                        ("--root", best - 1)),
            peers.GlooContestant(cc),
        ]  # fmt: skip
    return found


class Redraws:
    """Changes the network to the next draw every `period_s`. The first round of every contestant
    begins with draw 0, and each further round DRAWS_BETWEEN_ROUNDS draws later."""

    def __init__(self, lab, period_s, message_bytes):
        self._lab, self._period_s, self._bytes = lab, period_s, message_bytes
        self._thread = self._draws = None
        self._over = threading.Event()

    def begin(self, number, at_ns):
        first = (number - 1) * DRAWS_BETWEEN_ROUNDS
        self._draws = [network.draw(first + later) for later in range(DRAWS)]
        set_rates(self._lab, self._draws[0])
        self._over.clear()
        self._thread = threading.Thread(target=self._run, args=(at_ns,), daemon=True)
        self._thread.start()

    def _run(self, at_ns):
        for later, rates in enumerate(self._draws[1:], 1):
            at_s = at_ns / 1e9 + later * self._period_s
            if self._over.wait(max(0.0, at_s - time.monotonic())):
                return
            set_rates(self._lab, rates)

    def stop(self):
        """Stops the changes, if they have begun."""
        self._over.set()
        if self._thread:
            self._thread.join()

    def end(self):
        self.stop()
        return network.bound_over_draws(self._draws, self._period_s, self._bytes)


def set_rates(lab, rates):
    for link, direction, settings in network.changes(rates, None):
        lab.set(link, direction, settings)


def measure_case(lab, of_case, up, options, machine, progress):
    redraws, warm_up = None, 1
    set_rates(lab, cases.rates_of(of_case))
    if of_case["redraw_s"]:
        redraws, warm_up = Redraws(lab, cases.period_s(of_case), of_case["bytes"]), 0
    return harness.run_case(
        lab, up, machine, of_case["bytes"],
        options.repeats or (QUICK_REPEATS if options.quick else REPEATS), warm_up, progress,
        QUICK_LIMIT_SECONDS if options.quick else LIMIT_SECONDS, ROUND_SECONDS, redraws=redraws,
    )  # fmt: skip


def measure_group(group, options, machine, done):
    """Measures cases with the same paths. Contestants are started once for all. Calls `done` with
    the entries of each case. Returns {contestant: why all its entries are void}."""
    chosen = [c for c in make_contestants(options.quick, group[0])
              if options.contestant.search(c.name)]  # fmt: skip
    described = network.description(cases.rates_of(group[0]), cases.paths_of(group[0]),
                                    cases.layout_of(group[0]))  # fmt: skip
    with emulated_lab.EmulatedLab(f"wan{os.getpid() % 100000}", described) as lab:
        with Contestants(lab, chosen, {"rate_bits_per_second": network.ACCESS_RATE_BITS},
                         options.logs / "wan") as contestants:  # fmt: skip
            for of_case in group:
                up = contestants.start_missing()
                say(f"{cases.label(of_case)}: {len(up)} contestants are up")
                series = measure_case(lab, of_case, up, options, machine, told_by(of_case))
                for one in series:
                    if one.failure:
                        contestants.give_up(one.contestant)
                series += [
                    harness.Series(n, failure=w) for n, w in contestants.failures.items()
                ]
                done(with_ratios([
                    {**harness.result(s, of_case, cases.bound_s(of_case), machine.cores),
                     **progress_of(s.contestant, up)}
                    for s in series
                ]))  # fmt: skip
    return contestants.troubles


def progress_of(name, contestants):
    """The progress of a contestant in its last round, if it was followed."""
    found = [c.progress for c in contestants if c.name == name and getattr(c, "progress", None)]
    return {"progress": found[0], "round_kib": cases.CHANGING_ROUND_KIB} if found else {}


def told_by(of_case):
    begun = time.monotonic()

    def progress(name, number):
        say(f"{cases.label(of_case)}: {name}, round {number + 1}, {time.monotonic() - begun:.0f} s")

    return progress


def void(entries, group, troubles):
    for entry in entries:
        if entry["case"] in group and entry["contestant"] in troubles and "failure" not in entry:
            entry.update(correct=False, failure=troubles[entry["contestant"]])


def with_ratios(entries):
    """Adds to the entries of one case how many times as fast they are as the better server over
    TCP, and as fapt."""
    good = [e for e in entries if "failure" not in e]
    for key, names in (("over_server", SERVERS), ("over_fapt", FAPTS)):
        best_s = min((e["median_s"] for e in good if e["contestant"] in names), default=None)
        for entry in good:
            if best_s:
                entry[key] = best_s / entry["median_s"]
    return entries


def say(text):
    print(text, file=sys.stderr, flush=True)


def settings(options):
    rates = network.draw(0)
    few = network.draw(0, network.SEVERAL_HOSTS.links)
    return {
        "quick": options.quick,
        "repeats": options.repeats,
        "rates": {f"{a}-{b}": rate for (a, b), rate in rates.items()},
        "rates_of_several_hosts": {f"{a}-{b}": rate for (a, b), rate in few.items()},
        "paths": {f"{a}-{b}": path for (a, b), path in network.draw_paths().items()},
        "roots_by_time": network.roots_by_time(rates),
    }


def run(options):
    """The entries of all chosen cases."""
    wanted = [c for c in cases.make_cases(options.quick) if options.case.search(cases.label(c))]
    entries = []

    def done(of_a_case):
        entries.extend(of_a_case)
        if options.json:  # results are kept even if a later case fails
            report.write_json(options.json, report.document("wan", entries, settings(options)))

    with meters.Machine() as machine:
        for _, group in itertools.groupby(sorted(wanted, key=cases.group_of), cases.group_of):
            cases_of_group = list(group)
            troubles = measure_group(cases_of_group, options, machine, done)
            void(entries, cases_of_group, troubles)
            done([])
    return entries


def ratio(key):
    return lambda entry: f"{entry[key]:.2f}" if entry.get(key) else "-"


def copies_by_link(entry):
    """The copies on each link, forward / backward, if there are few links."""
    links = entry.get("copies_by_link", {})
    if not 0 < len(links) <= SHOWN_LINKS:
        return "-"
    return ", ".join(
        f"{link.removeprefix(network.LINK_PREFIX)}: {there:.2f} / {back:.2f}"
        for link, (there, back) in links.items()
    )


COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("runs", lambda e: str(e["runs"])),
    ("median s", lambda e: f"{e['median_s']:.2f}"),
    ("worst s", lambda e: f"{e['p99_s']:.2f}"),
    ("over bound", ratio("over_bound")),
    ("over oracle", ratio("over_oracle")),
    ("epochs", lambda e: "-" if e.get("plans") is None else str(e["plans"])),
    ("x server", ratio("over_server")),
    ("x fapt", ratio("over_fapt")),
    ("sent again", lambda e: f"{e['retransmitted_over_needed'] * 100:.1f} %"),
    ("MB on wire", lambda e: f"{e['wire_bytes'] / 1e6:.1f}"),
    ("copies between sites", ratio("copies_between_sites")),
    ("of them by link", copies_by_link),
    ("deepest queue", lambda e: f"{e['deepest_queue_bytes'] / 1024:.0f} KiB"),
    *report.CPU_COLUMNS,
)


def draw(entries, folder):
    import wan_plots  # only here, so that tables need no matplotlib

    return wan_plots.draw_all(entries, folder, cases.label)
