# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The benchmarks' harness: it reports the times that contestants give it, discards wrong sums, and
computes bounds and statistics as they are defined. Needs no network and no root."""

import pathlib
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench.d"))
sys.dont_write_bytecode = True
import bounds  # noqa: E402
import cases  # noqa: E402
import harness  # noqa: E402
import report  # noqa: E402
import victim  # noqa: E402

CASE = cases.case(4, 1 << 20)
MS = 1_000_000


class FakeLab:
    hosts = {}
    ring_drops = 0
    latest_us = 0.0

    def reset(self):
        pass

    def stats(self):
        direction = {"sent_wire_bytes": 1000, "deepest_queue_bytes": 77, "queue_drops": 3}
        links = {"h0": {"up": direction, "down": direction}}
        switch = {"ring_drops": self.ring_drops, "latest_us": self.latest_us}
        switch |= {"late_1ms": 2, "delivered": 100}
        return {"links": links, "switch": switch}


class FakeMachine:
    cores = 2

    def __init__(self, busy=0.5):
        self._busy = busy

    def busy_core_seconds(self, begin_ns, end_ns):
        if self._busy is None:
            return None, 0.0
        seconds = (end_ns - begin_ns) / 1e9
        return seconds * self.cores * self._busy, seconds


class FakeContestant:
    """Reports a round of so many milliseconds for each rank, without waiting."""

    def __init__(self, name, ends_ms, **answer):
        self.name, self._ends_ms, self._answer, self.rounds = name, ends_ms, answer, 0
        self.seeds = []
        self.blocks = None
        self.first_host_is_server, self.workers = False, []

    def counters(self):
        return dict(self.blocks) if self.blocks else None

    def round(self, seed, bytes_, at_ns, timeout=None):
        self.rounds += 1
        self.seeds.append(seed)
        if self.blocks:
            self.blocks["blocks_sent"] += 110
            self.blocks["blocks_retransmitted"] += 10
        answers = []
        for rank, end in enumerate(self._ends_ms):
            answer = {"rank": rank, "start_ns": at_ns, "end_ns": at_ns + int(end * MS),
                      "correct": True, "crc": "0"}  # fmt: skip
            for key, value in self._answer.items():
                answer[key] = value(self.rounds, rank, at_ns) if callable(value) else value
            answers.append(answer)
        return answers


class FakeVictim:
    """Reports the next delay in milliseconds and one lost packet for each round."""

    def __init__(self, *delays_ms):
        self._delays_ms = list(delays_ms)
        self.asked_ns = []

    def sample(self, begin_ns, end_ns):
        self.asked_ns.append(end_ns - begin_ns)
        return victim.Sample([self._delays_ms.pop(0) / 1e3], 1)


def run(*contestants, repeats=4, busy=0.5, bound_s=0.005, of_victim=None):
    machine = FakeMachine(busy)
    series = harness.run_case(
        FakeLab(), contestants, machine, 64, repeats, 1, lambda *_: None, limit_s=20,
        victim=of_victim,
    )  # fmt: skip
    return {one.contestant: harness.result(one, CASE, bound_s, machine.cores) for one in series}


class Harness(unittest.TestCase):
    def test_a_known_time_comes_out(self):
        found = run(FakeContestant("a", (5, 10)), FakeContestant("b", (20, 20)))
        self.assertAlmostEqual(found["a"]["median_s"], 0.010)
        self.assertAlmostEqual(found["a"]["over_bound"], 2)
        self.assertAlmostEqual(found["a"]["spread"], 2)
        self.assertAlmostEqual(found["b"]["p99_s"], 0.020)
        self.assertEqual(found["a"]["runs"], 4)
        self.assertEqual(found["a"]["deepest_queue_bytes"], 77)
        self.assertEqual(found["a"]["wire_bytes"], 1000)
        self.assertEqual(found["a"]["queue_drops"], 4 * 2 * 3)
        self.assertIsNone(found["a"]["sender_spread"])
        self.assertIsNone(found["a"]["victim_p99_s"])

    def test_queues_that_are_small_and_mark_are_said(self):
        marking = cases.case(4, 1 << 20, queue_bytes=65536, mark_bytes=20480)
        said = ", queues of 64 KiB, marks from 20 KiB on"
        self.assertEqual(cases.label(marking), cases.label(CASE) + said)
        self.assertFalse({"own_queue", "mark_bytes"} & CASE.keys())  # older files have neither
        for case, threshold in ((marking, "20480 B"), (CASE, "0 B")):
            up = cases.network(case, ["h0"])["hosts"][0]["up"]
            self.assertEqual(up["ecn_threshold"], threshold)

    def test_a_victim_is_asked_about_each_round(self):
        asked = FakeVictim(99, 1, 2, 3, 50)  # the first one warms up
        found = run(FakeContestant("a", (5, 10)), of_victim=asked)["a"]
        self.assertEqual(asked.asked_ns, [10 * MS] * 5)
        self.assertAlmostEqual(found["victim_p50_s"], 0.002)
        self.assertAlmostEqual(found["victim_p99_s"], 0.050)
        self.assertEqual(found["victim_lost"], 4)

    def test_senders_of_a_server_have_a_spread(self):
        server = FakeContestant("a", (5, 5))
        server.first_host_is_server = True
        server.workers = [types.SimpleNamespace(name=name) for name in ("h1", "h2")]
        links = {name: {"up": {"last_data_arrival_ns": 100 + end}}
                 for name, end in (("h0", 1), ("h1", 20), ("h2", 50))}  # fmt: skip
        self.assertEqual(harness.sender_spread(links, server, 100), 2.5)
        links["h2"]["up"]["last_data_arrival_ns"] = 0  # h2 sent nothing
        self.assertIsNone(harness.sender_spread(links, server, 100))
        server.first_host_is_server = False
        self.assertIsNone(harness.sender_spread(links, server, 100))

    def test_contestants_take_turns(self):
        order = []
        one, other = FakeContestant("a", (1,)), FakeContestant("b", (1,))
        for contestant in (one, other):
            inner = contestant.round
            contestant.round = lambda *words, c=contestant, inner=inner, **more: (
                order.append(c.name), inner(*words))[1]  # fmt: skip
        run(one, other, repeats=15)
        pairs = [tuple(order[i : i + 2]) for i in range(0, len(order), 2)]
        self.assertEqual({frozenset(pair) for pair in pairs}, {frozenset("ab")})
        self.assertEqual(len(set(pairs)), 2)  # each of them begins sometimes

    def test_a_wrong_sum_is_thrown_out(self):
        wrong = FakeContestant(
            "a", (5, 5), correct=lambda number, rank, _: (number, rank) != (3, 1)
        )
        found = run(wrong, FakeContestant("b", (9,)))
        self.assertNotIn("median_s", found["a"])
        self.assertFalse(found["a"]["correct"])
        self.assertTrue(found["b"]["correct"])
        self.assertIn("thrown out", report.table(list(found.values())))

    def test_replicas_that_differ_are_thrown_out(self):
        found = run(FakeContestant("a", (5, 5), crc=lambda _, rank, __: str(rank)))
        self.assertFalse(found["a"]["correct"])

    def test_an_error_ends_its_contestant_alone(self):
        broken = FakeContestant("a", (5,), error="it broke")
        found = run(broken, FakeContestant("b", (9,)))
        self.assertEqual(found["a"]["failure"], "it broke")
        self.assertEqual(broken.rounds, 1)
        self.assertEqual(found["b"]["runs"], 4)

    def test_a_late_start_is_measured_again(self):
        late = FakeContestant(
            "a", (5,), start_ns=lambda number, _, at_ns: at_ns + (50 * MS if number == 2 else 0)
        )
        found = run(late)
        self.assertEqual(found["a"]["runs"], 4)
        self.assertEqual(found["a"]["discarded_late"], 1)
        self.assertEqual(late.rounds, 6)  # one to warm up, four that count, one repeated
        self.assertEqual(len(set(late.seeds)), 6)

    def test_a_busy_machine_is_said(self):
        self.assertFalse(run(FakeContestant("a", (5,)))["a"]["cpu_bound"])
        found = run(FakeContestant("a", (5,)), busy=0.95)
        self.assertTrue(found["a"]["cpu_bound"])
        self.assertIn("CPU-bound", report.table(list(found.values())))

    def test_what_the_switch_lost_is_said(self):
        FakeLab.ring_drops = 3
        try:
            found = run(FakeContestant("a", (5,)))
        finally:
            FakeLab.ring_drops = 0
        self.assertIn("12 frames lost by the emulator", report.table(list(found.values())))

    def test_how_late_frames_were_comes_out(self):
        lab = FakeLab()
        contestant = FakeContestant("a", (5,))
        inner = contestant.round

        def round_(*words, **more):
            lab.latest_us = 700.0 if contestant.rounds == 2 else 300.0
            return inner(*words, **more)

        contestant.round = round_
        series = harness.run_case(
            lab, [contestant], FakeMachine(), 64, 4, 0, lambda *_: None, limit_s=20
        )
        found = harness.result(series[0], CASE, 1, 2)
        self.assertEqual(found["latest_frame_us"], 700.0)
        self.assertAlmostEqual(found["late_frames_share"], 0.02)

    def test_processor_time_is_told_of_hosts_and_of_the_switch_apart(self):
        entry = {"cpu": {"h0": 0.31, "h1": 0.03, "h2": 0.02, "switch": 0.9}}
        self.assertEqual(report.hosts_text(entry), "0.31 / 0.12 cores")
        self.assertEqual(report.switch_text(entry), "0.90 cores")
        self.assertEqual(report.hosts_text({"cpu": {"switch": 0.9}}), "-")

    def test_an_unknown_use_of_processors_is_not_none(self):
        found = run(FakeContestant("a", (5,)), busy=None)
        self.assertIsNone(found["a"]["machine_busy"])
        self.assertIn("| ? |", report.table(list(found.values())))

    def test_what_was_sent_again_is_over_what_was_needed(self):
        contestant = FakeContestant("a", (5,))
        contestant.blocks = {"blocks_sent": 5, "blocks_retransmitted": 1}
        self.assertAlmostEqual(run(contestant)["a"]["retransmitted_over_needed"], 0.1)

    def test_rounds_that_closed_before_they_were_complete_are_counted(self):
        contestant = FakeContestant("a", (5,))
        contestant.blocks = {"blocks_sent": 5, "blocks_retransmitted": 1}
        contestant.blocks |= {"rounds_closed_early": 7, "rounds_closed_deadline": 9}
        inner = contestant.round

        def round_(*words, **more):
            contestant.blocks["rounds_closed_early"] += 2
            contestant.blocks["rounds_closed_deadline"] += 1
            return inner(*words, **more)

        contestant.round = round_
        found = run(contestant)["a"]
        self.assertEqual(found["rounds_closed_early"], 8)  # the sum over four rounds
        self.assertEqual(found["rounds_closed_deadline"], 4)

    def test_a_rank_without_an_end_is_an_error(self):
        silent = FakeContestant("a", (5, 5))
        inner = silent.round

        def one_is_silent(*words, **_):
            answers = inner(*words)
            del answers[1]["end_ns"]
            return answers

        silent.round = one_is_silent
        self.assertIn("no end from rank [1]", run(silent)["a"]["failure"])

    def test_a_server_is_judged_and_tells_the_spread_of_pushes(self):
        for correct in (True, False):
            contestant = FakeContestant("a", (5, 5))
            inner = contestant.round

            def with_server(seed, bytes_, at_ns, timeout=None, inner=inner, correct=correct):
                ends = [at_ns + 2 * MS, at_ns + 6 * MS]
                server = {"rank": "server", "correct": correct, "first_end_ns": ends}
                return [*inner(seed, bytes_, at_ns), server]

            contestant.round = with_server
            found = run(contestant)["a"]
            self.assertEqual(found["correct"], correct)
            if correct:
                self.assertAlmostEqual(found["push_spread"], 3)

    def test_time_is_limited_and_warming_up_takes_a_part_of_it(self):
        slow = FakeContestant("a", (2000,))  # says that each round took 2 s
        series = harness.run_case(
            FakeLab(), [slow], FakeMachine(), 64, 10**3, 10**3, lambda *_: None, limit_s=20
        )
        self.assertTrue(5 <= len(series[0].rounds) <= 10)
        never = FakeContestant("a", (10**6,))
        series = harness.run_case(
            FakeLab(), [never], FakeMachine(), 64, 10, 1, lambda *_: None, limit_s=20
        )
        self.assertEqual(len(series[0].rounds), harness.LEAST_ROUNDS)
        self.assertEqual(never.rounds, harness.LEAST_ROUNDS)  # no round was only to warm up

    def test_what_is_missing_comes_out(self):
        share = lambda number, *_: 0.01 * number  # noqa: E731
        found = run(FakeContestant("a", (5, 5), missing_share=share, worst_missing_share=share),
                    FakeContestant("b", (5, 5)))  # fmt: skip
        self.assertAlmostEqual(found["a"]["missing_share"], 0.035)  # the mean of rounds 2 to 5
        self.assertAlmostEqual(found["a"]["worst_missing_share"], 0.05)
        self.assertIsNone(found["b"]["missing_share"])
        table = report.table(list(found.values()), report.TOLERANT_COLUMNS)
        self.assertIn("| 3.50 % | 5.00 % | 0 / 0 | - | 0.00 cores | 50 % |", table)
        self.assertIn("| - | - | - | - | 0.00 cores | 50 % |", table)

    def test_a_round_has_its_time(self):
        asked = []
        contestant = FakeContestant("a", (5,))
        inner = contestant.round
        contestant.round = lambda *words, timeout: (asked.append(timeout), inner(*words))[1]
        harness.run_case(FakeLab(), [contestant], FakeMachine(), 64, 1, 0, lambda *_: None,
                         limit_s=20, round_s=777)  # fmt: skip
        self.assertTrue(777 <= asked[0] < 778)


class Bounds(unittest.TestCase):
    def test_bounds_are_those_of_the_protocol(self):
        packet = 1408 + 56 + 66
        self.assertEqual(bounds.wire_bytes(1), packet)
        self.assertEqual(bounds.wire_bytes(1408 * 3 + 1), 4 * packet)
        rate = 8 * packet  # one packet per second
        self.assertAlmostEqual(bounds.incast_bound_s(5, 1408, rate), 5)
        self.assertAlmostEqual(bounds.allreduce_bound_s(4, 1408 * 4, rate), 6)
        self.assertAlmostEqual(bounds.star_bound_s(4, 1408, rate), 3)

    def test_statistics(self):
        samples = list(range(1, 101))
        self.assertEqual(bounds.percentile(samples, 0.99), 99)
        self.assertEqual(bounds.percentile([7], 0.99), 7)
        low, high = bounds.median_interval(samples)
        self.assertEqual((low, high), (40, 61))  # the textbook's ranks for n = 100
        self.assertEqual(bounds.median_interval([3, 1, 2, 4, 5, 6]), [1, 6])
        self.assertIsNone(bounds.median_interval([1, 2, 3, 4, 5]))

    def test_losses_are_what_a_case_says(self):
        burst = cases.case(3, 1, loss=0.01, loss_model="burst")
        settings = cases.network(burst, ["a", "b", "c"])["hosts"][0]["down"]["loss"]
        shares = settings["gilbert_elliott"].items()
        ge = {key: float(text.split()[0]) / 100 for key, text in shares}
        in_burst = ge["enter"] / (ge["enter"] + ge["leave"])
        self.assertAlmostEqual(in_burst * ge["bad"], 0.01, places=6)
        grey = cases.network(cases.case(3, 1, loss=0.05, loss_model="grey"), ["a", "b", "c"])
        self.assertEqual([("loss" in h["down"]) for h in grey["hosts"]], [False, False, True])
        clean = cases.network(cases.case(3, 1, loss=0, loss_model="random"), ["a", "b", "c"])
        self.assertFalse(any("loss" in h["down"] for h in clean["hosts"]))


if __name__ == "__main__":
    unittest.main()
