# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`allreduce`: every host has M bytes and needs the sum over all hosts. Compares Gloo over three
kinds of TCP, Open MPI, a parameter server, and gradplane with a star, with shares, and with wire
types."""

import bounds
import cases
import contestants as peers
from cases import KIB, MIB
from wire_type_contestant import WireTypeContestant

DESCRIPTION = __doc__
REPEATS = 15
QUICK_REPEATS = 5
WARM_UP = 2
GRANTS = "grants: {enabled: true}\n"
LIMIT_SECONDS = 20  # for each contestant of a case
QUICK_LIMIT_SECONDS = 5


def case(hosts, size, **more):
    """A case at 100 Mbit/s, because two CPUs can carry eight hosts and the switch at this rate."""
    return cases.case(hosts, size, rate_mbit=100, **more)


def make_contestants(quick):
    ours = [peers.GradplaneContestant("sharded"), peers.GradplaneContestant("star")]
    if not quick:
        ours += [
            peers.GradplaneContestant(plan, extra=GRANTS, name="-grants")
            for plan in ("sharded", "star")
        ]
        ours += [WireTypeContestant("sharded", wire) for wire in ("fp32", "bf16", "int8")]
        ours.append(WireTypeContestant("sharded", "int8", "carry"))
    gloo = [peers.GlooContestant(cc) for cc in (("cubic",) if quick else ("reno", "cubic", "bbr"))]
    others = [peers.OpenMpiContestant("cubic")]
    others += [] if quick else [peers.ParameterServerContestant("cubic", server_has_rank=True)]
    return ours + gloo + others


def make_cases(quick):
    """Varies one parameter at a time, from 8 hosts, 1 MiB, 0.2 ms and no loss. Cases without loss
    come first, because connections stay open for all cases of as many hosts, and remember losses.
    """
    if quick:
        return [
            case(4, MIB),
            case(4, MIB, loss=0.01, loss_model="random"),
        ]
    found = [case(hosts, MIB) for hosts in (4, 8)]
    found += [case(8, size * KIB) for size in (64, 256, 4096, 16384, 65536)]
    found += [case(8, MIB, rtt_ms=rtt_ms) for rtt_ms in (1, 10, 40)]
    for loss in (0.0001, 0.001, 0.01, 0.03):
        found.append(case(8, MIB, loss=loss, loss_model="random"))
    for size in (64 * KIB, 16 * MIB):
        found.append(case(8, size, loss=0.01, loss_model="random"))
    for rtt_ms in (1, 10, 40):
        found.append(case(8, MIB, rtt_ms=rtt_ms, loss=0.01, loss_model="random"))
    found.append(case(8, MIB, loss=0.01, loss_model="burst"))
    found.append(case(8, MIB, loss=0.05, loss_model="grey"))
    return found


def bound_s(of_case):
    return bounds.allreduce_bound_s(
        of_case["hosts"], of_case["bytes"], of_case["rate_bits_per_second"]
    )
