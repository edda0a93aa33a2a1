# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Runs contestants in turn over one network, and judges and sums up what they did."""

import dataclasses
import statistics
import time

import bounds
import meters

START_SECONDS = 90
# A rank may begin so much late; a round with a later one is run again with more lead.
LATE_NS = 2_000_000
LEAD_SECONDS = 0.05
PREPARED_BYTES_PER_SECOND = 100e6
MAX_LEAD_FACTOR = 16
MAX_DISCARDED = 20
FIRST_SEED = 1000


class BenchError(Exception):
    """Ends a benchmark: says what went wrong, and where to look."""


@dataclasses.dataclass
class Round:
    """One synchronisation of one contestant."""

    seconds: float
    correct: bool
    spread: float  # last over first end of a rank
    cpu_seconds: dict  # per host
    busy_core_seconds: float
    busy_of_seconds: float
    wire_bytes: int
    segments: int
    retransmitted: int
    deepest_queue_bytes: int
    late_frames: int  # that the emulated network delivered over a millisecond too late
    delivered_frames: int
    error: str = ""


@dataclasses.dataclass
class Series:
    """All measured rounds of one contestant in one case."""

    contestant: str
    rounds: list = dataclasses.field(default_factory=list)
    discarded_late: int = 0
    failure: str = ""


def judge(answers, at_ns):
    """(seconds, spread, correct, late, error) of the answers of all ranks to one command."""
    errors = [str(answer["error"]) for answer in answers if "error" in answer]
    if errors:
        return None, None, False, False, errors[0]
    ranks = [answer for answer in answers if "end_ns" in answer]
    if not ranks:
        return None, None, False, False, "no rank answered"
    ends = [answer["end_ns"] - at_ns for answer in ranks]
    late = max(answer["start_ns"] for answer in ranks) - at_ns > LATE_NS
    correct = all(answer.get("correct") is True for answer in ranks)
    crcs = {answer["crc"] for answer in ranks if answer.get("crc")}
    # The same bits on every replica are part of being right.
    return max(ends) / 1e9, max(ends) / min(ends), correct and len(crcs) <= 1, late, ""


class Meters:
    """Readings before and after a round."""

    def __init__(self, lab, contestant, machine):
        self._lab, self._contestant, self._machine = lab, contestant, machine
        self._namespaces = [host.namespace for host in lab.hosts.values()]

    def begin(self):
        self._lab.reset()
        self._cpu = meters.cpu_seconds_by_namespace(self._namespaces)
        self._tcp = meters.tcp_segments(self._namespaces)
        self._counters = self._contestant.counters()
        self._switch_cpu = self._lab.stats()["switch"].get("cpu_seconds", 0.0)

    def end(self, at_ns, seconds, answers):
        """The fields of a Round that meters give."""
        end_ns = at_ns + int(seconds * 1e9)
        stats = self._lab.stats()
        directions = [d for link in stats["links"].values() for d in link.values()]
        busy, of_seconds = self._machine.busy_core_seconds(at_ns, end_ns)
        cpu = meters.cpu_seconds_by_namespace(self._namespaces)
        own = {name: cpu[name] - self._cpu[name] for name in self._namespaces}
        for answer in answers:  # preparing and checking the data is not part of the round
            name = answer.get("namespace")
            if name in own and "other_cpu_ns" in answer:
                own[name] = max(0.0, own[name] - answer["other_cpu_ns"] / 1e9)
        sent, again = self._sent_again()
        return {
            "cpu_seconds": {
                **{host: own[self._lab.hosts[host].namespace] for host in self._lab.hosts},
                "switch": stats["switch"].get("cpu_seconds", 0.0) - self._switch_cpu,
            },
            "busy_core_seconds": busy or 0.0,
            "busy_of_seconds": of_seconds,
            "wire_bytes": sum(d["bytes"] for d in directions) // 2,  # up and down carry the same
            "segments": sent,
            "retransmitted": again,
            "deepest_queue_bytes": max((d["deepest_queue_bytes"] for d in directions), default=0),
            "late_frames": stats["switch"].get("late_1ms", 0),
            "delivered_frames": stats["switch"].get("delivered", 0),
        }

    def _sent_again(self):
        now = self._contestant.counters()
        if now is not None:
            sent, again = (
                now[key] - self._counters[key] for key in ("blocks_sent", "blocks_retransmitted")
            )
            return sent, again
        sent, again = (a - b for a, b in zip(meters.tcp_segments(self._namespaces), self._tcp))
        return sent, again


