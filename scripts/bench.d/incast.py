# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`incast`: N workers push M bytes each to one server at the same moment and get the sum back,
while another host sends it small packets. Compares a parameter server over kernel TCP, and
gradplane with a star whose root is the server: with even shares of its link, with grants, and with
only a congestion controller."""

import pathlib
import sys

import bounds
import cases
import contestants as peers
import report
from cases import KIB, MIB
from light_contestant import LightContestant

DESCRIPTION = __doc__
HAS_VICTIM = True
REPEATS = 15
QUICK_REPEATS = 5
WARM_UP = 2
LIMIT_SECONDS = 8
QUICK_LIMIT_SECONDS = 3
GRANTS = "grants: {enabled: true}\n"
SHARES = "grants: {enabled: false}\n"
CONTROLLERS = ("reno", "cubic", "swift", "dctcp")
KERNEL_TCP = ("reno", "cubic", "bbr", "dctcp")
QUEUE_BYTES = 64 * KIB
MARK_BYTES = 20 * KIB


def kernel_tcp():
    """The congestion controls that the kernel has. Reading the list makes it load more."""
    shown = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    missing = [name for name in KERNEL_TCP if name not in shown]
    if missing:
        print(f"bench: this kernel has no TCP {', '.join(missing)}", file=sys.stderr)
    return [name for name in KERNEL_TCP if name in shown]


def controller(name):
    return LightContestant(
        name, extra=f"congestion: {{controller: {name}}}\n", tells_links=False
    )


def make_contestants(quick):
    ours = [
        LightContestant("shares", extra=SHARES),
        LightContestant("grants", extra=GRANTS, tells_buffer=True),
    ]
    ours += [controller(name) for name in (("cubic",) if quick else CONTROLLERS)]
    servers = ("cubic",) if quick else kernel_tcp()
    return ours + [peers.ParameterServerContestant(cc) for cc in servers]


def make_cases(quick):
    """The cases. `hosts` counts the server, too, but not the host of the victim flow."""
    if quick:
        return [cases.case(1 + 4, 256 * KIB), cases.case(1 + 8, 256 * KIB)]
    found = [cases.case(1 + senders, 256 * KIB) for senders in (2, 4, 8, 16, 32)]
    found += [cases.case(1 + 8, size) for size in (64 * KIB, MIB)]
    for senders in (8, 16):
        small = {"queue_bytes": QUEUE_BYTES}
        found.append(cases.case(1 + senders, 256 * KIB, **small))
        found.append(cases.case(1 + senders, 256 * KIB, **small, mark_bytes=MARK_BYTES))
    return found


def group_of(case):
    """Cases for which daemons can stay up: grant schedulers are told of the switch at their start.
    """
    return case["hosts"], case["queue_bytes"]


def is_asked(contestant, case):
    """Whether a contestant takes part: DCTCP does only where switches mark."""
    return not contestant.endswith("dctcp") or "mark_bytes" in case


def bound_s(case):
    """The bound is one transfer: when the last push has come, the other results have left."""
    return bounds.incast_bound_s(case["hosts"] - 1, case["bytes"], case["rate_bits_per_second"])


def waited_text(entry, keys=("victim_p50_s", "victim_p99_s")):
    times = [f"{entry[key] * 1000:.2f}" if entry.get(key) else "-" for key in keys]
    lost = entry.get("victim_lost")
    return " / ".join(times) + " ms" + (f", {lost} lost" if lost else "")


def victim_text(entry):
    """The median delay while idle, then median and p99 during the rounds."""
    return waited_text(entry, ("victim_idle_p50_s", "victim_p50_s", "victim_p99_s"))


def spread_text(entry):
    return f"{entry['sender_spread']:.2f}" if entry.get("sender_spread") else "-"


def senders_text(entry):
    deepest = entry["deepest_queue_bytes"] / KIB
    return f"{spread_text(entry)} / {deepest:.0f} KiB / {entry.get('queue_drops', '-')}"


MORE_OVERVIEWS = (
    ("Last over first sender / deepest queue / drops of all rounds", senders_text),
    ("Delay of a victim's packets in rounds, median / p99", waited_text),
)
_EVERYWHERE = [column for column in report.COLUMNS
               if column[0] not in ("spread", "of pushes", "MB on wire")]  # fmt: skip
_BEFORE_CPU = -len(report.CPU_COLUMNS)
COLUMNS = (
    *_EVERYWHERE[:_BEFORE_CPU],
    ("drops", lambda e: str(e.get("queue_drops", "-"))),
    ("senders' spread", spread_text),
    ("victim: idle / median / p99", victim_text),
    *_EVERYWHERE[_BEFORE_CPU:],
)
