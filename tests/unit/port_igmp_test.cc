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

constexpr Ipv4 kGroup{0xefc00102};  // 239.192.1.2
constexpr Ipv4 kOther{0xef470506};  // 239.71.5.6
constexpr std::size_t kIp = kEthernetBytes;
constexpr std::size_t kMessage = kIp + kIpv4Bytes + kRouterAlertBytes;
constexpr std::size_t kQuery2Bytes = 8;
constexpr std::size_t kQuery3Bytes = 12;

FrameFilter us(const GroupTable* groups = nullptr) {
  return {
      .mac = {{2, 0, 0, 0, 0, 1}}, .address = {0x0a4d0001}, .vlan = std::nullopt, .groups = groups};
}

Frame report(const std::vector<GroupRecord>& records, const FrameFilter& from = us()) {
  Frame frame(kMaxGroupReportBytes, std::byte{0x55});
  frame.resize(write_group_report(frame, from, records));
  return frame;
}

Frame old_report(const GroupRecord& record, const FrameFilter& from = us()) {
  Frame frame(kMaxGroupReportBytes, std::byte{0x55});
  frame.resize(write_old_group_report(frame, from, record));
  return frame;
}

// A query as a Linux bridge sends it: without a source address.
Frame general(IgmpVersion version) {
  return version == IgmpVersion::k3
             ? from_hex(
                   "01005e000001 020000000002 0800"
                   "46c0 0024 0000 4000 01 02 0413 00000000 e0000001 94040000"
                   "11 64 ec1e 00000000 02 7d 0000 00000000000000000000")
             : from_hex(
                   "01005e000001 020000000002 0800"
                   "46c0 0020 0000 4000 01 02 0417 00000000 e0000001 94040000"
                   "11 64 ee9b 00000000 0000000000000000000000000000");
}
Frame about_group() {
  return from_hex(
      "01005e400102 020000000002 0800"
      "46c0 0024 0000 4000 01 02 e902 0a4d0002 efc00102 94040000"
      "11 0a fbb5 efc00102 02 7d 0000 00000000000000000000");
}

void refresh(Frame& frame, std::size_t at, std::size_t length, std::size_t field) {
  const std::span<std::byte> part = std::span(frame).subspan(at, length);
  part[field] = part[field + 1] = std::byte{0};
  const auto sum = static_cast<std::uint16_t>(~checksum_fold(checksum_add(0, part)));
  std::memcpy(part.data() + field, &sum, sizeof sum);
}

// Changes a byte and then makes the checksums right, for a message of this length.
Frame with(Frame frame, std::size_t offset, int value, std::size_t message_bytes = kQuery3Bytes) {
  frame[offset] = static_cast<std::byte>(value);
  refresh(frame, kIp, kMessage - kIp, 10);
  refresh(frame, kMessage, message_bytes, 2);
  return frame;
}

// Gives the frame a message of another length.
Frame with_length(Frame frame, std::size_t message_bytes) {
  frame.resize(std::max(frame.size(), kMessage + message_bytes));
  return with(std::move(frame), kIp + 3, static_cast<int>(kMessage - kIp + message_bytes),
              message_bytes);
}

// Returns the reason of a drop as a number, or -1 for a query.
int verdict(const Frame& frame, const FrameFilter& filter = us()) {
  const ParsedFrame parsed = parse_frame(frame, filter, {});
  if (parsed.kind == FrameKind::kGroupQuery) return -1;
  REQUIRE(parsed.kind == FrameKind::kDropped);
  return static_cast<int>(parsed.drop);
}
int reason(PortDrop drop) {
  return static_cast<int>(drop);
}

Duration response_of(const Frame& frame) {
  const ParsedFrame parsed = parse_frame(frame, us(), {});
  REQUIRE(parsed.kind == FrameKind::kGroupQuery);
  return parsed.query.max_response;
}

}  // namespace

TEST_CASE("igmp: reports as they have to be on the wire") {
  // Reports go to 224.0.0.22, with a time to live of 1 and a router alert.
  CHECK(report({{kGroup, Membership::kJoined}, {kOther, Membership::kLeft}}) ==
        from_hex("01005e000016 020000000001 0800"
                 "46c0 0030 0000 4000 01 02 f9a3 0a4d0001 e0000016 94040000"
                 "22 00 f1ec 0000 0002 04000000 efc00102 03000000 ef470506"));
  FrameFilter tagged = us();
  tagged.vlan = 7;
  CHECK(old_report({kGroup, Membership::kJoined}, tagged) ==
        from_hex("01005e400102 020000000001 8100c007 0800"
                 "46c0 0020 0000 4000 01 02 e907 0a4d0001 efc00102 94040000"
                 "16 00 f93c efc00102 0000000000000000000000000000"));
  CHECK(old_report({kGroup, Membership::kMember}).at(kMessage) == std::byte{0x16});
  CHECK(old_report({kGroup, Membership::kLeft}) ==
        from_hex("01005e000002 020000000001 0800"
                 "46c0 0020 0000 4000 01 02 f9c7 0a4d0001 e0000002 94040000"
                 "17 00 f83c efc00102 0000000000000000000000000000"));
}

