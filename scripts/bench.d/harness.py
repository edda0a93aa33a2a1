# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Runs contestants in turn over one network, checks their results, and summarises them."""

import dataclasses
import random
import statistics
import time

import bounds
import meters
import victim as victims

# How long the contestants of one host may take to start, on a slow machine.
START_SECONDS_PER_HOST = 10
ROUND_SECONDS = 120
# So many rounds are measured, however long they take.
LEAST_ROUNDS = 2
# A rank may begin late by LATE_NS, or by LATE_SHARE of the round if that is longer. A round with a
# later rank is run again with more lead.
LATE_NS = 2_000_000
LATE_SHARE = 0.02
LEAD_SECONDS = 0.05
PREPARED_BYTES_PER_SECOND = 100e6
MAX_LEAD_FACTOR = 16
MAX_DISCARDED = 20
FIRST_SEED = 1000
CLOSES = ("rounds_closed_early", "rounds_closed_deadline")
COUNTED = (*CLOSES, "blocks_to_groups")
# The time of a turn beside its round: reading meters, waking up, checking.
TURN_SECONDS = 0.3


class BenchError(Exception):
    """Ends a benchmark. The message says what is wrong and where to look."""


@dataclasses.dataclass
class Round:
    """One synchronisation of one contestant."""

    seconds: float
    correct: bool
    spread: float  # last over first end of a rank
    push_spread: float  # last over first end of a sender's push; None: not known
    cpu_seconds: dict  # per host
    busy_core_seconds: float
    busy_of_seconds: float
    wire_bytes: int  # that left the hosts
    needed: int  # blocks or segments with data, each counted once
    retransmitted: int
    deepest_queue_bytes: int
    queue_drops: int  # frames that found a queue full
    late_frames: int  # frames that the emulated network delivered over a millisecond too late
    latest_frame_us: float  # the largest delay by which it delivered a frame too late
    delivered_frames: int
    lost_by_switch: int  # frames that the network lost although it should not have
    uplink_bytes: dict = dataclasses.field(default_factory=dict)  # of wire_bytes, by host
    blocks_to_groups: int = 0  # gradplane's blocks that were sent once for several receivers
    # Of each link between sites, forward and backward.
    site_link_bytes: dict = dataclasses.field(default_factory=dict)
    missing_share: float | None = None  # of the ranks' blocks; None: the ranks do not say
    worst_missing_share: float | None = None  # of one rank's blocks of one tensor
    # gradplane's rounds that did not wait for every block. A long message has several rounds.
    rounds_closed_early: int = 0
    rounds_closed_deadline: int = 0
    sender_spread: float | None = None  # last over first arrival of a worker's last data
    # The victim flow's packets through the port of the first host, which were sent in the round.
    victim_delays_s: list = dataclasses.field(default_factory=list)
    victim_lost: int = 0
    plans: int | None = None  # how many gradplane's coordinator made after the first one
    # If the network changes during a round: the bound of a planner that knows all changes.
    oracle_s: float | None = None
    error: str = ""


@dataclasses.dataclass
class Series:
    """All measured rounds of one contestant in one case."""

    contestant: str
    rounds: list = dataclasses.field(default_factory=list)
    discarded_late: int = 0
    accepted_late: int = 0  # rounds that were accepted although ranks began late each time
    failure: str = ""


def failed_round(error):
    empty = {field.name: 0 for field in dataclasses.fields(Round)}
    lists = {name: {} for name in ("cpu_seconds", "uplink_bytes", "site_link_bytes")}
    lists["victim_delays_s"] = []
    return Round(**{**empty, **lists, "correct": False, "error": error})


def push_spread(answers, at_ns):
    """The spread of pushes by the answer of a server that says when each push had come; else None.
    """
    for answer in answers:
        ends = [end - at_ns for end in answer.get("first_end_ns") or [] if end]
        if ends:
            return max(ends) / max(1, min(ends))
    return None


