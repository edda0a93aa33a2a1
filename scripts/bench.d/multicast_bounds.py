# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""What exchanges, all-reduces and broadcasts take at least over links of unequal rates, each as
fast in both directions, behind one switch. Pure. Rates are in bits per second, one for each rank;
times are of `message_bytes` of each rank in whole packets."""

import math
import random

import bounds

BISECTIONS = 60


def draw_rates(hosts, low_mbit, high_mbit, seed):
    """Whole Mbit/s, each as likely as any other."""
    drawn = random.Random(seed)
    return [drawn.randint(low_mbit, high_mbit) * 10**6 for _ in range(hosts)]


def least_receivers(share, ranks):
    """As the daemon rounds `training.receivers`."""
    return math.ceil(round(share * (ranks - 1), 6))


def copies_s(rates, copies, message_bytes):
    """The time of the link that takes longest. `copies` of the message, by rank."""
    bits = 8 * bounds.wire_bytes(message_bytes)
    return max(count * bits / rate for count, rate in zip(copies, rates))


def allreduce_s(rates, message_bytes):
    """Whoever sums: each rank receives all of the result, or sends all of its own. A block that is
    summed over n ranks is received n - 1 times on its way, and its sum by n - 1 ranks. Copies by
    the switch change neither."""
    bits = 8 * bounds.wire_bytes(message_bytes)
    return max(bits / min(rates), 2 * (len(rates) - 1) * bits / sum(rates))


def broadcast_s(rates, source, message_bytes):
    """Where the switch makes the copies: the source sends once, and each other rank receives."""
    others = [rate for rank, rate in enumerate(rates) if rank != source]
    return 8 * bounds.wire_bytes(message_bytes) / min([rates[source], *others])


def received_copies(senders):
    return [len(those) for those in senders]


def sent_copies(senders, replicated):
    """`senders` has those whose update each rank received."""
    sent = [sum(rank in those for those in senders) for rank in range(len(senders))]
    return [min(count, 1) for count in sent] if replicated else sent


def selection_s(rates, senders, message_bytes, replicated):
    """Of a round with these senders."""
    up = copies_s(rates, sent_copies(senders, replicated), message_bytes)
    return max(up, copies_s(rates, received_copies(senders), message_bytes))


def exchange_s(rates, receivers, freshness, message_bytes, replicated):
    """The mean over a cycle of freshness + 1 rounds in which each pair meets, each update has so
    many receivers, and no selection is better: links that take all updates need no more than that,
    the others share what is left. Updates are divisible here, so it is a lower bound."""
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
