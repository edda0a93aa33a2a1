// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/port/port.h"

/// How a NIC gives each queue the frames of its UDP port: by receive-side scaling (RSS), which all
/// NICs with several queues have, and not by rules for flows, which differ from NIC to NIC.
///
/// RSS looks up the queue of a frame in a table, by the low bits of a hash. The hash (Toeplitz) of
/// a UDP datagram over IPv4 is made of 96 bits: source and destination address, source and
/// destination port. Each of them that is set adds, by exclusive or, the 32 bits of the key that
/// begin at its own place. So a key with one bit set makes a hash of a few bits of the destination
/// port, which are the last of the 96, and of nothing else.
namespace gradplane::port {

/// The hash is made of so many low bits of the UDP port.
inline constexpr std::size_t kRssBits = 4;
static_assert(kMaxQueues <= std::size_t{1} << kRssBits, "ports of queues differ in these bits");
/// A key that is shorter has no bits for all of a UDP datagram, and a table that is shorter none
/// for all hashes.
inline constexpr std::size_t kMinRssKeyBytes = 16;
inline constexpr std::size_t kMinRssTable = std::size_t{1} << kRssBits;

/// Writes the key, of at least kMinRssKeyBytes.
void write_rss_key(std::span<std::uint8_t> key);
/// The queue for all datagrams with this hash, of which the low kRssBits count.
std::size_t queue_of_rss_hash(const Steering& steering, std::size_t hash);

}  // namespace gradplane::port