def sender_spread(links, contestant, at_ns):
    """The spread of pushes to a server, by the network's counters; None if there is no server."""
    if not contestant.first_host_is_server:
        return None
    ends = [links[w.name]["up"]["last_data_arrival_ns"] - at_ns for w in contestant.workers]
    return max(ends) / min(ends) if min(ends) > 0 else None


def missing(answers):
    """The fields of a Round that say what the sums lack. All ranks have the same sums."""
    keys = ("missing_share", "worst_missing_share")
    said = [answer for answer in answers if all(key in answer for key in keys)]
    return {key: max(answer[key] for answer in said) for key in keys} if said else {}


def judge(answers, at_ns):
    """(seconds, spread, correct, late, error) of the answers of all ranks to one command."""
    errors = [str(answer["error"]) for answer in answers if "error" in answer]
    if errors:
        return None, None, False, False, errors[0]
    ranks = [answer for answer in answers if "end_ns" in answer]
    silent = [a.get("rank") for a in answers if "end_ns" not in a and a.get("rank") != "server"]
    if not ranks or silent:
        return None, None, False, False, f"no end from rank {silent or 'of any'}"
    ends = [answer["end_ns"] - at_ns for answer in ranks]
    late_ns = max(a["start_ns"] for a in answers if "start_ns" in a) - at_ns
    late = late_ns > max(LATE_NS, LATE_SHARE * max(ends))
    correct = all(answer.get("correct", answer not in ranks) is True for answer in answers)
    crcs = {answer["crc"] for answer in ranks if answer.get("crc")}
    # A round is only correct if every replica has the same bits.
    return max(ends) / 1e9, max(ends) / min(ends), correct and len(crcs) <= 1, late, ""


class Meters:
    """Readings before and after a round."""

    def __init__(self, lab, contestant, machine, victim=None):
        self._lab, self._contestant, self._machine = lab, contestant, machine
        self._victim = victim
        self._namespaces = [host.namespace for host in lab.hosts.values()]

    def begin(self):
        # This wakes daemons, so it comes before the meters are read.
        self._counters = self._contestant.counters()
        self._tcp = meters.tcp_segments(self._namespaces)
        self._lab.reset()
        self._cpu = meters.cpu_seconds_by_namespace(self._namespaces)
        self._switch_cpu = self._lab.stats()["switch"].get("cpu_seconds", 0.0)

    def end(self, at_ns, seconds, answers):
        """The fields of a Round that come from meters."""
        end_ns = at_ns + int(seconds * 1e9)
        stats = self._lab.stats()
        busy, of_seconds = self._machine.busy_core_seconds(at_ns, end_ns)
        cpu = meters.cpu_seconds_by_namespace(self._namespaces)
        own = {name: cpu[name] - self._cpu[name] for name in self._namespaces}
        for answer in answers:  # the preparation and check of data are not part of the round
            name = answer.get("namespace")
            if name in own and "other_cpu_ns" in answer:
                own[name] = max(0.0, own[name] - answer["other_cpu_ns"] / 1e9)
        victim = self._victim and self._victim.sample(at_ns, end_ns)
        now = self._contestant.counters()
        needed, again = self._sent_again(now)
        return {
            "push_spread": push_spread(answers, at_ns),
            "sender_spread": sender_spread(stats["links"], self._contestant, at_ns),
            "cpu_seconds": {
                **{host: own[self._lab.hosts[host].namespace] for host in self._lab.hosts},
                meters.SWITCH: stats["switch"].get("cpu_seconds", 0.0) - self._switch_cpu,
            },
            "busy_core_seconds": busy or 0.0,
            "busy_of_seconds": of_seconds,
            "needed": needed,
            "retransmitted": again,
            **meters.network_use(stats),
            "site_link_bytes": meters.site_link_bytes(stats),
            **missing(answers),
            **({"victim_delays_s": victim.delays_s, "victim_lost": victim.lost} if victim else {}),
            **{key: now[key] - self._counters[key] for key in COUNTED if now and key in now},
            **({"plans": now["epoch"] - self._counters["epoch"]} if now and "epoch" in now else {}),
        }

    def _sent_again(self, now):
        if now is not None:
            sent, again = (
                now[key] - self._counters[key] for key in ("blocks_sent", "blocks_retransmitted")
            )
            return sent - again, again
        return tuple(a - b for a, b in zip(meters.tcp_segments(self._namespaces), self._tcp))


