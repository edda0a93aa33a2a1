# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`ltp`: the case for which LTP (IWQoS 2023) was made: eight workers and one server over long paths
that lose frames. Compares a parameter server over three kinds of TCP, and gradplane with a star
whose root is the server: exact, with LTP's preset, with one bound of 5 %, and with exact sums in
a wire type."""

import bounds
import cases
import contestants as peers
import report
from cases import KIB, MIB
from wire_type_contestant import WireTypeContestant

DESCRIPTION = __doc__
COLUMNS = report.TOLERANT_COLUMNS
HOSTS = 1 + 8
REPEATS = 9
QUICK_REPEATS = 3
WARM_UP = 2
LIMIT_SECONDS = 45
QUICK_LIMIT_SECONDS = 4
# TCP that takes losses for congestion needs over a minute for 4 MiB at 100 ms and 3 %.
ROUND_SECONDS = 300


def make_contestants(quick):
    # The rank program can tell only after `zero` and `rescale` which ranks are in a sum.
    ours = [
        peers.TolerantContestant("star", "exact", peers.EXACT, root_is_first_host=True),
        peers.TolerantContestant(
            "star", "ltp", "preset: ltp", compensation="zero", root_is_first_host=True
        ),
        peers.TolerantContestant("star", "5pc", 'bounds: {"*": 5 %}', root_is_first_host=True),
        *(WireTypeContestant("star", wire, root_is_first_host=True) for wire in ("bf16", "int8")),
    ]
    congestion_controls = ("bbr",) if quick else ("reno", "cubic", "bbr")
    return ours + [peers.ParameterServerContestant(cc) for cc in congestion_controls]


def make_cases(quick):
    """The cases. Those without loss come first, as in `allreduce`."""

    def case(size, rtt_ms, loss):
        return cases.case(HOSTS, size, rtt_ms=rtt_ms, loss=loss, loss_model="random")

    if quick:
        return [case(256 * KIB, 40, 0.01), case(MIB, 100, 0.03)]
    found = [case(MIB, 100, 0), case(MIB, 100, 0.01)]
    for rtt_ms, loss in ((40, 0.01), (100, 0.03)):
        found += [case(size, rtt_ms, loss) for size in (64 * KIB, MIB, 4 * MIB, 16 * MIB)]
    return found


def is_asked(contestant, case):
    """Whether a contestant takes part. Those that need minutes for a round do not, because daemons
    of others would take their peers for dead."""
    loss_is_congestion = contestant in ("parameter-server-reno", "parameter-server-cubic")
    return not (loss_is_congestion and case["bytes"] > 4 * MIB and case["loss"] > 0.01)


def bound_s(case):
    """The bound of an exact sum. A round that lacks something may take less."""
    return bounds.incast_bound_s(case["hosts"] - 1, case["bytes"], case["rate_bits_per_second"])
