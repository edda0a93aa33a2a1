// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstring>

#include "dataplane/base/bytes.h"
#include "dataplane/port/dpdk/checksum.h"
#include "dataplane/port/dpdk/frame.h"
#include "dataplane/port/dpdk/frame_fields.h"

namespace gradplane::port {
namespace {

using Bytes = std::span<const std::byte>;

// The caller has checked that the field lies inside the bytes.
template <typename T>
T load(Bytes bytes, std::size_t offset) noexcept {
  T v;
  std::memcpy(&v, bytes.data() + offset, sizeof v);
  return to_network_order(v);
}

MacAddress load_mac(Bytes bytes, std::size_t offset) noexcept {
  MacAddress mac;
  std::memcpy(mac.bytes.data(), bytes.data() + offset, mac.bytes.size());
  return mac;
}

void drop(ParsedFrame& out, PortDrop reason) noexcept {
  out.kind = FrameKind::kDropped;
  out.drop = reason;
}

enum class SentTo : std::uint8_t { kUs, kEverybody, kGroup };

struct Ethernet {
  std::uint16_t type = 0;
  std::size_t body_offset = 0;
  MacAddress destination;
  SentTo sent_to = SentTo::kUs;
};

/// Whether the first 25 bits are those of IPv4 groups.
bool is_group_mac(const MacAddress& mac) noexcept {
  return mac.bytes[0] == 0x01 && mac.bytes[1] == 0 && mac.bytes[2] == 0x5e &&
         (mac.bytes[3] & 0x80) == 0;
}

// Parses the Ethernet header. False if the frame is not ours; `out` then says why.
bool parse_ethernet(Bytes frame, const FrameFilter& us, Ethernet& eth, ParsedFrame& out) noexcept {
  if (frame.size() < kEthernetBytes) return drop(out, PortDrop::kBadHeader), false;
  eth.destination = load_mac(frame, 0);
  out.source_mac = load_mac(frame, kMacBytes);
  if (eth.destination == kBroadcastMac) {
    eth.sent_to = SentTo::kEverybody;
  } else if (is_group_mac(eth.destination)) {
    eth.sent_to = SentTo::kGroup;
  } else if (eth.destination != us.mac) {
    return drop(out, PortDrop::kNotForUs), false;
  }
  // A frame from our own address is one that we sent, and that came back over a bridge or a packet
  // socket.
  if (out.source_mac == us.mac) return drop(out, PortDrop::kNotForUs), false;
  if (out.source_mac.is_group()) return drop(out, PortDrop::kBadHeader), false;
  eth.type = load<std::uint16_t>(frame, 2 * kMacBytes);
  eth.body_offset = kEthernetBytes;
  std::uint16_t vlan = 0;
  if (eth.type == kTypeVlan) {
    if (frame.size() < kEthernetBytes + kVlanTagBytes) {
      return drop(out, PortDrop::kBadHeader), false;
    }
    vlan = load<std::uint16_t>(frame, kEthernetBytes) & kVlanIdMask;
    eth.type = load<std::uint16_t>(frame, kEthernetBytes + 2);
    eth.body_offset += kVlanTagBytes;
  }
  if (vlan != us.vlan.value_or(0)) return drop(out, PortDrop::kWrongVlan), false;
  return true;
}

void parse_arp(Bytes body, ParsedFrame& out) noexcept {
  if (body.size() < kArpBytes || load<std::uint16_t>(body, 0) != kArpEthernet ||
      load<std::uint16_t>(body, 2) != kTypeIpv4 || load<std::uint8_t>(body, 4) != kMacBytes ||
      load<std::uint8_t>(body, 5) != sizeof(Ipv4)) {
    return drop(out, PortDrop::kBadHeader);
  }
  const auto operation = load<std::uint16_t>(body, kArpOperationOffset);
  out.arp_sender_mac = load_mac(body, kArpSenderMacOffset);
  if ((operation != kArpRequest && operation != kArpReply) || out.arp_sender_mac.is_group() ||
      out.arp_sender_mac.is_zero()) {
    return drop(out, PortDrop::kBadHeader);
  }
  out.kind = FrameKind::kArp;
  out.arp_is_request = operation == kArpRequest;
  out.arp_sender = {load<std::uint32_t>(body, kArpSenderOffset)};
  out.arp_target = {load<std::uint32_t>(body, kArpTargetOffset)};
}

void parse_udp(Bytes segment, Ipv4 destination, ChecksumHint hint, ParsedFrame& out) noexcept {
  if (segment.size() < kUdpBytes) return drop(out, PortDrop::kBadHeader);
  const std::size_t length = load<std::uint16_t>(segment, kUdpLengthOffset);
  if (length < kUdpBytes || length > segment.size()) return drop(out, PortDrop::kBadHeader);
  const Bytes datagram = segment.first(length);
  if (load<std::uint16_t>(segment, kUdpChecksumOffset) != 0) {
    if (hint == ChecksumHint::kBad) return drop(out, PortDrop::kBadChecksum);
    if (hint == ChecksumHint::kUnknown) {
      const std::uint64_t pseudo =
          udp_pseudo_sum(out.source.address, destination, static_cast<std::uint16_t>(length));
      if (checksum_fold(checksum_add(pseudo, datagram)) != kGoodSum) {
        return drop(out, PortDrop::kBadChecksum);
      }
    }
  }
  out.kind = FrameKind::kUdp;
  out.source.udp_port = load<std::uint16_t>(segment, 0);
  out.destination_udp_port = load<std::uint16_t>(segment, 2);
  out.payload = datagram.subspan(kUdpBytes);
}

void parse_icmp(Bytes message, ParsedFrame& out) noexcept {
  if (message.size() < kIcmpBytes) return drop(out, PortDrop::kBadHeader);
  if (checksum_fold(checksum_add(0, message)) != kGoodSum) {
    return drop(out, PortDrop::kBadChecksum);
  }
  if (load<std::uint8_t>(message, 0) != kIcmpEchoRequest || load<std::uint8_t>(message, 1) != 0) {
    return drop(out, PortDrop::kNotUdp);
  }
  out.kind = FrameKind::kEchoRequest;
}

// RFC 3376, sections 4.1.1 and 7.1: the unit is a tenth of a second, with a floating-point form
// above 12.7 s. Version 1 has no such field; its hosts took 10 s.
Duration max_response(std::uint8_t code, IgmpVersion version) noexcept {
  constexpr Duration kTenth = Duration::ms(100);
  if (version == IgmpVersion::k2) return kTenth * (code == 0 ? 100 : code);
  if (code < 128) return kTenth * code;
  return kTenth * (std::int64_t{(code & 0x0f) | 0x10} << ((code >> 4 & 7) + 3));
}

void parse_igmp(Bytes message, Ipv4 destination, const FrameFilter& us, ParsedFrame& out) noexcept {
  if (message.size() < kIgmpBytes) return drop(out, PortDrop::kBadHeader);
  if (checksum_fold(checksum_add(0, message)) != kGoodSum) {
    return drop(out, PortDrop::kBadChecksum);
  }
  if (load<std::uint8_t>(message, 0) != kIgmpQuery) return drop(out, PortDrop::kNotUdp);
  out.query.version = message.size() == kIgmpBytes ? IgmpVersion::k2 : IgmpVersion::k3;
  out.query.group = {load<std::uint32_t>(message, kIgmpGroupOffset)};
  out.query.max_response =
      max_response(load<std::uint8_t>(message, kIgmpCodeOffset), out.query.version);
  if (out.query.version == IgmpVersion::k3) {
    if (message.size() < kIgmpQuery3Bytes) return drop(out, PortDrop::kBadHeader);
    const std::size_t senders = load<std::uint16_t>(message, kIgmpSenderCountOffset);
    if (kIgmpQuery3Bytes + senders * sizeof(Ipv4) > message.size()) {
      return drop(out, PortDrop::kBadHeader);
    }
  }
  // RFC 3376, section 9.1: a general query goes to all hosts, another one to its group.
  const bool is_general = out.query.group == Ipv4{};
  if (destination != (is_general ? kAllHosts : out.query.group)) {
    return drop(out, PortDrop::kBadHeader);
  }
  if (!is_general && (us.groups == nullptr || !us.groups->has_address(out.query.group))) {
    return drop(out, PortDrop::kNotJoined);
  }
  out.kind = FrameKind::kGroupQuery;
}

bool fits(Ipv4 destination, const Ethernet& eth, const FrameFilter& us) noexcept {
  if (eth.sent_to == SentTo::kUs) return destination == us.address;
  return is_group_address(destination) && eth.destination == group_mac(destination);
}

void parse_ipv4(Bytes body, const Ethernet& eth, const FrameFilter& us, ChecksumHints hints,
                ParsedFrame& out) noexcept {
  if (body.size() < kIpv4Bytes) return drop(out, PortDrop::kBadHeader);
  const bool is_igmp = load<std::uint8_t>(body, kIpProtocolOffset) == kProtocolIgmp;
  const auto version = load<std::uint8_t>(body, 0);
  // Only IGMP packets may have options: the router alert.
  const bool is_known = is_igmp ? version >> 4 == kIpv4NoOptions >> 4 : version == kIpv4NoOptions;
  const std::size_t header_bytes = (version & kIpv4WordsMask) * sizeof(std::uint32_t);
  if (!is_known || header_bytes < kIpv4Bytes) return drop(out, PortDrop::kBadHeader);
  const std::size_t total = load<std::uint16_t>(body, kIpTotalOffset);
  const auto fragment = load<std::uint16_t>(body, kIpFragmentOffset);
  if (total < header_bytes || total > body.size() || (fragment & kIpFragmentMask) != 0 ||
      load<std::uint8_t>(body, kIpTtlOffset) == 0) {
    return drop(out, PortDrop::kBadHeader);
  }
  if (hints.ip == ChecksumHint::kBad ||
      (hints.ip == ChecksumHint::kUnknown &&
       checksum_fold(checksum_add(0, body.first(header_bytes))) != kGoodSum)) {
    return drop(out, PortDrop::kBadChecksum);
  }
  const Ipv4 destination{load<std::uint32_t>(body, kIpDestinationOffset)};
  if (is_igmp) {
    // A switch that queries may have no address of its own, so any source is accepted (RFC 4541,
    // 2.1.1).
    const bool is_for_hosts = destination == kAllHosts || is_group_address(destination);
    if (!is_for_hosts || eth.destination != group_mac(destination)) {
      return drop(out, PortDrop::kNotForUs);
    }
    return parse_igmp(body.subspan(header_bytes, total - header_bytes), destination, us, out);
  }
  if (!fits(destination, eth, us)) return drop(out, PortDrop::kNotForUs);
  out.source.address = {load<std::uint32_t>(body, kIpSourceOffset)};
  if (!is_host_address(out.source.address) || out.source.address == us.address) {
    return drop(out, PortDrop::kBadHeader);
  }
  out.congestion_experienced =
      (load<std::uint8_t>(body, kIpTrafficClassOffset) & kEcnMask) == kEcnCongestionExperienced;
  out.ip_total_bytes = total;
  const Bytes inner = body.subspan(kIpv4Bytes, total - kIpv4Bytes);
  switch (load<std::uint8_t>(body, kIpProtocolOffset)) {
    case kProtocolUdp:
      parse_udp(inner, destination, hints.udp, out);
      break;
    case kProtocolIcmp:
      // A ping to a group would be answered by many.
      return eth.sent_to == SentTo::kUs ? parse_icmp(inner, out) : drop(out, PortDrop::kNotForUs);
    default:
      return drop(out, PortDrop::kNotUdp);
  }
  if (out.kind != FrameKind::kUdp || eth.sent_to == SentTo::kUs) return;
  if (us.groups == nullptr || !us.groups->has({destination, out.destination_udp_port})) {
    drop(out, PortDrop::kNotJoined);
  }
}

}  // namespace

ParsedFrame parse_frame(Bytes frame, const FrameFilter& us, ChecksumHints hints) noexcept {
  ParsedFrame out;
  Ethernet eth;
  if (!parse_ethernet(frame, us, eth, out)) return out;
  out.ip_offset = eth.body_offset;
  const Bytes body = frame.subspan(eth.body_offset);
  if (eth.type == kTypeArp) {
    // No ARP is sent to an IPv4 group address.
    eth.sent_to == SentTo::kGroup ? drop(out, PortDrop::kNotForUs) : parse_arp(body, out);
  } else if (eth.type != kTypeIpv4) {
    drop(out, PortDrop::kNotUdp);
  } else if (eth.sent_to == SentTo::kEverybody) {
    drop(out, PortDrop::kNotForUs);  // RFC 1122, 3.3.6: a unicast address in a broadcast frame
  } else {
    parse_ipv4(body, eth, us, hints, out);
  }
  return out;
}

}  // namespace gradplane::port