def lead_seconds(message_bytes, ranks):
    return LEAD_SECONDS + message_bytes * ranks / PREPARED_BYTES_PER_SECOND


def one_round(lab, contestant, machine, seed, message_bytes, round_s=ROUND_SECONDS, victim=None,
              redraws=None):  # fmt: skip
    """Makes a round. Returns (Round, late). A round that takes longer than `round_s` is an error.
    `redraws` changes the network during the round: it has begin(number, at_ns), and end(), which
    returns `oracle_s`."""
    factor = getattr(contestant, "lead_factor", 1)
    gauges = Meters(lab, contestant, machine, victim)
    gauges.begin()
    lead_s = factor * lead_seconds(message_bytes, len(lab.hosts))
    at_ns = time.monotonic_ns() + int(1e9 * lead_s)
    if redraws:
        redraws.begin(seed - FIRST_SEED, at_ns)
    answers = contestant.round(seed, message_bytes, at_ns, timeout=lead_s + round_s)
    oracle_s = redraws.end() if redraws else None
    seconds, spread, correct, late, error = judge(answers, at_ns)
    if error:
        return failed_round(error), False
    if late and factor < MAX_LEAD_FACTOR:
        contestant.lead_factor = factor * 2
    used = gauges.end(at_ns, seconds, answers)
    return Round(seconds, correct, spread, oracle_s=oracle_s, **used), late


class Turns:
    """The rounds of one contestant in a case, within its time limit."""

    def __init__(self, lab, contestant, machine, message_bytes, limit_s, round_s, victim=None,
                 redraws=None):  # fmt: skip
        self._lab, self._contestant, self._machine = lab, contestant, machine
        self._victim, self._redraws = victim, redraws
        self._message_bytes, self._limit_s, self._round_s = message_bytes, limit_s, round_s
        self._spent_s = 0.0
        self._attempts = 0
        self.series = Series(contestant.name)

    def take(self, is_warm_up):
        """Makes one round, and repeats it while ranks begin late. Warm-up rounds take at most a
        quarter of the time. After that they count, and so does one that took all of the time."""
        mine = self.series
        while not mine.failure:
            enough = len(mine.rounds) >= LEAST_ROUNDS
            if self._spent_s >= self._limit_s and enough:
                return
            is_warm = not is_warm_up or self._spent_s > self._limit_s / 4
            self._attempts += 1  # each attempt has other data
            done, late = one_round(
                self._lab, self._contestant, self._machine, FIRST_SEED + self._attempts,
                self._message_bytes, self._round_s, self._victim, self._redraws,
            )  # fmt: skip
            self._spent_s += done.seconds + TURN_SECONDS
            if done.error:
                mine.failure = done.error
            elif late and mine.discarded_late < MAX_DISCARDED:
                mine.discarded_late += 1
                continue
            elif is_warm or done.seconds > self._limit_s:
                mine.accepted_late += late
                mine.rounds.append(done)
            return


def run_case(lab, contestants, machine, message_bytes, repeats, warm_up, progress, limit_s,
             round_s=ROUND_SECONDS, victim=None, redraws=None):  # fmt: skip
    """Interleaves contestants: each has one round in turn, in an order that is drawn anew each
    time. `limit_s` limits the time of each contestant, except for LEAST_ROUNDS, and `round_s` the
    time of a round. Returns a Series for each."""
    order = random.Random(FIRST_SEED)
    place = (machine, message_bytes, limit_s, round_s, victim, redraws)
    turns = {c.name: Turns(lab, c, *place) for c in contestants}
    for number in range(-warm_up, repeats):
        for name in order.sample(list(turns), len(turns)):
            turns[name].take(is_warm_up=number < 0)
            progress(name, number)
    return [one.series for one in turns.values()]