def lead_seconds(message_bytes, ranks):
    return LEAD_SECONDS + message_bytes * ranks / PREPARED_BYTES_PER_SECOND


def one_round(lab, contestant, machine, seed, message_bytes):
    """(Round, late)."""
    factor = getattr(contestant, "lead_factor", 1)
    gauges = Meters(lab, contestant, machine)
    gauges.begin()
    at_ns = time.monotonic_ns() + int(1e9 * factor * lead_seconds(message_bytes, len(lab.hosts)))
    answers = contestant.round(seed, message_bytes, at_ns)
    seconds, spread, correct, late, error = judge(answers, at_ns)
    if error:
        return Round(0, False, 0, {}, 0, 0, 0, 0, 0, 0, 0, 0, error), False
    if late and factor < MAX_LEAD_FACTOR:
        contestant.lead_factor = factor * 2
    return Round(seconds, correct, spread, **gauges.end(at_ns, seconds, answers)), late


def run_case(lab, contestants, machine, message_bytes, repeats, warm_up, progress, limit_s):
    """Interleaves: one round of each contestant in turn, in an order that rotates. `limit_s`
    bounds the time that any one contestant may take, and warming up takes a quarter of it at most,
    or one round. Gives a Series for each."""
    series = {c.name: Series(c.name) for c in contestants}
    spent = dict.fromkeys(series, 0.0)
    for number in range(-warm_up, repeats):
        turn = list(contestants)
        turn = turn[number % len(turn) :] + turn[: number % len(turn)]
        for contestant in turn:
            mine = series[contestant.name]
            while not mine.failure and spent[contestant.name] < limit_s:
                is_warm = number >= 0 or spent[contestant.name] > limit_s / 4
                begun = time.monotonic()
                done, late = one_round(lab, contestant, machine, FIRST_SEED + number, message_bytes)
                spent[contestant.name] += time.monotonic() - begun
                if done.error:
                    mine.failure = done.error
                elif late and mine.discarded_late < MAX_DISCARDED:
                    mine.discarded_late += 1
                    continue
                elif is_warm:
                    mine.rounds.append(done)
                break
            progress(contestant.name, number)
    return list(series.values())


def result(series, case, bound_s, cores):
    """One entry of "cases" of the JSON."""
    rounds = series.rounds
    entry = {"contestant": series.contestant, "case": case, "bound_s": bound_s}
    if series.failure or not rounds:
        failure = series.failure or "no round came to its end in the time it has"
        return {**entry, "runs": len(rounds), "correct": False, "failure": failure}
    if not all(done.correct for done in rounds):
        # Thrown out: the time of a wrong sum means nothing.
        return {**entry, "runs": len(rounds), "correct": False, "failure": "a sum was wrong"}
    samples = [done.seconds for done in rounds]
    entry.update(bounds.summary(samples))
    of_seconds = sum(done.busy_of_seconds for done in rounds)
    busy = sum(done.busy_core_seconds for done in rounds)
    hosts = rounds[0].cpu_seconds
    total = sum(samples)
    segments = sum(done.segments for done in rounds)
    again = sum(done.retransmitted for done in rounds)
    entry.update(
        over_bound=entry["median_s"] / bound_s,
        p99_over_bound=entry["p99_s"] / bound_s,
        wire_bytes=int(statistics.median(done.wire_bytes for done in rounds)),
        cpu={h: sum(done.cpu_seconds[h] for done in rounds) / total for h in hosts},
        machine_busy=busy / of_seconds / cores if of_seconds else None,
        cpu_bound=bool(of_seconds and busy / of_seconds / cores > meters.CPU_BOUND_SHARE),
        correct=True,
        spread=statistics.median(done.spread for done in rounds),
        retransmitted_over_needed=again / max(1, segments - again),
        deepest_queue_bytes=max(done.deepest_queue_bytes for done in rounds),
        discarded_late=series.discarded_late,
        late_frames_share=sum(done.late_frames for done in rounds)
        / max(1, sum(done.delivered_frames for done in rounds)),
        samples_s=samples,
    )
    return entry
