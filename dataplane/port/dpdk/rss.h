// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/port/port.h"

/// How a NIC gives each queue the frames of its UDP port. It uses receive-side scaling (RSS), which
/// all NICs with several queues have, instead of flow rules, which differ from NIC to NIC.
///
/// RSS looks up the queue of a frame in a table, by the low bits of a hash. The Toeplitz hash of a
/// UDP datagram over IPv4 covers 96 bits: source and destination address, source and destination
/// port. Each input bit that is set adds, by exclusive or, the 32 bits of the key that begin at its
/// own position. So with a key that has only one bit set, the hash depends only on a few bits of
/// the destination port, which are the last of the 96.
namespace gradplane::port {

/// The hash depends on this many low bits of the UDP port.
inline constexpr std::size_t kRssBits = 4;
static_assert(kMaxQueues <= std::size_t{1} << kRssBits, "ports of queues differ in these bits");
/// A shorter key does not cover all 96 bits, and a shorter table does not have an entry for each
/// hash.
inline constexpr std::size_t kMinRssKeyBytes = 16;
inline constexpr std::size_t kMinRssTable = std::size_t{1} << kRssBits;

/// Writes the key, which must have at least kMinRssKeyBytes.
void write_rss_key(std::span<std::uint8_t> key);
/// The queue for all datagrams with this hash; only its low kRssBits count.
std::size_t queue_of_rss_hash(const Steering& steering, std::size_t hash);

}  // namespace gradplane::port
