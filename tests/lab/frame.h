// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gradplane::lab {

/// The largest frame that is forwarded: an MTU of 1500 with a VLAN tag, and some reserve.
inline constexpr std::size_t kMaxFrameBytes = 2048;
inline constexpr std::size_t kEthernetHeaderBytes = 14;

/// The MAC addresses of a frame as numbers. The frame has at least kEthernetHeaderBytes.
std::uint64_t destination_mac(std::span<const std::byte> frame);
std::uint64_t source_mac(std::span<const std::byte> frame);
/// Whether the address is for broadcast or multicast.
bool is_group(std::uint64_t mac);

/// Whether this is an IPv4 packet with ECN, marked or not.
bool is_ecn_capable(std::span<const std::byte> frame);
/// Sets Congestion Experienced and updates the header's checksum. Only for frames with ECN.
void mark_congestion(std::span<std::byte> frame);

}  // namespace gradplane::lab
