// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/endpoint.h"
#include "dataplane/port/dpdk/frame.h"

/// Offsets and values of the header fields that parsing and building share.
namespace gradplane::port {

inline constexpr std::size_t kMacBytes = 6;
inline constexpr std::uint16_t kTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kTypeArp = 0x0806;
inline constexpr std::uint16_t kTypeVlan = 0x8100;
inline constexpr std::uint16_t kVlanIdMask = 0x0fff;
inline constexpr unsigned kVlanPriorityShift = 13;

inline constexpr std::uint16_t kArpEthernet = 1;
inline constexpr std::uint16_t kArpRequest = 1;
inline constexpr std::uint16_t kArpReply = 2;
inline constexpr std::size_t kArpOperationOffset = 6;
inline constexpr std::size_t kArpSenderMacOffset = 8;
inline constexpr std::size_t kArpSenderOffset = 14;
inline constexpr std::size_t kArpTargetOffset = 24;
static_assert(kArpTargetOffset + sizeof(Ipv4) == kArpBytes);

inline constexpr std::uint8_t kIpv4NoOptions = 0x45;
inline constexpr std::uint8_t kIpv4RouterAlert = 0x46;
inline constexpr std::uint8_t kIpv4WordsMask = 0x0f;
// RFC 2113: every router examines the packet.
inline constexpr std::uint32_t kRouterAlert = 0x94040000;
inline constexpr std::size_t kIpTrafficClassOffset = 1;
inline constexpr std::size_t kIpTotalOffset = 2;
inline constexpr std::size_t kIpFragmentOffset = 6;
inline constexpr std::size_t kIpTtlOffset = 8;
inline constexpr std::size_t kIpProtocolOffset = 9;
inline constexpr std::size_t kIpChecksumOffset = 10;
inline constexpr std::size_t kIpSourceOffset = 12;
inline constexpr std::size_t kIpDestinationOffset = 16;
static_assert(kIpDestinationOffset + sizeof(Ipv4) == kIpv4Bytes);
inline constexpr std::uint16_t kIpDontFragment = 0x4000;
inline constexpr std::uint16_t kIpFragmentMask = 0x3fff;  // more-fragments and the offset
inline constexpr std::uint8_t kEcnMask = 3;
inline constexpr std::uint8_t kEcnCapable = 2;  // ECT(0)
inline constexpr std::uint8_t kEcnCongestionExperienced = 3;
inline constexpr std::uint8_t kProtocolIcmp = 1;
inline constexpr std::uint8_t kProtocolIgmp = 2;
inline constexpr std::uint8_t kProtocolUdp = 17;

inline constexpr std::size_t kUdpLengthOffset = 4;
inline constexpr std::size_t kUdpChecksumOffset = 6;
inline constexpr std::size_t kIcmpBytes = 8;
inline constexpr std::size_t kIcmpChecksumOffset = 2;
inline constexpr std::uint8_t kIcmpEchoRequest = 8;
inline constexpr std::uint8_t kIcmpEchoReply = 0;

inline constexpr std::size_t kIgmpCodeOffset = 1;
inline constexpr std::size_t kIgmpChecksumOffset = 2;
inline constexpr std::size_t kIgmpGroupOffset = 4;  // in a query, and in version 2 messages
inline constexpr std::size_t kIgmpRecordCountOffset = 6;
inline constexpr std::size_t kIgmpQuery3Bytes = 12;  // without the list of sources
inline constexpr std::size_t kIgmpSenderCountOffset = 10;
inline constexpr std::size_t kGroupRecordGroupOffset = 4;
inline constexpr std::uint8_t kIgmpQuery = 0x11;
inline constexpr std::uint8_t kIgmpReport2 = 0x16;
inline constexpr std::uint8_t kIgmpLeave2 = 0x17;
inline constexpr std::uint8_t kIgmpReport3 = 0x22;

/// The result of checksum_fold() over a header that contains its correct checksum.
inline constexpr std::uint16_t kGoodSum = 0xffff;

/// An address that a host may have: not in 0.0.0.0/8, loopback, multicast, reserved or broadcast.
constexpr bool is_host_address(Ipv4 a) {
  const std::uint32_t first = a.value >> 24;
  return first != 0 && first != 127 && first < 224;
}

}  // namespace gradplane::port
