# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""How the switch of a lab treats frames to groups."""

# flood: it sends them to all ports. snoop: only to ports with a member, for which it asks by IGMP.
# drop: to none.
KINDS = ("flood", "snoop", "drop")
IGMP_VERSIONS = (2, 3)
# How often it asks, how long hosts may take to answer, and when it forgets members that do not:
# RFC 3376, section 8.4, with a robustness of 2.
QUERY_SECONDS = 2
QUERY_RESPONSE_SECONDS = 1
MEMBERSHIP_SECONDS = 2 * QUERY_SECONDS + QUERY_RESPONSE_SECONDS


def bridge_options(kind, igmp_version):
    """The options of a Linux bridge. Its times are in hundredths of a second."""
    if kind != "snoop":
        return "mcast_snooping 0"
    return (
        f"mcast_snooping 1 mcast_querier 1 mcast_igmp_version {igmp_version} "
        f"mcast_query_interval {100 * QUERY_SECONDS} "
        f"mcast_query_response_interval {100 * QUERY_RESPONSE_SECONDS} "
        f"mcast_startup_query_interval {100 * QUERY_SECONDS} "
        f"mcast_membership_interval {100 * MEMBERSHIP_SECONDS}"
    )


def members(listing, bridge):
    """{address of a group: hosts in it}, from the output of `bridge -j mdb show`."""
    found = {}
    for entry in (entry for part in listing for entry in part["mdb"] if entry["dev"] == bridge):
        found.setdefault(entry["grp"], set()).add(entry["port"].partition("-")[2])
    return found