def copies_between_sites(rounds, message_bytes):
    """How often the message crossed each link between sites, forward and backward: bytes on the
    wire over those of the message, all other traffic included, as medians over the rounds."""
    once = bounds.wire_bytes(message_bytes)
    by_link = {
        link: [
            statistics.median(done.site_link_bytes[link][way] for done in rounds) / once
            for way in (0, 1)
        ]
        for link in rounds[0].site_link_bytes
    }
    if not by_link:
        return {}
    return {"copies_by_link": by_link, "copies_between_sites": sum(map(sum, by_link.values()))}


def result(series, case, bound_s, cores):
    """One entry of "cases" of the JSON."""
    rounds = series.rounds
    entry = {"contestant": series.contestant, "case": case, "bound_s": bound_s}
    if series.failure or not rounds:
        failure = series.failure or "it had no turn"
        return {**entry, "runs": len(rounds), "correct": False, "failure": failure}
    if not all(done.correct for done in rounds):
        # The time of a wrong sum has no meaning.
        return {**entry, "runs": len(rounds), "correct": False, "failure": "a sum was wrong"}
    samples = [done.seconds for done in rounds]
    entry.update(bounds.summary(samples))
    of_seconds = sum(done.busy_of_seconds for done in rounds)
    busy = sum(done.busy_core_seconds for done in rounds)
    busy = busy / of_seconds / cores if of_seconds else None
    total = sum(samples)
    cpu = {h: sum(done.cpu_seconds[h] for done in rounds) / total for h in rounds[0].cpu_seconds}
    needed = sum(done.needed for done in rounds)
    again = sum(done.retransmitted for done in rounds)
    lacking = [done for done in rounds if done.missing_share is not None]
    pushes = [done.push_spread for done in rounds if done.push_spread is not None]
    oracles = [done.seconds / done.oracle_s for done in rounds if done.oracle_s]
    senders = [done.sender_spread for done in rounds if done.sender_spread is not None]
    entry.update(
        over_bound=entry["median_s"] / bound_s,
        p99_over_bound=entry["p99_s"] / bound_s,
        wire_bytes=int(statistics.median(done.wire_bytes for done in rounds)),
        **copies_between_sites(rounds, case["bytes"]),
        cpu=cpu,
        machine_busy=busy,
        # By the share of all cores, or of the core of a poll thread, a server or the switch.
        cpu_bound=max(busy or 0, *cpu.values()) > meters.CPU_BOUND_SHARE,
        correct=True,
        spread=statistics.median(done.spread for done in rounds),
        push_spread=statistics.median(pushes) if pushes else None,
        sender_spread=statistics.median(senders) if senders else None,
        retransmitted_over_needed=again / max(1, needed),
        to_groups_share=sum(done.blocks_to_groups for done in rounds) / max(1, needed + again),
        missing_share=statistics.mean(d.missing_share for d in lacking) if lacking else None,
        worst_missing_share=max((d.worst_missing_share for d in lacking), default=None),
        **{key: sum(getattr(done, key) for done in rounds) for key in CLOSES},
        deepest_queue_bytes=max(done.deepest_queue_bytes for done in rounds),
        queue_drops=sum(done.queue_drops for done in rounds),
        **victims.summary([delay for done in rounds for delay in done.victim_delays_s]),
        plans=sum(plans) if (plans := [d.plans for d in rounds if d.plans is not None]) else None,
        over_oracle=statistics.median(oracles) if oracles else None,
        victim_lost=sum(done.victim_lost for done in rounds),
        discarded_late=series.discarded_late,
        accepted_late=series.accepted_late,
        lost_by_switch=sum(done.lost_by_switch for done in rounds),
        late_frames_share=sum(done.late_frames for done in rounds)
        / max(1, sum(done.delivered_frames for done in rounds)),
        latest_frame_us=max(done.latest_frame_us for done in rounds),
        samples_s=samples,
    )
    return entry
