# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The cases of `wan`, and their labels. Pure."""

import wan_network as network

VOLUMES_MB = (17, 98, 182)
QUICK_VOLUME_MB = 17
# With this draw fapt's trees are fast, and the links of most sites are slow for a single root.
FAST_TREES_DRAW = 14
# The pause between two redraws at full size, and a volume that takes two draws or more. The
# reaction times of daemons cannot be scaled. So the volume is scaled like the rates if possible,
# and then all times are those at full size. With the longer pause that would take too long.
CHANGING = (
    {"redraw_s": 18, "volume_mb": 320, "volume_scale": network.RATE_SCALE},
    {"redraw_s": 180, "volume_mb": 2560, "volume_scale": network.VOLUME_SCALE},
)
# Rounds of 4 MiB, as they are by default, scaled with the volumes. A plan becomes active up to
# 32 rounds beyond the newest, so operators of links that change make them smaller
# (docs/planners.md).
STEADY_ROUND_KIB = int(4096 * network.VOLUME_SCALE)
CHANGING_ROUND_KIB = 64
SEVERAL_HOSTS_VOLUMES_MB = (17, 98)


def case(volume_mb, redraw_s=None, has_paths=False, draw=0, volume_scale=network.VOLUME_SCALE,
         several_hosts=False):  # fmt: skip
    """`redraw_s` is the pause between two redraws at full size; None: the rates stay those of
    `draw`. With `several_hosts` there are fewer sites, with several hosts each."""
    # This key is left out for one host, so that cases of older files stay equal to these.
    layout = {"hosts_at_site": network.SEVERAL_HOSTS.hosts_at_site} if several_hosts else {}
    return {
        **layout,
        "hosts": (network.SEVERAL_HOSTS if several_hosts else network.NETSTORM).hosts,
        "volume_mb": volume_mb,
        "bytes": network.volume_bytes(volume_mb, volume_scale),
        "redraw_s": redraw_s,
        "has_paths": has_paths,
        "draw": draw,
        "rate_scale": float(network.RATE_SCALE),
        "volume_scale": float(volume_scale),
        "network_seed": network.SEED,
    }


def make_cases(quick):
    if quick:
        return [case(QUICK_VOLUME_MB)]
    found = [case(volume) for volume in VOLUMES_MB]
    found += [case(volume, has_paths=True) for volume in VOLUMES_MB]
    found.append(case(VOLUMES_MB[0], draw=FAST_TREES_DRAW))
    found += [case(volume, several_hosts=True) for volume in SEVERAL_HOSTS_VOLUMES_MB]
    return found + [case(**changing) for changing in CHANGING]


def label(of_case):
    words = [f"{of_case['volume_mb']} MB at full size"]
    if has_several_hosts(of_case):
        layout = layout_of(of_case)
        words.append(f"{len(layout.sites)} sites of {layout.hosts_at_site} hosts")
    if of_case["has_paths"]:
        words.append("delays and losses")
    if of_case["redraw_s"]:
        words.append(f"redrawn every {of_case['redraw_s']} s")
    if len(words) == 1:
        words.append("static")
    if of_case.get("draw"):
        words.append(f"draw {of_case['draw']}")
    return ", ".join(words)


def has_several_hosts(of_case):
    return "hosts_at_site" in of_case


def layout_of(of_case):
    return network.SEVERAL_HOSTS if has_several_hosts(of_case) else network.NETSTORM


def rates_of(of_case):
    """The rates of a case. If they change, the first ones."""
    return network.draw(of_case["draw"], layout_of(of_case).links)


def paths_of(of_case):
    return network.draw_paths() if of_case["has_paths"] else None


def group_of(of_case):
    """A key that is equal for cases in which the same daemons can stay up, because their
    configuration has the same network and paths."""
    several = has_several_hosts(of_case)
    return several, of_case["has_paths"], bool(of_case["redraw_s"]), of_case["draw"]


def period_s(of_case):
    """The pause between two redraws, scaled."""
    return of_case["redraw_s"] * of_case["volume_scale"] / of_case["rate_scale"]


def bound_s(of_case):
    return network.packing_bound_s(rates_of(of_case), of_case["bytes"])
