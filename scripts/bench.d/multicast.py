# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`multicast`: eight hosts with links of unequal rates behind a switch that snoops IGMP, floods
groups, or drops them (multicast_lab.py).

- Exchanges (docs/selective.md), which end when all ranks have the updates that are sent to them.
  Receivers that the planner chooses by the links are compared with random ones (Orpheus) and with
  all to all. Each contestant goes through its selections, one in each round. `mean_s` is the mean
  over whole cycles, and each cycle is checked: each update has its receivers, and each pair meets.
- all_reduce, and a broadcast from the first rank, compared with Gloo.

`bound_s` is the least time that the links need if the switch makes the copies, whichever nodes sum,
and whatever selection with a share of 30 % is used (multicast_bounds.py). `over_own_bound` is over
the time that the links need for the contestant's own selections and kind of copies.
"""

import itertools
import os
import random
import re
import statistics
import sys
import time

import cases as common
import harness
import meters
import multicast_bounds as bounds
import multicast_contestants as taking_part
import report
from bounds import wire_bytes
from multicast_lab import MulticastLab
from together import Contestants

DESCRIPTION = __doc__
HOSTS = 8
LOW_MBIT, HIGH_MBIT, RATE_SEED = 20, 100, 1
BYTES = {"exchange": 512 * common.KIB, "all_reduce": common.MIB, "broadcast": common.MIB}
# A host without a rank.
COORDINATOR, COORDINATOR_RATE_BITS = "c0", 10**9
SWITCHES = ("snoop", "flood", "drop")
SWITCH_WORDS = {"snoop": "snoops", "flood": "floods", "drop": "drops groups"}
BOUND_SHARE = 0.3
# How many whole cycles of selections are measured. Trials of groups are in the rounds before.
CYCLES = 3
QUICK_CYCLES = 1
CYCLE = taking_part.FRESHNESS + 1
WARM_UP = 2
ROUND_SECONDS = 60
# The contestants behind switches that do not snoop, which are enough to show the costs.
ELSEWHERE = r"gradplane-(p30|sharded|star)(-multicast)?"
QUICK = r"gradplane-(p30|p30-random|all|sharded(-multicast)?)"


def case(op, switch):
    return {
        "op": op,
        "switch": switch,
        "hosts": HOSTS,
        "bytes": BYTES[op],
        "rates_bits_per_second": bounds.draw_rates(HOSTS, LOW_MBIT, HIGH_MBIT, RATE_SEED),
        "rate_seed": RATE_SEED,
    }


def make_cases(quick):
    ops = (taking_part.EXCHANGE, *taking_part.COLLECTIVES)
    return [case(op, switch) for switch in SWITCHES[: 1 if quick else None] for op in ops]


def label(of_case):
    rates = [rate // 10**6 for rate in of_case["rates_bits_per_second"]]
    return (f"{of_case['op']} of {common.size_text(of_case['bytes'])}, {of_case['hosts']} hosts, "
            f"{min(rates)}-{max(rates)} Mbit/s, the switch {SWITCH_WORDS[of_case['switch']]}"
            )  # fmt: skip


def group_of(of_case):
    """A key that is equal for cases in which the same contestants can stay up."""
    return SWITCHES.index(of_case["switch"]), of_case["op"] == taking_part.EXCHANGE


def make_contestants(of_case):
    exchanges = of_case["op"] == taking_part.EXCHANGE
    return taking_part.exchanging() if exchanges else taking_part.summing()


def is_asked(name, of_case, options):
    asked = [options.contestant.search(name)]
    if of_case["switch"] != "snoop":
        asked.append(re.fullmatch(ELSEWHERE, name))
    if options.quick:
        asked.append(re.fullmatch(QUICK, name))
    return all(asked)


def bound_s(of_case):
    rates, message_bytes = of_case["rates_bits_per_second"], of_case["bytes"]
    if of_case["op"] == "all_reduce":
        return bounds.allreduce_s(rates, message_bytes)
    if of_case["op"] == "broadcast":
        return bounds.broadcast_s(rates, 0, message_bytes)
    receivers = bounds.least_receivers(BOUND_SHARE, len(rates))
    return bounds.exchange_s(rates, receivers, taking_part.FRESHNESS, message_bytes, True)


class Turns:
    """The rounds of one contestant in a case, and the senders in each of them."""

    def __init__(self, lab, contestant, of_case, machine):
        self._lab, self._contestant = lab, contestant
        self._case, self._machine = of_case, machine
        self.series = harness.Series(contestant.name)
        self.senders = []  # for each round that counts, if it is an exchange

    def take(self, step):
        """Makes one round, and repeats it while ranks begin late. A step below 0 is a warm-up."""
        mine = self.series
        if mine.failure:
            return
        self._contestant.step = step % CYCLE
        late = True
        while late and mine.discarded_late < harness.MAX_DISCARDED:
            seed = harness.FIRST_SEED + len(mine.rounds) + mine.discarded_late
            done, late = harness.one_round(
                self._lab, self._contestant, self._machine, seed, self._case["bytes"],
                ROUND_SECONDS,
            )  # fmt: skip
            if done.error:
                mine.failure = done.error
                return
            mine.discarded_late += late
        if step >= 0:
            mine.accepted_late += late
            mine.rounds.append(done)
            self.senders.append(getattr(self._contestant, "senders", []))

    def check(self):
        if not self.series.failure and hasattr(self._contestant, "check"):
            try:
                for begin in range(0, len(self.senders), CYCLE):
                    self._contestant.check(self.senders[begin : begin + CYCLE])
            except taking_part.WrongSelection as wrong:
                self.series.failure = str(wrong)


def entry_of(turns, contestant, of_case, cores):
    entry = harness.result(turns.series, of_case, bound_s(of_case), cores)
    if "failure" in entry:
        return entry
    rounds, once = turns.series.rounds, wire_bytes(of_case["bytes"])
    uplinks = {
        host: statistics.mean(done.uplink_bytes[host] for done in rounds) / once
        for host in rounds[0].uplink_bytes if host != COORDINATOR
    }
    mean_s = statistics.mean(done.seconds for done in rounds)
    entry.update(
        mean_s=mean_s,
        over_bound=mean_s / entry["bound_s"],
        uplink_copies=uplinks,
        cpu_seconds_of_round=statistics.mean(sum(d.cpu_seconds.values()) for d in rounds),
        queue_drops=sum(done.queue_drops for done in rounds),
    )
    if of_case["op"] == taking_part.EXCHANGE:
        entry.update(exchange_result(entry, turns.senders, contestant.multicast))
    return entry


def exchange_result(entry, all_senders, multicast):
    rates, message_bytes = entry["case"]["rates_bits_per_second"], entry["case"]["bytes"]
    replicated = multicast and entry["to_groups_share"] > 0
    own_s = statistics.mean(
        bounds.selection_s(rates, senders, message_bytes, replicated) for senders in all_senders
    )
    received = [bounds.received_copies(senders) for senders in all_senders]
    return {
        "receivers": statistics.mean(itertools.chain.from_iterable(received)),
        "senders": all_senders,
        "own_bound_s": own_s,
        "over_own_bound": entry["mean_s"] / own_s,
    }


def with_ratios(entries):
    """Adds to the entries of one case how many times as fast they are as random receivers, as all
    to all, as the same without groups, and as Gloo. All else is equal."""
    times = {e["contestant"]: e["mean_s"] for e in entries if "failure" not in e}
    for entry in (e for e in entries if "failure" not in e):
        alone = entry["contestant"].removesuffix(taking_part.SUFFIX)
        name = alone.removesuffix(taking_part.MEASURED)
        suffix = entry["contestant"][len(alone) :]
        others = {
            "over_random": f"{name}-random{suffix}",
            "over_all": f"gradplane-all{suffix}",
            "over_unicast": alone,
            "over_gloo": "gloo-cubic",
        }
        for key, other in others.items():
            if other in times and other != entry["contestant"]:
                entry[key] = times[other] / entry["mean_s"]
    return entries


def measure_case(lab, of_case, up, options, machine):
    cycles = options.repeats or (QUICK_CYCLES if options.quick else CYCLES)
    order = random.Random(harness.FIRST_SEED)
    turns = {}
    for contestant in up:
        contestant.op = of_case["op"]
        turns[contestant.name] = Turns(lab, contestant, of_case, machine)
    begun = time.monotonic()
    for step in range(-WARM_UP, cycles * CYCLE):
        for name in order.sample(list(turns), len(turns)):
            turns[name].take(step)
        say(f"{label(of_case)}: round {step + 1}, {time.monotonic() - begun:.0f} s")
    for one in turns.values():
        one.check()
    return [entry_of(turns[c.name], c, of_case, machine.cores) for c in up]


def measure_group(group, options, machine, done):
    """Measures cases with the same contestants. Calls `done` with the entries of each case. Returns
    {contestant: why all its entries are void}."""
    chosen = [c for c in make_contestants(group[0]) if is_asked(c.name, group[0], options)]
    rates = group[0]["rates_bits_per_second"]
    by_host = {COORDINATOR: COORDINATOR_RATE_BITS}
    by_host |= {f"h{number}": rate for number, rate in enumerate(rates)}
    with MulticastLab(f"mc{os.getpid() % 100000}", by_host, group[0]["switch"]) as lab:
        with Contestants(lab, chosen, {"rate_bits_per_second": by_host},
                         options.logs / "multicast") as contestants:  # fmt: skip
            for of_case in group:
                up = contestants.start_missing()
                say(f"{label(of_case)}: {len(up)} contestants are up")
                entries = measure_case(lab, of_case, up, options, machine)
                for entry in entries:
                    if "failure" in entry:
                        contestants.give_up(entry["contestant"])
                failed = [harness.Series(n, failure=w) for n, w in contestants.failures.items()]
                entries += [harness.result(s, of_case, bound_s(of_case), machine.cores)
                            for s in failed]  # fmt: skip
                done(with_ratios(entries))
    return contestants.troubles


def void(entries, group, troubles):
    for entry in entries:
        if entry["case"] in group and entry["contestant"] in troubles and "failure" not in entry:
            entry.update(correct=False, failure=troubles[entry["contestant"]])


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(options):
    """The entries of all chosen cases."""
    wanted = [c for c in make_cases(options.quick) if options.case.search(label(c))]
    entries = []

    def done(of_a_case):
        entries.extend(of_a_case)
        if options.json:  # results are kept even if a later case fails
            settings = {"quick": options.quick, "repeats": options.repeats}
            report.write_json(options.json, report.document("multicast", entries, settings))

    with meters.Machine() as machine:
        for _, group in itertools.groupby(sorted(wanted, key=group_of), group_of):
            of_group = list(group)
            void(entries, of_group, measure_group(of_group, options, machine, done))
            done([])
    return entries


def ratio(key):
    return lambda entry: f"{entry[key]:.2f}" if entry.get(key) else "-"


def uplinks(entry):
    copies = entry["uplink_copies"].values()
    return f"{max(copies):.2f} / {statistics.mean(copies):.2f}"


COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("runs", lambda e: str(e["runs"])),
    ("mean ms", lambda e: report.milliseconds(e["mean_s"])),
    ("worst ms", lambda e: report.milliseconds(e["p99_s"])),
    ("over bound", ratio("over_bound")),
    ("over own bound", ratio("over_own_bound")),
    ("receivers", ratio("receivers")),
    ("x random", ratio("over_random")),
    ("x all", ratio("over_all")),
    ("x unicast", ratio("over_unicast")),
    ("x gloo", ratio("over_gloo")),
    ("busiest / mean uplink, copies", uplinks),
    ("to groups", lambda e: f"{e['to_groups_share'] * 100:.0f} %"),
    ("sent again", lambda e: f"{e['retransmitted_over_needed'] * 100:.1f} %"),
    ("CPU s of a round", lambda e: f"{e['cpu_seconds_of_round']:.2f}"),
    ("busiest / mean host", report.hosts_text),
    ("CPU", report.machine_text),
)


def draw(entries, folder):
    import multicast_plots  # only here, so that tables need no matplotlib

    return multicast_plots.draw_all(entries, folder, label)
