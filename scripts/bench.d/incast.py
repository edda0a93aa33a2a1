# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`incast`: N workers give M bytes each to one server at the same moment and take the sum back. A
parameter server over three kinds of TCP, and gradplane with a star whose root is the server."""

import bounds
import cases
import contestants as peers
from cases import KIB, MIB

DESCRIPTION = __doc__
REPEATS = 15
QUICK_REPEATS = 5
WARM_UP = 2
LIMIT_SECONDS = 20
QUICK_LIMIT_SECONDS = 5


def make_contestants(quick):
    congestion_controls = ("cubic",) if quick else ("reno", "cubic", "bbr")
    servers = [peers.ParameterServerContestant(cc) for cc in congestion_controls]
    return [peers.GradplaneContestant("star", root_is_first_host=True)] + servers


def make_cases(quick):
    """`hosts` counts the server too."""
    if quick:
        return [cases.case(1 + 4, 256 * KIB), cases.case(1 + 8, 256 * KIB)]
    found = [cases.case(1 + senders, 256 * KIB) for senders in (2, 4, 8, 16, 32)]
    found += [cases.case(1 + 8, size) for size in (64 * KIB, MIB, 4 * MIB)]
    found.append(cases.case(1 + 8, MIB, loss=0.01, loss_model="random"))
    found.append(cases.case(1 + 8, MIB, rtt_ms=40, loss=0.01, loss_model="random"))
    return found


def bound_s(case):
    """The last pushed block is summed when the results of the others have left: one transfer."""
    return bounds.incast_bound_s(case["hosts"] - 1, case["bytes"], case["rate_bits_per_second"])
