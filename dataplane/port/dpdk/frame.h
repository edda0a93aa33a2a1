// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/endpoint.h"
#include "dataplane/base/time.h"
#include "dataplane/port/group_table.h"
#include "dataplane/port/port.h"

/// Ethernet, VLAN, ARP, IPv4, UDP, ICMP echo and IGMP on plain bytes, without state or device.
namespace gradplane::port {

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  constexpr auto operator<=>(const MacAddress&) const = default;
  constexpr bool is_group() const { return (bytes[0] & 1) != 0; }
  constexpr bool is_zero() const { return *this == MacAddress{}; }
};
inline constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

/// The Ethernet address of a group (RFC 1112, section 6.4). 32 groups share each address.
constexpr MacAddress group_mac(Ipv4 group) {
  return {{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(group.value >> 16 & 0x7f),
           static_cast<std::uint8_t>(group.value >> 8), static_cast<std::uint8_t>(group.value)}};
}

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kVlanTagBytes = 4;
inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kArpBytes = 28;
/// The shortest frame, without frame check sequence; shorter frames are padded.
inline constexpr std::size_t kMinFrameBytes = 60;
inline constexpr std::size_t kIpUdpBytes = kIpv4Bytes + kUdpBytes;
inline constexpr std::uint16_t kMaxVlanId = 4094;

/// DiffServ code points, and the 802.1Q priorities that go with them.
inline constexpr std::uint8_t kControlDscp = 48;  // CS6
inline constexpr std::uint8_t kDataDscp = 18;     // AF21
inline constexpr std::uint8_t kControlVlanPriority = 6;
inline constexpr std::uint8_t kDataVlanPriority = 2;
inline constexpr std::uint8_t kTimeToLive = 64;

/// Where routers and switches send general queries, and where hosts report (RFC 3376).
inline constexpr Ipv4 kAllHosts{0xe0000001};
inline constexpr Ipv4 kAllRouters{0xe0000002};
inline constexpr Ipv4 kAllGroupRouters{0xe0000016};

/// What a frame must match to be accepted.
struct FrameFilter {
  MacAddress mac;
  Ipv4 address;
  std::optional<std::uint16_t> vlan;   // none: untagged frames and priority tags (VLAN 0) only
  const GroupTable* groups = nullptr;  // the groups that we are in; null: none
};

/// What the device already knows about a frame's checksums.
enum class ChecksumHint : std::uint8_t { kUnknown, kGood, kBad };
struct ChecksumHints {
  ChecksumHint ip = ChecksumHint::kUnknown;
  ChecksumHint udp = ChecksumHint::kUnknown;
};

/// The IGMP version of a querier. Version 1 is handled as version 2.
enum class IgmpVersion : std::uint8_t { k2 = 2, k3 = 3 };

/// An IGMP query: which hosts are in a group?
struct GroupQuery {
  IgmpVersion version = IgmpVersion::k3;
  Ipv4 group;             // zero: a general query, about all groups
  Duration max_response;  // how long the answer may take
};

enum class FrameKind : std::uint8_t { kDropped, kUdp, kArp, kEchoRequest, kGroupQuery };

struct ParsedFrame {
  FrameKind kind = FrameKind::kDropped;
  PortDrop drop = PortDrop::kBadHeader;  // for kDropped
  MacAddress source_mac;
  std::size_t ip_offset = 0;  // for kUdp and kEchoRequest: where the IPv4 header begins

  // kUdp
  std::span<const std::byte> payload;
  Endpoint source;
  std::uint16_t destination_udp_port = 0;
  bool congestion_experienced = false;

  // kEchoRequest
  std::size_t ip_total_bytes = 0;

  // kArp: fields as the sender wrote them
  bool arp_is_request = false;
  MacAddress arp_sender_mac;
  Ipv4 arp_sender;
  Ipv4 arp_target;

  // kGroupQuery: a general query, or one about a group that we are in
  GroupQuery query;
};

/// Checks every field before using it. Never reads outside `frame`.
ParsedFrame parse_frame(std::span<const std::byte> frame, const FrameFilter& us,
                        ChecksumHints hints) noexcept;

constexpr std::size_t udp_headers_bytes(bool tagged) {
  return kEthernetBytes + (tagged ? kVlanTagBytes : 0) + kIpUdpBytes;
}

/// The header fields of a datagram to be framed.
struct UdpFrame {
  MacAddress source_mac;
  MacAddress destination_mac;
  std::optional<std::uint16_t> vlan;
  Endpoint source;
  Endpoint destination;
  TrafficClass traffic_class = TrafficClass::kData;
};

/// A payload in up to three consecutive pieces.
struct Payload {
  std::span<const std::byte> head;
  std::span<const std::byte> lent = {};  // see TxDatagram
  std::span<const std::byte> tail = {};

  std::size_t size() const { return head.size() + lent.size() + tail.size(); }
};

/// Who computes the UDP checksum: software, or the device, which starts from the pseudo header's
/// sum. kNone: nobody.
enum class UdpChecksum : std::uint8_t { kSoftware, kDevice, kNone };

/// Writes udp_headers_bytes() bytes of headers for `payload`, which follows them in the frame. The
/// payload must be at most 65507 bytes long.
void write_udp_headers(std::span<std::byte> headers, const UdpFrame& frame, const Payload& payload,
                       UdpChecksum checksum) noexcept;

struct ArpFrame {
  MacAddress destination_mac;  // destination of the Ethernet frame
  std::optional<std::uint16_t> vlan;
  bool is_request = false;
  MacAddress sender_mac;
  Ipv4 sender;
  MacAddress target_mac;  // zero in a request
  Ipv4 target;
};
inline constexpr std::size_t kMaxArpFrameBytes = kMinFrameBytes + kVlanTagBytes;

/// Writes a whole padded frame into `out` (at least kMaxArpFrameBytes); returns its length.
std::size_t write_arp(std::span<std::byte> out, const ArpFrame& frame) noexcept;

/// What a record says about one group. It always means all sources: none is excluded or selected.
enum class Membership : std::uint8_t { kMember = 2, kLeft = 3, kJoined = 4 };  // as in RFC 3376
struct GroupRecord {
  Ipv4 group;
  Membership membership = Membership::kMember;
  constexpr bool operator==(const GroupRecord&) const = default;
};
/// The most records of a version 3 report. A port in more groups sends several reports.
inline constexpr std::size_t kMaxGroupRecords = 64;
inline constexpr std::size_t kRouterAlertBytes = 4;
inline constexpr std::size_t kIgmpBytes = 8;
inline constexpr std::size_t kGroupRecordBytes = 8;
inline constexpr std::size_t kMaxGroupReportBytes = kEthernetBytes + kVlanTagBytes + kIpv4Bytes +
                                                    kRouterAlertBytes + kIgmpBytes +
                                                    kMaxGroupRecords * kGroupRecordBytes;

/// Writes a whole padded frame of IGMP version 3 into `out` (at least kMaxGroupReportBytes);
/// returns its length. `records` must have 1 to kMaxGroupRecords records.
std::size_t write_group_report(std::span<std::byte> out, const FrameFilter& us,
                               std::span<const GroupRecord> records) noexcept;
/// The same for IGMP version 2, which has one message for each group.
std::size_t write_old_group_report(std::span<std::byte> out, const FrameFilter& us,
                                   const GroupRecord& record) noexcept;

/// Turns a checked echo request into its reply, in place.
void turn_echo_around(std::span<std::byte> frame, const ParsedFrame& parsed,
                      const FrameFilter& us) noexcept;

}  // namespace gradplane::port
