// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "dataplane/port/dpdk/checksum.h"
#include "dataplane/port/dpdk/frame.h"
#include "tests/support/catch.h"
#include "tests/support/hex.h"

namespace gradplane::port {
namespace {

using Frame = std::vector<std::byte>;
using testing::from_hex;

constexpr MacAddress kOurMac{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kPeerMac{{2, 0, 0, 0, 0, 2}};
constexpr Ipv4 kUs{0x0a4d0001};
constexpr Ipv4 kPeer{0x0a4d0002};
constexpr FrameFilter kFilter{.mac = kOurMac, .address = kUs, .vlan = std::nullopt};
constexpr FrameFilter kTaggedFilter{.mac = kOurMac, .address = kUs, .vlan = 7};

Frame udp_frame(const Frame& payload, std::optional<std::uint16_t> vlan = std::nullopt,
                TrafficClass traffic_class = TrafficClass::kData) {
  const std::size_t headers = udp_headers_bytes(vlan.has_value());
  Frame frame(headers + payload.size());
  write_udp_headers(std::span(frame).first(headers),
                    {.source_mac = kPeerMac,
                     .destination_mac = kOurMac,
                     .vlan = vlan,
                     .source = {kPeer, 1000},
                     .destination = {kUs, 2000},
                     .traffic_class = traffic_class},
                    Payload{payload}, UdpChecksum::kSoftware);
  std::copy(payload.begin(), payload.end(), frame.begin() + static_cast<std::ptrdiff_t>(headers));
  return frame;
}

/// A datagram to a group, in a frame to the Ethernet address `mac`.
Frame group_frame(Ipv4 group, const MacAddress& mac) {
  const Frame payload(64);
  const std::size_t headers = udp_headers_bytes(false);
  Frame frame(headers + payload.size());
  write_udp_headers(std::span(frame).first(headers),
                    {.source_mac = kPeerMac,
                     .destination_mac = mac,
                     .vlan = std::nullopt,
                     .source = {kPeer, 1000},
                     .destination = {group, 2000}},
                    Payload{payload}, UdpChecksum::kSoftware);
  return frame;
}

Frame bytes(std::size_t count) {
  Frame out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(i * 7 + 3);
  return out;
}

void refresh_ip_checksum(Frame& frame, std::size_t ip_offset = kEthernetBytes) {
  const std::span<std::byte> header = std::span(frame).subspan(ip_offset, kIpv4Bytes);
  header[10] = header[11] = std::byte{0};
  const auto sum = static_cast<std::uint16_t>(~checksum_fold(checksum_add(0, header)));
  std::memcpy(header.data() + 10, &sum, sizeof sum);
}

Frame with(Frame frame, std::size_t offset, int value, bool fix_checksum = true) {
  frame[offset] = static_cast<std::byte>(value);
  if (fix_checksum) refresh_ip_checksum(frame);
  return frame;
}

// Returns the reason of a drop as a number, or -1 for a frame that was accepted.
int verdict(const Frame& frame, const FrameFilter& filter = kFilter, ChecksumHints hints = {}) {
  const ParsedFrame parsed = parse_frame(frame, filter, hints);
  return parsed.kind == FrameKind::kDropped ? static_cast<int>(parsed.drop) : -1;
}
int reason(PortDrop drop) {
  return static_cast<int>(drop);
}

TEST_CASE("checksum: the example of RFC 1071, odd lengths and a carry out of every word") {
  const Frame example = from_hex("00 01 f2 03 f4 f5 f6 f7");
  const std::uint16_t sum = checksum_fold(checksum_add(0, example));
  CHECK(sum == 0xf2dd);  // ddf2 in network order
  CHECK(checksum_fold(checksum_add(0, from_hex("01"))) == 0x0001);
  CHECK(checksum_fold(checksum_add(0, from_hex("0102 03"))) == 0x0204);
  CHECK(checksum_fold(checksum_add(0, Frame(9000, std::byte{0xff}))) == 0xffff);
  CHECK(checksum_fold(0) == 0);
}

TEST_CASE("frame: a datagram as it has to be on the wire") {
  const Frame golden = from_hex(
      "020000000001 020000000002 0800"
      "45 4a 0020 0000 4000 40 11 25e7 0a4d0002 0a4d0001"
      "03e8 07d0 000c db7b 01020304");
  CHECK(udp_frame(from_hex("01020304")) == golden);
  const Frame tagged = from_hex(
      "020000000001 020000000002 8100 c007 0800"
      "45 c2 0020 0000 4000 40 11 256f 0a4d0002 0a4d0001"
      "03e8 07d0 000c db7b 01020304");
  CHECK(udp_frame(from_hex("01020304"), 7, TrafficClass::kControl) == tagged);
}

TEST_CASE("frame: every length survives the way through") {
  for (const std::optional<std::uint16_t> vlan : {std::optional<std::uint16_t>{}, {7}}) {
    for (std::size_t size = 0; size < 300; ++size) {
      const Frame payload = bytes(size);
      Frame frame = udp_frame(payload, vlan);
      frame.resize(std::max(frame.size(), kMinFrameBytes), std::byte{0x55});
      const ParsedFrame got = parse_frame(frame, vlan ? kTaggedFilter : kFilter, {});
      REQUIRE(got.kind == FrameKind::kUdp);
      REQUIRE(Frame(got.payload.begin(), got.payload.end()) == payload);
      REQUIRE(got.source == Endpoint{kPeer, 1000});
      REQUIRE(got.destination_udp_port == 2000);
      REQUIRE(got.source_mac == kPeerMac);
      REQUIRE_FALSE(got.congestion_experienced);
    }
  }
}

TEST_CASE("frame: a congestion mark is seen") {
  const Frame frame = udp_frame(bytes(64));
  CHECK(parse_frame(with(frame, 15, 0x4b), kFilter, {}).congestion_experienced);
  CHECK_FALSE(parse_frame(with(frame, 15, 0x49), kFilter, {}).congestion_experienced);
}

TEST_CASE("frame: the Ethernet address of a group has the last 23 bits of its address") {
  CHECK(group_mac({0xefc00102}) == MacAddress{{0x01, 0x00, 0x5e, 0x40, 0x01, 0x02}});
  CHECK(group_mac({0xef400102}) == group_mac({0xefc00102}));
}

TEST_CASE("frame: a datagram to a group is for who has joined it, at this UDP port") {
  constexpr Ipv4 kGroup{0xefc00102};
  constexpr Ipv4 kTwin{0xef400102};  // kGroup and kTwin have the same Ethernet address
  GroupTable groups;
  FrameFilter us = kFilter;
  const Frame frame = group_frame(kGroup, group_mac(kGroup));
  CHECK(verdict(frame, us) == reason(PortDrop::kNotJoined));
  us.groups = &groups;
  CHECK(verdict(frame, us) == reason(PortDrop::kNotJoined));
  REQUIRE(groups.join({kGroup, 2001}));
  REQUIRE(groups.join({kTwin, 2000}));
  CHECK(verdict(frame, us) == reason(PortDrop::kNotJoined));
  REQUIRE(groups.join({kGroup, 2000}));
  REQUIRE(verdict(frame, us) == -1);
  CHECK(parse_frame(frame, us, {}).destination_udp_port == 2000);
  SECTION("the frame must be to the group's Ethernet address") {
    CHECK(verdict(group_frame(kGroup, kOurMac), us) == reason(PortDrop::kNotForUs));
    CHECK(verdict(group_frame(kGroup, group_mac({0xefc00103})), us) == reason(PortDrop::kNotForUs));
    CHECK(verdict(group_frame(kUs, group_mac(kGroup)), us) == reason(PortDrop::kNotForUs));
    CHECK(verdict(with(frame, 3, 0xc0), us) == reason(PortDrop::kNotForUs));  // no IPv4 group
  }
  SECTION("nothing but UDP comes to a group") {
    CHECK(verdict(with(frame, 23, 1), us) == reason(PortDrop::kNotForUs));     // ICMP
    CHECK(verdict(with(frame, 23, 2), us) == reason(PortDrop::kBadChecksum));  // IGMP
    CHECK(verdict(with(frame, 13, 6), us) == reason(PortDrop::kNotForUs));     // ARP
  }
  SECTION("it must be whole") {
    CHECK(verdict(with(frame, 60, 0x77), us) == reason(PortDrop::kBadChecksum));
  }
}

TEST_CASE("frame: each thing that is wrong has its reason") {
  const Frame good = udp_frame(bytes(100));
  REQUIRE(verdict(good) == -1);
  SECTION("somebody else's") {
    CHECK(verdict(with(good, 5, 9)) == reason(PortDrop::kNotForUs));
    CHECK(verdict(with(good, 33, 9)) == reason(PortDrop::kNotForUs));
    CHECK(verdict(with(good, 11, 1)) == reason(PortDrop::kNotForUs));  // sent by this port
    Frame broadcast = good;
    std::fill(broadcast.begin(), broadcast.begin() + 6, std::byte{0xff});
    CHECK(verdict(broadcast) == reason(PortDrop::kNotForUs));
  }
  SECTION("headers") {
    CHECK(verdict(with(good, 6, 3)) == reason(PortDrop::kBadHeader));      // from a group
    CHECK(verdict(with(good, 14, 0x46)) == reason(PortDrop::kBadHeader));  // options
    CHECK(verdict(with(good, 14, 0x44)) == reason(PortDrop::kBadHeader));  // too short
    CHECK(verdict(with(good, 14, 0x65)) == reason(PortDrop::kBadHeader));  // version
    CHECK(verdict(with(good, 17, 0x81)) == reason(PortDrop::kBadHeader));  // total over the frame
    CHECK(verdict(with(good, 17, 0x13)) == reason(PortDrop::kBadHeader));  // total under the header
    CHECK(verdict(with(good, 17, 0x1b)) == reason(PortDrop::kBadHeader));  // no room for UDP
    CHECK(verdict(with(good, 20, 0x20)) == reason(PortDrop::kBadHeader));  // more fragments
    CHECK(verdict(with(good, 21, 0x01)) == reason(PortDrop::kBadHeader));  // a later fragment
    CHECK(verdict(with(good, 22, 0x00)) == reason(PortDrop::kBadHeader));  // time to live
    CHECK(verdict(with(good, 26, 0xe0)) == reason(PortDrop::kBadHeader));  // from a multicast
    CHECK(verdict(with(good, 26, 0x7f)) == reason(PortDrop::kBadHeader));  // from 127.77.0.2
    CHECK(verdict(with(good, 29, 0x01)) == reason(PortDrop::kBadHeader));  // from our own address
    CHECK(verdict(with(good, 39, 0x07)) == reason(PortDrop::kBadHeader));  // UDP length
    CHECK(verdict(with(good, 39, 0x6d)) == reason(PortDrop::kBadHeader));  // UDP over IP
  }
  SECTION("checksums") {
    CHECK(verdict(with(good, 24, 0x77, false)) == reason(PortDrop::kBadChecksum));
    CHECK(verdict(with(good, 100, 0x77)) == reason(PortDrop::kBadChecksum));
    Frame none = with(with(good, 100, 0x77), 40, 0);
    none[41] = std::byte{0};
    CHECK(verdict(none) == -1);  // a UDP checksum of zero means none
  }
  SECTION("what the device says about checksums is believed") {
    const Frame bad = with(good, 100, 0x77);
    CHECK(verdict(bad, kFilter, {.udp = ChecksumHint::kGood}) == -1);
    CHECK(verdict(good, kFilter, {.udp = ChecksumHint::kBad}) == reason(PortDrop::kBadChecksum));
    CHECK(verdict(good, kFilter, {.ip = ChecksumHint::kBad}) == reason(PortDrop::kBadChecksum));
  }
  SECTION("other protocols") {
    CHECK(verdict(with(good, 23, 6)) == reason(PortDrop::kNotUdp));
    CHECK(verdict(with(good, 13, 0x05)) == reason(PortDrop::kNotUdp));
  }
}

TEST_CASE("frame: VLAN tags") {
  const Frame plain = udp_frame(bytes(64));
  const Frame tagged = udp_frame(bytes(64), 7);
  const Frame other = udp_frame(bytes(64), 8);
  const Frame priority = udp_frame(bytes(64), 0);
  CHECK(verdict(tagged, kTaggedFilter) == -1);
  CHECK(verdict(plain, kTaggedFilter) == reason(PortDrop::kWrongVlan));
  CHECK(verdict(other, kTaggedFilter) == reason(PortDrop::kWrongVlan));
  CHECK(verdict(priority, kTaggedFilter) == reason(PortDrop::kWrongVlan));
  CHECK(verdict(plain, kFilter) == -1);
  CHECK(verdict(priority, kFilter) == -1);
  CHECK(verdict(tagged, kFilter) == reason(PortDrop::kWrongVlan));
  const Frame cut(tagged.begin(), tagged.begin() + 16);
  CHECK(verdict(cut, kTaggedFilter) == reason(PortDrop::kBadHeader));
}

TEST_CASE("frame: ARP") {
  const std::optional<std::uint16_t> vlan =
      GENERATE(std::optional<std::uint16_t>{}, std::optional<std::uint16_t>{7});
  Frame frame(kMaxArpFrameBytes);
  frame.resize(write_arp(frame, {.destination_mac = kBroadcastMac,
                                 .vlan = vlan,
                                 .is_request = true,
                                 .sender_mac = kPeerMac,
                                 .sender = kPeer,
                                 .target_mac = {},
                                 .target = kUs}));
  CHECK(frame.size() == kMinFrameBytes + (vlan ? kVlanTagBytes : 0));
  const FrameFilter filter = vlan ? kTaggedFilter : kFilter;
  const ParsedFrame got = parse_frame(frame, filter, {});
  REQUIRE(got.kind == FrameKind::kArp);
  CHECK(got.arp_is_request);
  CHECK(got.arp_sender == kPeer);
  CHECK(got.arp_sender_mac == kPeerMac);
  CHECK(got.arp_target == kUs);
  const std::size_t body = got.ip_offset;
  for (const std::size_t field : {0u, 2u, 4u, 5u, 6u, 8u}) {
    Frame wrong = frame;
    wrong[body + field] = std::byte{0x33};
    CHECK(verdict(wrong, filter) == reason(PortDrop::kBadHeader));
  }
  frame.resize(body + kArpBytes - 1);
  CHECK(verdict(frame, filter) == reason(PortDrop::kBadHeader));
}

Frame echo_frame(std::size_t data_bytes, std::optional<std::uint16_t> vlan) {
  Frame frame = udp_frame(bytes(data_bytes), vlan);
  const std::size_t ip = vlan ? kEthernetBytes + kVlanTagBytes : kEthernetBytes;
  frame[ip + 9] = std::byte{1};
  refresh_ip_checksum(frame, ip);
  const std::span<std::byte> icmp = std::span(frame).subspan(ip + kIpv4Bytes);
  icmp[0] = std::byte{8};
  icmp[1] = icmp[2] = icmp[3] = std::byte{0};
  const auto sum = static_cast<std::uint16_t>(~checksum_fold(checksum_add(0, icmp)));
  std::memcpy(icmp.data() + 2, &sum, sizeof sum);
  return frame;
}

TEST_CASE("frame: an echo request becomes its reply") {
  const std::optional<std::uint16_t> vlan =
      GENERATE(std::optional<std::uint16_t>{}, std::optional<std::uint16_t>{7});
  const FrameFilter filter = vlan ? kTaggedFilter : kFilter;
  for (const std::size_t size : {0u, 1u, 31u, 1464u}) {
    Frame frame = echo_frame(size, vlan);
    const Frame request = frame;
    const ParsedFrame parsed = parse_frame(frame, filter, {});
    REQUIRE(parsed.kind == FrameKind::kEchoRequest);
    turn_echo_around(frame, parsed, filter);
    const std::size_t ip = parsed.ip_offset;
    const std::span<const std::byte> header = std::span(frame).subspan(ip, kIpv4Bytes);
    const std::span<const std::byte> icmp = std::span(frame).subspan(ip + kIpv4Bytes);
    CHECK(checksum_fold(checksum_add(0, header)) == 0xffff);
    CHECK(checksum_fold(checksum_add(0, icmp)) == 0xffff);
    CHECK(icmp[0] == std::byte{0});
    CHECK(std::equal(icmp.begin() + 4, icmp.end(), request.begin() + static_cast<long>(ip) + 24));
    CHECK(std::equal(frame.begin(), frame.begin() + 6, request.begin() + 6));
    CHECK(std::equal(frame.begin() + 6, frame.begin() + 12, request.begin()));
    CHECK(std::equal(header.begin() + 12, header.begin() + 16,
                     request.begin() + static_cast<long>(ip) + 16));
  }
  Frame damaged = echo_frame(20, vlan);
  damaged.back() ^= std::byte{1};
  CHECK(verdict(damaged, filter) == reason(PortDrop::kBadChecksum));
}

TEST_CASE("frame: a device's checksum starts from the pseudo header") {
  const Frame payload = bytes(33);
  Frame headers(udp_headers_bytes(false));
  const UdpFrame frame{.source_mac = kPeerMac,
                       .destination_mac = kOurMac,
                       .vlan = std::nullopt,
                       .source = {kPeer, 1000},
                       .destination = {kUs, 2000}};
  write_udp_headers(headers, frame, Payload{payload}, UdpChecksum::kDevice);
  // The device sums the UDP header and payload, and stores the inverse.
  Frame whole = headers;
  for (const std::byte b : payload) whole.push_back(b);
  const auto sum = static_cast<std::uint16_t>(
      ~checksum_fold(checksum_add(0, std::span(whole).subspan(kEthernetBytes + kIpv4Bytes))));
  std::memcpy(whole.data() + kEthernetBytes + kIpv4Bytes + 6, &sum, sizeof sum);
  CHECK(whole == udp_frame(payload));
}

TEST_CASE("frame: a payload with a tag of its own needs no checksum") {
  const Frame payload = bytes(33);
  Frame whole(udp_headers_bytes(false));
  write_udp_headers(whole,
                    {.source_mac = kPeerMac,
                     .destination_mac = kOurMac,
                     .vlan = std::nullopt,
                     .source = {kPeer, 1000},
                     .destination = {kUs, 2000}},
                    Payload{payload}, UdpChecksum::kNone);
  CHECK(whole[kEthernetBytes + kIpv4Bytes + 6] == std::byte{});
  CHECK(whole[kEthernetBytes + kIpv4Bytes + 7] == std::byte{});
  whole.insert(whole.end(), payload.begin(), payload.end());
  // The port does not see a damaged payload, which its tag protects. The IP header still has a
  // checksum.
  whole.back() ^= std::byte{1};
  CHECK(parse_frame(whole, kFilter, {}).kind == FrameKind::kUdp);
  whole[kEthernetBytes + 8] ^= std::byte{1};
  CHECK(verdict(whole, kFilter) == reason(PortDrop::kBadChecksum));
}

TEST_CASE("frame: no bytes make the parser read outside them or accept nonsense") {
  std::mt19937 random(1);
  const std::vector<Frame> seeds = {udp_frame(bytes(64)), udp_frame(bytes(64), 7),
                                    echo_frame(64, std::nullopt)};
  for (int i = 0; i < 200000; ++i) {
    Frame frame = seeds[random() % seeds.size()];
    for (std::uint32_t flips = random() % 4; flips > 0; --flips) {
      frame[random() % std::min<std::size_t>(frame.size(), 46)] = static_cast<std::byte>(random());
    }
    // The allocation is exact, so AddressSanitizer sees a read past its end.
    const Frame cut(frame.begin(),
                    frame.begin() + static_cast<long>(random() % (frame.size() + 1)));
    const ParsedFrame got = parse_frame(cut, random() % 2 ? kFilter : kTaggedFilter, {});
    if (got.kind != FrameKind::kUdp) continue;
    REQUIRE(got.payload.data() >= cut.data());
    REQUIRE(got.payload.data() + got.payload.size() <= cut.data() + cut.size());
  }
}

}  // namespace

TEST_CASE("frame: the UDP checksum of a payload in pieces is that of the whole") {
  const Frame payload = bytes(301);
  const UdpFrame frame{.source_mac = kPeerMac,
                       .destination_mac = kOurMac,
                       .vlan = std::nullopt,
                       .source = {kPeer, 1000},
                       .destination = {kUs, 2000}};
  Frame whole(udp_headers_bytes(false));
  write_udp_headers(whole, frame, Payload{payload}, UdpChecksum::kSoftware);
  for (const std::size_t first : {0, 1, 7, 48}) {
    for (const std::size_t second : {1, 2, 99, 100}) {
      Frame pieces(whole.size());
      const auto rest = std::span<const std::byte>(payload).subspan(first);
      write_udp_headers(pieces, frame,
                        {.head = std::span(payload).first(first),
                         .lent = rest.first(second),
                         .tail = rest.subspan(second)},
                        UdpChecksum::kSoftware);
      if (pieces != whole) FAIL("pieces of " << first << " and " << second << " bytes");
    }
  }
}

}  // namespace gradplane::port
