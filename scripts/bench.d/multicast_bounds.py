# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Lower bounds for exchanges, all-reduces and broadcasts over links of unequal rates behind one
switch. Both directions of a link have one rate. Pure. Rates are in bits per second, one for each
rank; times are in seconds, for `message_bytes` of each rank in whole packets."""

import math
import random

import bounds

BISECTIONS = 60


def draw_rates(hosts, low_mbit, high_mbit, seed):
    """Random rates of whole Mbit/s, uniformly distributed."""
    drawn = random.Random(seed)
    return [drawn.randint(low_mbit, high_mbit) * 10**6 for _ in range(hosts)]


def least_receivers(share, ranks):
    """The number of receivers, rounded as the daemon rounds `training.receivers`."""
    return math.ceil(round(share * (ranks - 1), 6))


def copies_s(rates, copies, message_bytes):
    """The time of the link that takes longest. `copies` has the copies of the message by rank."""
    bits = 8 * bounds.wire_bytes(message_bytes)
    return max(count * bits / rate for count, rate in zip(copies, rates))


def allreduce_s(rates, message_bytes):
    """The bound of an all-reduce, whichever nodes sum. Each rank receives all of the result, or
    sends all of its own. The sum of a block over n ranks needs n - 1 receptions, and its result
    n - 1 more. Copies by the switch change neither."""
    bits = 8 * bounds.wire_bytes(message_bytes)
    return max(bits / min(rates), 2 * (len(rates) - 1) * bits / sum(rates))


def broadcast_s(rates, source, message_bytes):
    """The bound of a broadcast if the switch makes the copies: the source sends once, and each
    other rank receives."""
    others = [rate for rank, rate in enumerate(rates) if rank != source]
    return 8 * bounds.wire_bytes(message_bytes) / min([rates[source], *others])


def received_copies(senders):
    return [len(those) for those in senders]


def sent_copies(senders, replicated):
    """The copies that each rank sends. `senders` has, for each rank, those whose update it gets."""
    sent = [sum(rank in those for those in senders) for rank in range(len(senders))]
    return [min(count, 1) for count in sent] if replicated else sent


def selection_s(rates, senders, message_bytes, replicated):
    """The time of a round with these senders."""
    up = copies_s(rates, sent_copies(senders, replicated), message_bytes)
    return max(up, copies_s(rates, received_copies(senders), message_bytes))


def exchange_s(rates, receivers, freshness, message_bytes, replicated):
    """The bound of an exchange: the mean over the freshness + 1 rounds of a cycle of the best
    selections, in which each pair meets and each update has so many receivers. Fast links carry all
    updates, and the others share what is left. Updates are divisible here, so it is a lower bound.
    """
    ranks, bits = len(rates), 8 * bounds.wire_bytes(message_bytes)
    fresh = (ranks - 1) / (freshness + 1)
    pairs = ranks * max(receivers, fresh)
    low = max(
        copies_s(rates, [1 if replicated else max(receivers, fresh)] * ranks, message_bytes),
        copies_s(rates, [fresh] * ranks, message_bytes),
    )

    def carried(seconds):
        return sum(min(ranks - 1, rate * seconds / bits) for rate in rates)

    if carried(low) >= pairs:
        return low
    high = copies_s(rates, [ranks - 1] * ranks, message_bytes)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if carried(middle) >= pairs else (middle, high)
    return high
