# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The physical bound of a case, and the statistics of its samples. Pure."""

import math
import random
import statistics

ETHERNET_IP_UDP_BYTES = 66  # preamble, gap, Ethernet header and checksum, IP, UDP
HEADER_BYTES = 56  # docs/wire-protocol.md
MTU_BYTES = 1500
IP_UDP_BYTES = 28
BLOCK_ALIGN_BYTES = 64
BOOTSTRAP_DRAWS = 10_000
BOOTSTRAP_SEED = 1


def block_bytes(mtu=MTU_BYTES):
    """The payload of a packet: the largest multiple of 64 that fits."""
    return (mtu - IP_UDP_BYTES - HEADER_BYTES) // BLOCK_ALIGN_BYTES * BLOCK_ALIGN_BYTES


def wire_bytes(message_bytes, mtu=MTU_BYTES):
    """W of docs/protocol.md, section 9: the bytes on the wire of a message, in whole packets."""
    payload = block_bytes(mtu)
    packets = math.ceil(message_bytes / payload)
    return packets * (payload + HEADER_BYTES + ETHERNET_IP_UDP_BYTES)


def incast_bound_s(senders, message_bytes, rate_bits):
    """N senders push M bytes each over one link of the receiver: N W / C."""
    return senders * wire_bytes(message_bytes) * 8 / rate_bits


def allreduce_bound_s(hosts, message_bytes, rate_bits):
    """A sum that is sharded over all hosts, or a ring: 2 W (N-1) / N / C."""
    return 2 * wire_bytes(message_bytes) * (hosts - 1) / hosts * 8 / rate_bits


def star_bound_s(hosts, message_bytes, rate_bits):
    """A root on one of the hosts gets N-1 pushes over one link, while its results leave."""
    return (hosts - 1) * wire_bytes(message_bytes) * 8 / rate_bits


def percentile(samples, share):
    """The smallest sample that at least `share` of them do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median_interval(samples, confidence=0.95):
    """A distribution-free confidence interval of the median, from order statistics. None with fewer
    than six samples, because even their range covers less than 95 %."""
    ordered = sorted(samples)
    n = len(ordered)
    if n < 6:
        return None
    tail = (1 - confidence) / 2
    below = 0.0  # P(Binomial(n, 1/2) < k)
    k = 0
    while k < n // 2 and below + math.comb(n, k) / 2**n <= tail:
        below += math.comb(n, k) / 2**n
        k += 1
    return [ordered[k - 1], ordered[n - k]]


def bootstrap_interval(samples, confidence=0.95):
    """A confidence interval of the median by the percentile bootstrap (Efron and Tibshirani, An
    Introduction to the Bootstrap, section 13.3). Equal samples give equal intervals; fewer than two
    give None.

    The interval lies within the range of the n samples. The true median lies outside of this range
    with a probability of 2^(1-n), so with few samples the confidence is less than `confidence`.
    """
    if len(samples) < 2:
        return None
    draw = random.Random(BOOTSTRAP_SEED)
    medians = sorted(
        statistics.median(draw.choices(samples, k=len(samples))) for _ in range(BOOTSTRAP_DRAWS)
    )
    tail = (1 - confidence) / 2
    return [percentile(medians, tail), percentile(medians, 1 - tail)]


def summary(samples):
    return {
        "runs": len(samples),
        "median_s": statistics.median(samples),
        "p99_s": percentile(samples, 0.99),
        "ci95_s": median_interval(samples),
    }