TEST_CASE("igmp: the longest report is as long as it says") {
  std::vector<GroupRecord> records;
  for (std::uint32_t g = 0; g < kMaxGroupRecords; ++g) {
    records.push_back({{kGroup.value + g}, Membership::kMember});
  }
  FrameFilter tagged = us();
  tagged.vlan = 7;
  const Frame frame = report(records, tagged);
  CHECK(frame.size() == kMaxGroupReportBytes);
  const std::span<const std::byte> ip = std::span(frame).subspan(kEthernetBytes + kVlanTagBytes);
  CHECK(checksum_fold(checksum_add(0, ip.first(24))) == 0xffff);
  CHECK(checksum_fold(checksum_add(0, ip.subspan(24))) == 0xffff);
  CHECK(frame.back() == std::byte{0x02 + kMaxGroupRecords - 1});
}

TEST_CASE("igmp: questions of both versions are understood, whoever asks") {
  const ParsedFrame got = parse_frame(general(IgmpVersion::k3), us(), {});
  REQUIRE(got.kind == FrameKind::kGroupQuery);
  CHECK(got.query.version == IgmpVersion::k3);
  CHECK(got.query.group == Ipv4{});
  CHECK(got.query.max_response == Duration::seconds(10));
  const ParsedFrame old = parse_frame(general(IgmpVersion::k2), us(), {});
  REQUIRE(old.kind == FrameKind::kGroupQuery);
  CHECK(old.query.version == IgmpVersion::k2);
  CHECK(old.query.max_response == Duration::seconds(10));
}

