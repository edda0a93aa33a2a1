#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The benchmark of the simulated incast: its results for a few senders, in virtual time."""

import sys

from cluster import ROOT, expect, run

sys.path.insert(0, str(ROOT / "scripts/bench.d"))
import harness  # noqa: E402
import incast_sim  # noqa: E402

SENDERS = 8
PERCENT = 100


def blocks_complete_in_the_order_of_the_grants():
    case = incast_sim.make_case(SENDERS)
    entry = incast_sim.measure("grants", case)
    quantiles = entry["block_complete_quantiles_s"]
    expect(len(quantiles) == PERCENT + 1, f"one for each percent: {quantiles}")
    expect(quantiles == sorted(quantiles), f"they rise: {quantiles}")
    expect(quantiles[-1] == entry["median_s"], f"the last block ends it: {entry}")
    expect(0 < entry["victim_p50_s"] < entry["victim_p99_s"], f"a victim was there: {entry}")
    half = quantiles[PERCENT // 2] / entry["median_s"]
    expect(abs(half - 0.5) < 0.01, f"block by block half is complete after half: {half}")


def a_full_queue_is_counted():
    case = incast_sim.make_case(SENDERS)
    grants, reno = incast_sim.measure("grants", case), incast_sim.measure("reno", case)
    expect(grants["queue_drops"] == 0 < reno["queue_drops"], f"grants lose nothing: {grants}")
    expect(reno["deepest_queue_bytes"] <= incast_sim.BUFFER_BYTES, f"no more fits: {reno}")
    expect(grants["victim_p99_s"] < reno["victim_p50_s"], f"a victim waits: {grants}, {reno}")
    shown = incast_sim.tables([grants, reno])
    expect("| senders | grants | reno |" in shown, f"a column each: {shown}")
    expect(f"/ {reno['queue_drops']} |" in shown, f"the drops of Reno: {shown}")


def what_the_simulator_refuses_is_told():
    try:
        incast_sim.simulate("nonsense", incast_sim.make_case(SENDERS))
    except harness.BenchError as error:
        expect("nonsense" in str(error), f"it says what: {error}")
    else:
        expect(False, "nothing was refused")


if __name__ == "__main__":
    sys.exit(
        run(
            [
                blocks_complete_in_the_order_of_the_grants,
                a_full_queue_is_counted,
                what_the_simulator_refuses_is_told,
            ]
        )
    )
