// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gradplane::lab {

/// The largest frame that passes: an MTU of 1500 with a VLAN tag, and some room.
inline constexpr std::size_t kMaxFrameBytes = 2048;
inline constexpr std::size_t kEthernetHeaderBytes = 14;

/// A MAC address as a number. The frame has kEthernetHeaderBytes at least.
std::uint64_t destination_mac(std::span<const std::byte> frame);
std::uint64_t source_mac(std::span<const std::byte> frame);
/// Broadcast or multicast.
bool is_group(std::uint64_t mac);

/// Whether this is an IPv4 packet whose sender understands ECN, marked or not.
bool is_ecn_capable(std::span<const std::byte> frame);
/// Sets Congestion Experienced and mends the header's checksum. For ECN capable frames only.
void mark_congestion(std::span<std::byte> frame);

}  // namespace gradplane::lab