TEST_CASE("igmp: the time to answer is in tenths of a second") {
  const auto of3 = [](int code) {
    return response_of(with(general(IgmpVersion::k3), kMessage + 1, code));
  };
  CHECK(of3(0) == Duration());
  CHECK(of3(1) == Duration::ms(100));
  CHECK(of3(127) == Duration::ms(12'700));
  CHECK(of3(128) == Duration::ms(12'800));
  CHECK(of3(0x9f) == Duration::ms(100) * (31 << 4));
  CHECK(of3(255) == Duration::ms(3'174'400));
  const auto of2 = [](int code) {
    return response_of(with(general(IgmpVersion::k2), kMessage + 1, code, kQuery2Bytes));
  };
  CHECK(of2(255) == Duration::ms(25'500));
  CHECK(of2(0) == Duration::seconds(10));  // version 1
}

TEST_CASE("igmp: a question about a group is for who is in it") {
  GroupTable groups;
  CHECK(verdict(about_group()) == reason(PortDrop::kNotJoined));
  CHECK(verdict(about_group(), us(&groups)) == reason(PortDrop::kNotJoined));
  REQUIRE(groups.join({kOther, 2000}));
  CHECK(verdict(about_group(), us(&groups)) == reason(PortDrop::kNotJoined));
  REQUIRE(groups.join({kGroup, 2000}));
  const ParsedFrame got = parse_frame(about_group(), us(&groups), {});
  REQUIRE(got.kind == FrameKind::kGroupQuery);
  CHECK(got.query.group == kGroup);
  CHECK(got.query.max_response == Duration::seconds(1));
}

TEST_CASE("igmp: each thing that is wrong has its reason") {
  GroupTable groups;
  REQUIRE(groups.join({kGroup, 2000}));
  const FrameFilter filter = us(&groups);
  const auto check = [&](const Frame& frame) { return verdict(frame, filter); };
  const Frame good = general(IgmpVersion::k3);
  REQUIRE(check(good) == -1);
  REQUIRE(check(with_length(good, kQuery3Bytes)) == -1);
  SECTION("a message that is too short, of no version, or has fewer senders than it says") {
    for (const std::size_t bytes : {0u, 4u, 7u, 9u, 10u, 11u}) {
      CAPTURE(bytes);
      Frame frame = good;
      frame[kIp + 3] = static_cast<std::byte>(kMessage - kIp + bytes);
      refresh(frame, kIp, kMessage - kIp, 10);
      if (bytes >= 4) refresh(frame, kMessage, bytes, 2);
      CHECK(check(frame) == reason(PortDrop::kBadHeader));
    }
    CHECK(check(with(good, kMessage + 11, 1)) == reason(PortDrop::kBadHeader));
    CHECK(check(with(good, kMessage + 10, 255)) == reason(PortDrop::kBadHeader));
    CHECK(check(with_length(with(good, kMessage + 11, 1), 16)) == -1);
  }
  SECTION("a destination that the question does not have") {
    CHECK(check(with(good, kMessage + 7, 1)) == reason(PortDrop::kBadHeader));
    Frame to_group = about_group();
    std::fill_n(to_group.begin() + kMessage + 4, 4, std::byte{0});
    CHECK(check(with(to_group, kMessage + 8, 2)) == reason(PortDrop::kBadHeader));
    CHECK(check(with(about_group(), 5, 3)) == reason(PortDrop::kNotForUs));  // other MAC address
    CHECK(check(with(good, kIp + 19, 2)) == reason(PortDrop::kNotForUs));    // to 224.0.0.2
    Frame to_us = good;
    std::copy_n(us().mac.bytes.begin(), 6, reinterpret_cast<std::uint8_t*>(to_us.data()));
    CHECK(check(to_us) == reason(PortDrop::kNotForUs));
  }
  SECTION("checksums and headers") {
    Frame damaged = good;
    damaged[kMessage + 9] = std::byte{1};
    CHECK(check(damaged) == reason(PortDrop::kBadChecksum));
    damaged = good;
    damaged[kMessage - 1] = std::byte{1};  // a byte of the IP options
    CHECK(check(damaged) == reason(PortDrop::kBadChecksum));
    Frame cut(good.begin(), good.begin() + 40);
    CHECK(check(cut) == reason(PortDrop::kBadHeader));
    CHECK(check(with(good, kIp, 0x44)) == reason(PortDrop::kBadHeader));
    CHECK(check(with(good, kIp, 0x66)) == reason(PortDrop::kBadHeader));
    CHECK(check(with(good, kIp, 0x4f)) == reason(PortDrop::kBadHeader));
    CHECK(check(with(good, kIp + 9, 17)) == reason(PortDrop::kBadHeader));  // UDP with options
  }
  SECTION("what others report") {
    CHECK(check(with(about_group(), kMessage, 0x16)) == reason(PortDrop::kNotUdp));
    CHECK(check(with(good, kMessage, 0x22)) == reason(PortDrop::kNotUdp));
    FrameFilter other = us();
    other.mac.bytes[5] = 9;
    CHECK(check(report({{kGroup, Membership::kJoined}}, other)) == reason(PortDrop::kNotForUs));
  }
  SECTION("a question without a router alert is one") {
    Frame plain = good;
    plain.erase(plain.begin() + kIp + kIpv4Bytes, plain.begin() + kMessage);
    plain[kIp] = std::byte{0x45};
    plain[kIp + 3] = std::byte{kIpv4Bytes + kQuery3Bytes};
    refresh(plain, kIp, kIpv4Bytes, 10);
    CHECK(check(plain) == -1);
  }
}

TEST_CASE("igmp: no bytes make the parser read outside them") {
  std::mt19937 random(1);
  GroupTable groups;
  REQUIRE(groups.join({kGroup, 2000}));
  const std::vector<Frame> seeds = {general(IgmpVersion::k3), general(IgmpVersion::k2),
                                    about_group()};
  std::size_t questions = 0;
  for (int i = 0; i < 200000; ++i) {
    Frame frame = seeds[random() % seeds.size()];
    for (std::uint32_t flips = random() % 4; flips > 0; --flips) {
      const std::size_t at = kIp + random() % (kMessage + kQuery3Bytes - kIp);
      frame[at] = static_cast<std::byte>(random());
    }
    // With right checksums the parser reads further.
    if (random() % 2 != 0) frame = with(std::move(frame), kIp, 0x46);
    // The allocation is exact, so AddressSanitizer sees a read past its end.
    const Frame cut(
        frame.begin(),
        frame.begin() + static_cast<long>(frame.size() - random() % 2 * (random() % 60)));
    const ParsedFrame got = parse_frame(cut, us(&groups), {});
    if (got.kind != FrameKind::kGroupQuery) continue;
    ++questions;
    REQUIRE((got.query.group == Ipv4{} || got.query.group == kGroup));
    REQUIRE(got.query.max_response <= Duration::ms(3'174'400));
  }
  CHECK(questions > 20'000);
}

}  // namespace gradplane::port
