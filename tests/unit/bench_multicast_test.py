# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`scripts/bench multicast`: the links, their bounds, the contestants, and the results from their
times. Needs no network and no root."""

import pathlib
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench.d"), str(ROOT / "scripts/lib")]
sys.dont_write_bytecode = True
import bounds  # noqa: E402
import harness  # noqa: E402
import multicast  # noqa: E402
import multicast_bounds as links  # noqa: E402
import multicast_contestants as taking_part  # noqa: E402
import multicast_lab  # noqa: E402

MEGABYTE = 10**6
RATE = 8 * MEGABYTE
ONE_S = 8 * bounds.wire_bytes(MEGABYTE) / RATE
# The senders of each rank: ranks 1 and 2 send to 0, rank 2 to 1, and rank 1 to 2 and 3.
SENDERS = [[1, 2], [2], [1], [1]]


class Bounds(unittest.TestCase):
    def test_rates_are_within_their_range_and_the_same_each_time(self):
        drawn = links.draw_rates(2000, 20, 100, 3)
        self.assertEqual(drawn, links.draw_rates(2000, 20, 100, 3))
        self.assertNotEqual(drawn, links.draw_rates(2000, 20, 100, 4))
        self.assertEqual((min(drawn), max(drawn)), (20 * MEGABYTE, 100 * MEGABYTE))

    def test_receivers_are_rounded_up(self):
        self.assertEqual([links.least_receivers(0.3, n) for n in (4, 8, 11)], [1, 3, 3])
        self.assertEqual(links.least_receivers(0.5, 8), 4)
        self.assertEqual(links.least_receivers(1.0, 8), 7)

    def test_an_allreduce_over_equal_links_has_the_known_bound(self):
        known = bounds.allreduce_bound_s(8, MEGABYTE, RATE)
        self.assertAlmostEqual(links.allreduce_s([RATE] * 8, MEGABYTE), known)

    def test_the_slowest_link_bears_one_copy_of_an_allreduce(self):
        rates = [RATE / 10] + [RATE * 10] * 7
        self.assertAlmostEqual(links.allreduce_s(rates, MEGABYTE), 10 * ONE_S)

    def test_a_broadcast_takes_the_slowest_link(self):
        self.assertAlmostEqual(links.broadcast_s([RATE, RATE / 2, RATE], 0, MEGABYTE), 2 * ONE_S)
        self.assertAlmostEqual(links.broadcast_s([RATE / 4, RATE, RATE], 0, MEGABYTE), 4 * ONE_S)

    def test_copies_that_the_switch_makes_leave_the_sender_once(self):
        self.assertEqual(links.received_copies(SENDERS), [2, 1, 1, 1])
        self.assertEqual(links.sent_copies(SENDERS, replicated=False), [0, 3, 2, 0])
        self.assertEqual(links.sent_copies(SENDERS, replicated=True), [0, 1, 1, 0])
        rates = [RATE] * 4
        self.assertAlmostEqual(links.selection_s(rates, SENDERS, MEGABYTE, False), 3 * ONE_S)
        self.assertAlmostEqual(links.selection_s(rates, SENDERS, MEGABYTE, True), 2 * ONE_S)
        rates[3] = RATE / 5
        self.assertAlmostEqual(links.selection_s(rates, SENDERS, MEGABYTE, True), 5 * ONE_S)

    def test_an_exchange_over_equal_links_needs_its_receivers(self):
        for replicated in (False, True):
            found = links.exchange_s([RATE] * 8, 3, 4, MEGABYTE, replicated)
            self.assertAlmostEqual(found, 3 * ONE_S)

    def test_fast_links_take_what_slow_ones_need_not(self):
        """Two of ten ranks are slow and take the 9 / 5 updates that freshness demands."""
        rates = [RATE / 4] * 2 + [RATE] * 8
        slow_s = 4 * 9 / 5 * ONE_S
        self.assertAlmostEqual(links.exchange_s(rates, 3, 4, MEGABYTE, True), slow_s)
        # The sender makes the copies, so a slow sender sends three copies over its link.
        self.assertAlmostEqual(links.exchange_s(rates, 3, 4, MEGABYTE, False), 12 * ONE_S)
        # Every rank receives all updates.
        self.assertAlmostEqual(links.exchange_s(rates, 9, 4, MEGABYTE, True), 4 * 9 * ONE_S)
        rates = [RATE / 2] * 2 + [RATE] * 8
        # 2 t / 2 + 8 t = 60 pairs.
        self.assertAlmostEqual(links.exchange_s(rates, 6, 8, MEGABYTE, True), 60 / 9 * ONE_S)

    def test_without_freshness_to_keep_all_send_to_all(self):
        rates = [RATE] * 3 + [RATE / 2]
        self.assertAlmostEqual(links.exchange_s(rates, 3, 0, MEGABYTE, True), 6 * ONE_S)


class Selections(unittest.TestCase):
    def test_each_update_has_its_receivers_in_each_round(self):
        everyone = [[1, 2], [0, 2], [0, 1]]
        self.assertEqual(taking_part.why_wrong([everyone], 2), "")
        ring = [[2], [0], [1]]
        self.assertEqual(taking_part.why_wrong([everyone, ring], 1), "")
        self.assertIn("selection 1: the update of rank 0 came to 1",
                      taking_part.why_wrong([everyone, ring], 2))  # fmt: skip

    def test_each_pair_meets_in_a_cycle(self):
        ring, back = [[2], [0], [1]], [[1], [2], [0]]
        self.assertEqual(taking_part.why_wrong([ring, back], 1), "")
        self.assertIn("rank 0 never had", taking_part.why_wrong([ring, ring], 1))

    def test_a_wrong_one_throws_the_row_out(self):
        contestant = taking_part.ExchangeContestant(0.3, multicast=False)
        contestant.workers = [None] * 3
        contestant.check([[[1, 2], [0, 2], [0, 1]]])
        turns = multicast.Turns(None, contestant, None, None)
        turns.senders = [[[1], [2], [0]]] * 5
        turns.check()
        self.assertIn("never had", turns.series.failure)

    def test_the_file_says_who_is_chosen_and_how(self):
        self.assertEqual(
            taking_part.training_section(0.3, "random"),
            "training: {mode: selective-bsp, receivers: 30%, selection: random, freshness: 4, "
            "average_every: never}\n",
        )

    def test_steps_choose_the_selection(self):
        asked = []
        contestant = taking_part.ExchangeContestant(0.3, multicast=False)
        parent = taking_part.GroupsContestant.round
        try:
            taking_part.GroupsContestant.round = lambda _, *a, **k: asked.append(k) or [
                {"senders": [1]}, {}
            ]
            for contestant.step in (0, 4, 7):
                contestant.round(1, 2, 3)
        finally:
            taking_part.GroupsContestant.round = parent
        self.assertEqual([k["selection"] for k in asked], [0, 4, 2])
        self.assertEqual(contestant.senders, [[1], []])


class TakingPart(unittest.TestCase):
    def names(self, op, switch="snoop", quick=False):
        options = types.SimpleNamespace(contestant=multicast.re.compile(""), quick=quick)
        case = multicast.case(op, switch)
        found = [c.name for c in multicast.make_contestants(case)
                 if multicast.is_asked(c.name, case, options)]  # fmt: skip
        self.assertEqual(len(found), len(set(found)))
        return set(found)

    def test_every_requirement_has_its_contestants(self):
        found = self.names("exchange")
        for name in ("p30", "p30-random", "p50", "p50-random", "all"):
            self.assertLessEqual({f"gradplane-{name}", f"gradplane-{name}-multicast"}, found)
        self.assertIn("gradplane-p30-measured", found)
        for op in taking_part.COLLECTIVES:
            plans = {f"gradplane-{plan}{groups}" for plan in ("star", "sharded")
                     for groups in ("", "-multicast")}  # fmt: skip
            self.assertEqual(self.names(op), {*plans, "gloo-cubic"})
            self.assertEqual(self.names(op, "flood"), plans)
        self.assertEqual(self.names("exchange", "drop"),
                         {"gradplane-p30", "gradplane-p30-multicast"})  # fmt: skip
        self.assertEqual(self.names("broadcast", quick=True),
                         {"gradplane-sharded", "gradplane-sharded-multicast"})  # fmt: skip

    def test_groups_are_in_the_file_of_those_that_have_them(self):
        for contestant in taking_part.exchanging():
            has_groups = taking_part.MULTICAST in contestant._settings["extra"]
            self.assertEqual(has_groups, contestant.name.endswith("-multicast"))
            self.assertEqual(contestant._settings["tells_links"], "measured" not in contestant.name)

    def test_labels_tell_cases_apart(self):
        found = [multicast.label(case) for case in multicast.make_cases(quick=False)]
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(len(found), 9)


class Results(unittest.TestCase):
    def test_ratios_are_of_rows_that_are_alike_but_for_one_thing(self):
        def entry(name, seconds):
            return {"contestant": f"gradplane-{name}", "mean_s": seconds}

        times = {
            "p30": 4.0, "p30-multicast": 2.0, "p30-random": 6.0, "p30-random-multicast": 3.0,
            "all": 12.0, "all-multicast": 10.0, "p30-measured": 3.0,
        }  # fmt: skip
        failed = {"contestant": "gradplane-p50-random", "failure": "gone"}
        entries = [*(entry(*each) for each in times.items()), failed]
        found = {e["contestant"].removeprefix("gradplane-"): e
                 for e in multicast.with_ratios(entries)}  # fmt: skip
        self.assertEqual(found["p30"]["over_random"], 1.5)
        self.assertEqual(found["p30"]["over_all"], 3.0)
        self.assertNotIn("over_unicast", found["p30"])
        self.assertEqual(found["p30-multicast"]["over_random"], 1.5)
        self.assertEqual(found["p30-multicast"]["over_all"], 5.0)
        self.assertEqual(found["p30-multicast"]["over_unicast"], 2.0)
        self.assertEqual(found["p30-measured"]["over_random"], 2.0)
        self.assertEqual(found["p30-measured"]["over_all"], 4.0)
        self.assertNotIn("over_unicast", found["p30-measured"])
        self.assertNotIn("over_all", found["all"])

    def test_an_exchange_is_told_with_the_bound_of_its_own_selections(self):
        case = {"rates_bits_per_second": [RATE] * 4, "bytes": MEGABYTE}
        entry = {"case": case, "mean_s": 6 * ONE_S, "to_groups_share": 0.5}
        alone = multicast.exchange_result(entry, [SENDERS], multicast=False)
        self.assertAlmostEqual(alone["over_own_bound"], 2)
        self.assertEqual(alone["receivers"], 1.25)
        self.assertAlmostEqual(
            multicast.exchange_result(entry, [SENDERS], multicast=True)["over_own_bound"], 3
        )
        # If groups carried nothing, the bound is that without groups.
        entry["to_groups_share"] = 0
        found = multicast.exchange_result(entry, [SENDERS], multicast=True)
        self.assertAlmostEqual(found["over_own_bound"], 2)

    def test_the_uplinks_of_ranks_are_told_in_copies(self):
        once = bounds.wire_bytes(multicast.BYTES["broadcast"])
        done = harness.failed_round("")
        done.correct, done.seconds, done.spread, done.cpu_seconds = True, 2.0, 1.0, {"h0": 0.5}
        done.uplink_bytes = {"h0": 3 * once, "h1": once, multicast.COORDINATOR: 9 * once}
        contestant = types.SimpleNamespace(name="gradplane-star")
        turns = multicast.Turns(None, contestant, None, None)
        turns.series.rounds = [done, done]
        case = multicast.case("broadcast", "snoop")
        found = multicast.entry_of(turns, contestant, case, 2)
        self.assertEqual(found["uplink_copies"], {"h0": 3, "h1": 1})
        self.assertEqual(multicast.uplinks(found), "3.00 / 2.00")
        self.assertEqual(found["mean_s"], 2.0)
        self.assertEqual(found["cpu_seconds_of_round"], 0.5)


class Lab(unittest.TestCase):
    def listing(self, factor):
        return [
            {"ifname": f"{device}-h0", "stats64": {"tx": {"bytes": factor * size, "packets": 2}}}
            for device, size in (("u", 1000), ("d", 500), ("t", 7))
        ]

    def test_a_link_has_what_the_switch_sent_on_with_all_bytes_of_the_wire(self):
        found = multicast_lab.links_of(self.listing(1), {"d-h0": 3}, ["h0"])["h0"]
        self.assertEqual(found["up"]["sent_wire_bytes"], 1000 + 2 * 24)
        self.assertEqual(found["down"]["sent_wire_bytes"], 500 + 2 * 24)
        self.assertEqual((found["up"]["queue_drops"], found["down"]["queue_drops"]), (0, 3))

    def test_counters_are_since_the_reset(self):
        before, now = (multicast_lab.links_of(self.listing(n), {}, ["h0"]) for n in (1, 3))
        self.assertEqual(multicast_lab.since(now, before)["h0"]["up"]["sent_wire_bytes"], 2000)


if __name__ == "__main__":
    unittest.main()
