# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`scripts/bench wan`: the network, its bound, the contestants, and the results from their times.
Needs no network and no root."""

import itertools
import pathlib
import sys
import threading
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench.d"), str(ROOT / "scripts/lib")]
sys.dont_write_bytecode = True
import bounds  # noqa: E402
import gradplane_nodes  # noqa: E402
import harness  # noqa: E402
import wan  # noqa: E402
import wan_cases as cases  # noqa: E402
import wan_contestants  # noqa: E402
import wan_network as network  # noqa: E402
import wan_train  # noqa: E402

MEGABYTE = 10**6


def alike(rate):
    return {ends: rate for link in network.LINKS for ends in (link, link[::-1])}


class Network(unittest.TestCase):
    def test_rates_are_within_their_range_and_the_same_each_time(self):
        drawn = [network.draw(number) for number in range(50)]
        self.assertEqual(drawn[7], network.draw(7))
        self.assertNotEqual(drawn[0], drawn[1])
        scale = network.RATE_SCALE * MEGABYTE
        rates = [rate / scale for rates in drawn for rate in rates.values()]
        self.assertEqual(len(rates), 50 * 26)
        self.assertEqual((min(rates), max(rates)), (20, 155))

    def test_the_lab_and_the_daemons_have_the_same_links(self):
        rates, paths = network.draw(3), network.draw_paths()
        text = network.yaml_section(rates, paths, MEGABYTE)
        for link in network.description(rates, paths)["site_links"]:
            start, end = link["between"]
            rate, back = (link[way]["rate"] for way in ("forward", "backward"))
            self.assertIn(f"from: {start}, to: {end}, rate: {rate}, rate_back: {back},", text)
            self.assertEqual(link["forward"]["delay"], link["backward"]["delay"])
        self.assertEqual(text.count("from:"), 13)
        self.assertNotIn("loss", network.yaml_section(rates, None, MEGABYTE))

    def test_hosts_of_a_site_are_at_it_in_the_lab_and_for_the_daemons(self):
        layout = network.SEVERAL_HOSTS
        rates = network.draw(0, layout.links)
        described = network.description(rates, None, layout)
        self.assertEqual(described["sites"], ["s1", "s2", "s3"])
        sites = {host["name"]: host["site"] for host in described["hosts"]}
        self.assertEqual(sites, layout.site_of_host())
        self.assertEqual(len(sites), 9)
        hosts = {name: types.SimpleNamespace(name=name, dataplane_address="10.0.0.1")
                 for name in sites}  # fmt: skip
        lab = types.SimpleNamespace(hosts=hosts)
        text = gradplane_nodes.node_lines(lab, "s2a", {}, sites)
        for host, site in sites.items():
            self.assertRegex(text, rf"name: {host}, .*, site: {site}}}")
        self.assertNotIn("site:", gradplane_nodes.node_lines(lab, "s2a", {}, None))
        text = gradplane_nodes.node_lines(lab, "s2a", {"s1b": 7}, None)
        self.assertEqual(text.count("link_rate"), 1)
        self.assertRegex(text, r"name: s1b, .*, port: {link_rate: 7 bit/s}}")
        self.assertEqual(network.yaml_section(rates, None, MEGABYTE).count("from:"), 3)

    def test_routes_have_the_fewest_links(self):
        routes = network.routes()
        self.assertEqual(routes[8, 9], [8, 9])
        self.assertEqual(len(routes[1, 9]), 5)
        for (start, end), way in routes.items():
            self.assertEqual((way[0], way[-1]), (start, end))
            for hop in zip(way, way[1:]):
                self.assertTrue(hop in network.LINKS or hop[::-1] in network.LINKS)

    def test_a_single_root_takes_as_long_as_its_links_need(self):
        """Site 1 has two links, and eight other sites send over them: one carries four at least."""
        rate = 8 * MEGABYTE
        one_s = 8 * bounds.wire_bytes(MEGABYTE) / rate
        self.assertGreaterEqual(network.star_seconds(alike(rate), 1, MEGABYTE), 4 * one_s)
        order = network.roots_by_time(alike(rate))
        self.assertEqual(sorted(order), list(range(1, 10)))

    def test_the_packing_bound_is_that_of_the_worst_partition(self):
        """If all links are alike, sites 6 to 9 are one part, and each other site is one. So 8 links
        carry 5 edges of each tree. Then slow links cut site 9 off."""
        rate = 8 * MEGABYTE
        one_s = 8 * bounds.wire_bytes(MEGABYTE) / rate
        self.assertAlmostEqual(network.packing_bound_s(alike(rate), MEGABYTE), one_s * 5 / 8)
        slow = alike(rate)
        slow[6, 9] = slow[9, 8] = rate / 10  # one slow direction of a link is enough
        self.assertAlmostEqual(network.packing_bound_s(slow, MEGABYTE), one_s * 5)

    def test_the_bound_of_three_sites_is_that_of_the_one_that_is_cut_off_most(self):
        """The number of hosts does not matter, because each tree goes to every site."""
        mbit = 8 * MEGABYTE
        one_s = 8 * bounds.wire_bytes(MEGABYTE) / mbit
        rates = {(1, 2): 1, (1, 3): 9, (2, 3): 2}
        both = {ends: rate * mbit for (a, b), rate in rates.items() for ends in ((a, b), (b, a))}
        self.assertAlmostEqual(network.packing_bound_s(both, MEGABYTE), one_s / 3)
        both[1, 2] = both[2, 1] = both[2, 3] = both[3, 2] = 9 * mbit
        self.assertAlmostEqual(network.packing_bound_s(both, MEGABYTE), one_s * 2 / 27)

    def test_an_oracle_goes_on_at_the_rate_of_each_draw(self):
        fast, slow = alike(16 * MEGABYTE), alike(8 * MEGABYTE)
        fast_s = network.packing_bound_s(fast, MEGABYTE)
        whole = network.bound_over_draws([fast, slow], fast_s * 2, MEGABYTE)
        self.assertAlmostEqual(whole, fast_s)
        half = network.bound_over_draws([fast, slow], fast_s / 2, MEGABYTE)
        self.assertAlmostEqual(half, fast_s / 2 + fast_s)
        with self.assertRaises(ValueError):
            network.bound_over_draws([], 1, MEGABYTE)

    def test_volumes_are_whole_elements(self):
        for volume in cases.VOLUMES_MB:
            self.assertEqual(network.volume_bytes(volume) % 4, 0)
            self.assertAlmostEqual(network.volume_bytes(volume) * 16, volume * MEGABYTE, delta=64)


class TakingPart(unittest.TestCase):
    def test_a_balanced_tree_has_every_site_once(self):
        parents = wan_contestants.parents_of_balanced_tree(5)
        self.assertEqual(parents, [4, 4, 0, 0, 4, 1, 1, 2, 2])
        self.assertEqual(wan_contestants.parents_of_star(3), [2] * 9)

    def test_every_requirement_has_its_contestants(self):
        for case in cases.make_cases(quick=False):
            names = [c.name for c in wan.make_contestants(False, case)]
            self.assertEqual(len(names), len(set(names)))
            if cases.has_several_hosts(case):
                ours = {f"gradplane-{planner}-delay" for planner in wan.PLANNERS}
                self.assertEqual(set(names), {*ours, "gloo-cubic", "tcp-server-cubic"})
                continue
            planners = ("fapt", "packed", "auto") if case["redraw_s"] else wan.PLANNERS
            for planner in planners:
                self.assertTrue(any(n.startswith(f"gradplane-{planner}-") for n in names))
            if case["redraw_s"]:
                for planner in ("fapt", "packed"):
                    modes = {
                        f"gradplane-{planner}-delay{mode}" for mode in ("", "-fixed", "-routes")
                    }
                    self.assertLessEqual(modes, set(names))
            for other in ("server", "sharded", "balanced", "pairs"):
                self.assertLessEqual({f"tcp-{other}-cubic", f"tcp-{other}-bbr"}, set(names))
            self.assertLessEqual({"gloo-cubic", "gloo-bbr"}, set(names))

    def test_labels_tell_cases_apart(self):
        labels = [cases.label(case) for case in cases.make_cases(quick=False)]
        self.assertEqual(len(labels), len(set(labels)))
        self.assertEqual(labels[0], "17 MB at full size, static")

    def test_a_changing_case_lasts_for_two_draws_and_its_times_are_scaled_with_it(self):
        changing = [case for case in cases.make_cases(quick=False) if case["redraw_s"]]
        self.assertEqual([case["redraw_s"] for case in changing], [18, 180])
        self.assertEqual([cases.period_s(case) for case in changing], [18, 45])
        for case in changing:
            self.assertGreater(cases.bound_s(case), 1.5 * cases.period_s(case))


class Ratios(unittest.TestCase):
    def test_they_are_over_the_better_server_and_fapt(self):
        def entry(name, seconds):
            return {"contestant": name, "median_s": seconds}

        failed = {"contestant": "tcp-server-reno", "failure": "gone"}
        entries = wan.with_ratios([
            entry("tcp-server-cubic", 12.0), entry("tcp-server-bbr", 8.0), failed,
            entry("gradplane-fapt-delay", 4.0), entry("gradplane-packed-delay", 2.0),
        ])  # fmt: skip
        self.assertEqual(entries[4]["over_server"], 4.0)
        self.assertEqual(entries[4]["over_fapt"], 2.0)
        self.assertNotIn("over_server", failed)

    def test_what_a_contestant_says_at_its_end_voids_its_group_alone(self):
        entries = [{"contestant": "a", "case": 1}, {"contestant": "a", "case": 2},
                   {"contestant": "b", "case": 1}]  # fmt: skip
        wan.void(entries, [1], {"a": "it fell back"})
        self.assertEqual([e.get("failure") for e in entries], ["it fell back", None, None])


class Copies(unittest.TestCase):
    def test_they_are_medians_of_each_direction_over_one_copy_on_the_wire(self):
        once = bounds.wire_bytes(MEGABYTE)
        rounds = [types.SimpleNamespace(site_link_bytes={"l1-2": [once, n * once]})
                  for n in (1, 2, 9)]  # fmt: skip
        found = harness.copies_between_sites(rounds, MEGABYTE)
        self.assertEqual(found["copies_by_link"], {"l1-2": [1, 2]})
        self.assertEqual(found["copies_between_sites"], 3)
        self.assertEqual(wan.copies_by_link(found), "1-2: 1.00 / 2.00")
        self.assertEqual(wan.copies_by_link({}), "-")

    def test_there_are_none_without_sites(self):
        rounds = [types.SimpleNamespace(site_link_bytes={})]
        self.assertEqual(harness.copies_between_sites(rounds, MEGABYTE), {})


class Redraws(unittest.TestCase):
    def test_a_round_begins_under_its_own_draw(self):
        asked = []
        lab = types.SimpleNamespace(set=lambda *words: asked.append(words))
        redraws = wan.Redraws(lab, 1000.0, MEGABYTE)
        redraws.begin(5, 0)
        oracle_s = redraws.end()
        expected = list(network.changes(network.draw(40), None))
        self.assertEqual(asked[: len(expected)], expected)
        self.assertAlmostEqual(oracle_s, network.packing_bound_s(network.draw(40), MEGABYTE))

    def test_one_that_has_not_begun_can_be_stopped(self):
        wan.Redraws(None, 1000.0, MEGABYTE).stop()


class Following(unittest.TestCase):
    def test_a_followed_round_has_the_rounds_of_its_daemon(self):
        counts = itertools.count(5)
        asked = threading.Event()

        def status(name):
            self.assertEqual(name, "s5")
            number = next(counts)
            if number == 7:
                asked.set()
            return {"jobs": [{"rounds_completed": number}]} if number != 6 else None

        nodes = types.SimpleNamespace(status=status)
        with wan_contestants.Progress(nodes, "s5", 0, pause_s=0) as found:
            self.assertTrue(asked.wait(10))
        self.assertEqual([done for _, done in found][:1], [5])
        self.assertNotIn(6, [done for _, done in found])

    def test_an_entry_has_the_progress_of_its_own_contestant(self):
        others = [types.SimpleNamespace(name="tcp"),
                  types.SimpleNamespace(name="a", progress=[[0.5, 3]]),
                  types.SimpleNamespace(name="b", progress=[])]  # fmt: skip
        self.assertEqual(wan.progress_of("a", others)["progress"], [[0.5, 3]])
        self.assertEqual(wan.progress_of("b", others), {})
        self.assertEqual(wan.progress_of("tcp", others), {})


class Trainings(unittest.TestCase):
    def test_each_case_has_a_file_of_its_own(self):
        found = wan_train.make_cases(quick=False)
        self.assertEqual(len({wan_train.slug(case) for case in found}), len(found))
        self.assertEqual(len({wan_train.label(case) for case in found}), len(found))

    def test_gloo_and_the_server_have_no_daemons(self):
        for contestant in wan_train.make_contestants(quick=False):
            is_ours = contestant.name.startswith("gradplane")
            self.assertEqual(contestant.plan is not None, is_ours)
            self.assertEqual(contestant.cc is None, is_ours)
            self.assertEqual("--server" in contestant.job_options, "server" in contestant.name)


if __name__ == "__main__":
    unittest.main()
