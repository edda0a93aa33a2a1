// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"
#include "dataplane/port/dpdk/checksum.h"
#include "dataplane/port/dpdk/frame.h"
#include "dataplane/port/dpdk/frame_fields.h"

namespace gradplane::port {
namespace {

using Bytes = std::span<std::byte>;

template <typename T>
void store(Bytes bytes, std::size_t offset, T value) noexcept {
  const T network = to_network_order(value);
  std::memcpy(bytes.data() + offset, &network, sizeof network);
}

void store_mac(Bytes bytes, std::size_t offset, const MacAddress& mac) noexcept {
  std::memcpy(bytes.data() + offset, mac.bytes.data(), mac.bytes.size());
}

// A checksum is stored as it was computed, in the byte order of memory.
void store_checksum(Bytes bytes, std::size_t offset, std::uint16_t checksum) noexcept {
  std::memcpy(bytes.data() + offset, &checksum, sizeof checksum);
}

std::uint16_t inverted(std::uint64_t sum) noexcept {
  return static_cast<std::uint16_t>(~checksum_fold(sum));
}

struct Link {
  MacAddress destination;
  MacAddress source;
  std::optional<std::uint16_t> vlan;
  std::uint8_t priority = 0;
  std::uint16_t type = 0;
};

// Returns where the body begins.
std::size_t write_ethernet(Bytes out, const Link& link) noexcept {
  store_mac(out, 0, link.destination);
  store_mac(out, kMacBytes, link.source);
  if (!link.vlan) {
    store(out, 2 * kMacBytes, link.type);
    return kEthernetBytes;
  }
  store(out, 2 * kMacBytes, kTypeVlan);
  store(out, kEthernetBytes,
        static_cast<std::uint16_t>(link.priority << kVlanPriorityShift | *link.vlan));
  store(out, kEthernetBytes + 2, link.type);
  return kEthernetBytes + kVlanTagBytes;
}

/// Control is ECN-capable, too: where a queue would mark, it drops packets that are not ECN-capable
/// (RFC 3168, section 5), and acks share queues with data.
std::uint8_t traffic_class_byte(TrafficClass c) noexcept {
  const unsigned dscp = c == TrafficClass::kControl ? kControlDscp : kDataDscp;
  return static_cast<std::uint8_t>(dscp << 2 | kEcnCapable);
}

struct Ip {
  Ipv4 source;
  Ipv4 destination;
  std::uint8_t traffic_class = 0;
  std::uint8_t time_to_live = kTimeToLive;
  std::uint8_t protocol = kProtocolUdp;
  bool router_alert = false;
};

// Returns where the body begins.
std::size_t write_ipv4(Bytes out, const Ip& ip, std::size_t body_bytes) noexcept {
  const std::size_t header_bytes = kIpv4Bytes + (ip.router_alert ? kRouterAlertBytes : 0);
  store(out, 0, ip.router_alert ? kIpv4RouterAlert : kIpv4NoOptions);
  store(out, kIpTrafficClassOffset, ip.traffic_class);
  store(out, kIpTotalOffset, static_cast<std::uint16_t>(header_bytes + body_bytes));
  // Identification: not needed with DF (RFC 6864).
  store(out, kIpTotalOffset + 2, std::uint16_t{0});
  store(out, kIpFragmentOffset, kIpDontFragment);
  store(out, kIpTtlOffset, ip.time_to_live);
  store(out, kIpProtocolOffset, ip.protocol);
  store(out, kIpChecksumOffset, std::uint16_t{0});
  store(out, kIpSourceOffset, ip.source.value);
  store(out, kIpDestinationOffset, ip.destination.value);
  if (ip.router_alert) store(out, kIpv4Bytes, kRouterAlert);
  store_checksum(out, kIpChecksumOffset, inverted(checksum_add(0, out.first(header_bytes))));
  return header_bytes;
}

// Writes a frame around an IGMP message of `bytes` bytes, which write(room) writes.
template <typename Write>
std::size_t write_igmp(Bytes out, const FrameFilter& us, Ipv4 to, std::size_t bytes,
                       const Write& write) noexcept {
  GP_ASSERT(out.size() >= kMaxGroupReportBytes);
  std::size_t at = write_ethernet(out, {.destination = group_mac(to),
                                        .source = us.mac,
                                        .vlan = us.vlan,
                                        .priority = kControlVlanPriority,
                                        .type = kTypeIpv4});
  at += write_ipv4(out.subspan(at),
                   {.source = us.address,
                    .destination = to,
                    .traffic_class = kControlDscp << 2,
                    .time_to_live = 1,
                    .protocol = kProtocolIgmp,
                    .router_alert = true},
                   bytes);
  const Bytes message = out.subspan(at, bytes);
  std::memset(message.data(), 0, message.size());
  write(message);
  store_checksum(message, kIgmpChecksumOffset, inverted(checksum_add(0, message)));
  const std::size_t length = std::max(at + bytes, kMinFrameBytes + (us.vlan ? kVlanTagBytes : 0));
  std::memset(out.data() + at + bytes, 0, length - at - bytes);
  return length;
}

std::uint64_t add_pieces(std::uint64_t sum, const Payload& payload) noexcept {
  std::size_t at = 0;
  for (const std::span<const std::byte> piece : {payload.head, payload.lent, payload.tail}) {
    sum = at % 2 == 0 ? checksum_add(sum, piece) : checksum_add_odd(sum, piece);
    at += piece.size();
  }
  return sum;
}

}  // namespace

void write_udp_headers(Bytes headers, const UdpFrame& frame, const Payload& payload,
                       UdpChecksum checksum) noexcept {
  GP_ASSERT(headers.size() == udp_headers_bytes(frame.vlan.has_value()));
  const std::size_t udp_bytes = kUdpBytes + payload.size();
  GP_ASSERT(udp_bytes + kIpv4Bytes <= UINT16_MAX);
  const bool control = frame.traffic_class == TrafficClass::kControl;
  const std::size_t ip_offset =
      write_ethernet(headers, {.destination = frame.destination_mac,
                               .source = frame.source_mac,
                               .vlan = frame.vlan,
                               .priority = control ? kControlVlanPriority : kDataVlanPriority,
                               .type = kTypeIpv4});
  write_ipv4(headers.subspan(ip_offset),
             {.source = frame.source.address,
              .destination = frame.destination.address,
              .traffic_class = traffic_class_byte(frame.traffic_class)},
             udp_bytes);
  const Bytes udp = headers.subspan(ip_offset + kIpv4Bytes);
  store(udp, 0, frame.source.udp_port);
  store(udp, 2, frame.destination.udp_port);
  store(udp, kUdpLengthOffset, static_cast<std::uint16_t>(udp_bytes));
  store(udp, kUdpChecksumOffset, std::uint16_t{0});  // no checksum, as IPv4 allows
  if (checksum == UdpChecksum::kNone) return;
  const std::uint64_t pseudo = udp_pseudo_sum(frame.source.address, frame.destination.address,
                                              static_cast<std::uint16_t>(udp_bytes));
  if (checksum == UdpChecksum::kDevice) {
    store_checksum(udp, kUdpChecksumOffset, checksum_fold(pseudo));
    return;
  }
  const std::uint16_t sum = inverted(add_pieces(checksum_add(pseudo, udp), payload));
  store_checksum(udp, kUdpChecksumOffset, sum == 0 ? std::uint16_t{0xffff} : sum);
}

std::size_t write_arp(Bytes out, const ArpFrame& frame) noexcept {
  GP_ASSERT(out.size() >= kMaxArpFrameBytes);
  const std::size_t body_offset = write_ethernet(out, {.destination = frame.destination_mac,
                                                       .source = frame.sender_mac,
                                                       .vlan = frame.vlan,
                                                       .priority = kControlVlanPriority,
                                                       .type = kTypeArp});
  const std::size_t length = kMinFrameBytes + (frame.vlan ? kVlanTagBytes : 0);
  const Bytes body = out.subspan(body_offset, length - body_offset);
  std::memset(body.data(), 0, body.size());
  store(body, 0, kArpEthernet);
  store(body, 2, kTypeIpv4);
  store(body, 4, static_cast<std::uint8_t>(kMacBytes));
  store(body, 5, static_cast<std::uint8_t>(sizeof(Ipv4)));
  store(body, kArpOperationOffset, frame.is_request ? kArpRequest : kArpReply);
  store_mac(body, kArpSenderMacOffset, frame.sender_mac);
  store(body, kArpSenderOffset, frame.sender.value);
  store_mac(body, kArpSenderOffset + sizeof(Ipv4), frame.target_mac);
  store(body, kArpTargetOffset, frame.target.value);
  return length;
}

std::size_t write_group_report(Bytes out, const FrameFilter& us,
                               std::span<const GroupRecord> records) noexcept {
  GP_ASSERT(!records.empty() && records.size() <= kMaxGroupRecords);
  const std::size_t bytes = kIgmpBytes + records.size() * kGroupRecordBytes;
  return write_igmp(out, us, kAllGroupRouters, bytes, [&](Bytes message) {
    store(message, 0, kIgmpReport3);
    store(message, kIgmpRecordCountOffset, static_cast<std::uint16_t>(records.size()));
    Bytes at = message.subspan(kIgmpBytes);
    for (const GroupRecord& record : records) {
      store(at, 0, static_cast<std::uint8_t>(record.membership));
      store(at, kGroupRecordGroupOffset, record.group.value);
      at = at.subspan(kGroupRecordBytes);
    }
  });
}

std::size_t write_old_group_report(Bytes out, const FrameFilter& us,
                                   const GroupRecord& record) noexcept {
  const bool left = record.membership == Membership::kLeft;
  return write_igmp(out, us, left ? kAllRouters : record.group, kIgmpBytes, [&](Bytes message) {
    store(message, 0, left ? kIgmpLeave2 : kIgmpReport2);
    store(message, kIgmpGroupOffset, record.group.value);
  });
}

void turn_echo_around(Bytes frame, const ParsedFrame& parsed, const FrameFilter& us) noexcept {
  GP_ASSERT(parsed.kind == FrameKind::kEchoRequest);
  GP_ASSERT(parsed.ip_offset + parsed.ip_total_bytes <= frame.size());
  store_mac(frame, 0, parsed.source_mac);
  store_mac(frame, kMacBytes, us.mac);
  const Bytes ip = frame.subspan(parsed.ip_offset, parsed.ip_total_bytes);
  store(ip, kIpTtlOffset, kTimeToLive);
  store(ip, kIpSourceOffset, us.address.value);
  store(ip, kIpDestinationOffset, parsed.source.address.value);
  store(ip, kIpChecksumOffset, std::uint16_t{0});
  store_checksum(ip, kIpChecksumOffset, inverted(checksum_add(0, ip.first(kIpv4Bytes))));
  const Bytes icmp = ip.subspan(kIpv4Bytes);
  store(icmp, 0, kIcmpEchoReply);
  store(icmp, kIcmpChecksumOffset, std::uint16_t{0});
  store_checksum(icmp, kIcmpChecksumOffset, inverted(checksum_add(0, icmp)));
}

}  // namespace gradplane::port
