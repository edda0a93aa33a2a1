// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstring>
#include <initializer_list>

#include "dataplane/port/dpdk/checksum.h"
#include "tests/conformance/port_suite.h"
#include "tests/conformance/veth.h"
#include "tests/support/catch.h"

/// A port as a snooping switch sees it: its reports of groups, and its answers to queries.
namespace gradplane::conformance {
namespace {

using port::IgmpVersion;

constexpr port::Group kGroup{.address = {0xef470506}, .udp_port = 4791};

void put_checksum(std::vector<std::byte>& frame, std::size_t at, std::size_t length,
                  std::size_t field) {
  const auto part = std::span(frame).subspan(at, length);
  const auto sum = static_cast<std::uint16_t>(~port::checksum_fold(port::checksum_add(0, part)));
  std::memcpy(part.data() + field, &sum, sizeof sum);
}

/// A general query, which is to be answered within a tenth of a second.
std::vector<std::byte> question(IgmpVersion version, const port::MacAddress& from, Ipv4 source) {
  constexpr std::size_t kHeader = port::kIpv4Bytes + port::kRouterAlertBytes;
  const std::size_t message = version == IgmpVersion::k3 ? 12 : 8;
  std::vector<std::byte> frame(port::kMinFrameBytes);
  std::size_t at = 0;
  const auto put = [&](std::initializer_list<int> bytes) {
    for (const int byte : bytes) frame[at++] = static_cast<std::byte>(byte);
  };
  put({0x01, 0, 0x5e, 0, 0, 1});
  for (const std::uint8_t byte : from.bytes) put({byte});
  put({8, 0});
  put({0x46, 0xc0, 0, static_cast<int>(kHeader + message), 0, 0, 0x40, 0, 1, 2, 0, 0});
  for (const int shift : {24, 16, 8, 0}) put({static_cast<int>(source.value >> shift & 0xff)});
  put({224, 0, 0, 1, 0x94, 4, 0, 0});
  put({0x11, 1, 0, 0, 0, 0, 0, 0});
  if (version == IgmpVersion::k3) put({2, 125});
  put_checksum(frame, port::kEthernetBytes, kHeader, 10);
  put_checksum(frame, port::kEthernetBytes + kHeader, message, 2);
  return frame;
}

/// The other end of the port's link to the kernel.
class GroupReporter {
 public:
  /// Waits until the port has reported this about a group.
  void hears(const port::GroupRecord& record, IgmpVersion version) {
    bool heard = false;
    CAPTURE(static_cast<int>(record.membership), static_cast<int>(version));
    REQUIRE(poll_until([&] { return heard; },
                       [&] {
                         ignore_arrivals(port_to_kernel());
                         std::vector<std::byte> frame;
                         while (!heard && link_.receive(frame))
                           heard = says(frame, record, version);
                       }));
  }

  /// Queries like a switch without an address.
  void asks(IgmpVersion version) { link_.send(question(version, link_.mac(), {})); }

 private:
  static bool says(const std::vector<std::byte>& frame, const port::GroupRecord& record,
                   IgmpVersion version) {
    if (frame.size() < port::kEthernetBytes) return false;
    port::FrameFilter us{.mac = {}, .address = kPortToKernel, .vlan = std::nullopt};
    std::memcpy(us.mac.bytes.data(), frame.data() + 6, us.mac.bytes.size());
    std::vector<std::byte> expected(port::kMaxGroupReportBytes);
    expected.resize(version == IgmpVersion::k3
                        ? port::write_group_report(expected, us, {&record, 1})
                        : port::write_old_group_report(expected, us, record));
    return frame == expected;
  }

  RawLink link_{"gpk1"};
};

std::uint64_t version_at(port::Port& port, std::size_t queue) {
  return port.queue(queue).counters().igmp_version;
}

}  // namespace

TEST_CASE("igmp: groups are reported as they are joined, asked for and left") {
  port::Port& port = port_to_kernel();
  GroupReporter link;
  for (const IgmpVersion version : {IgmpVersion::k3, IgmpVersion::k2}) {
    REQUIRE(port.join_group(kGroup));
    link.hears({kGroup.address, port::Membership::kJoined}, version);
    link.asks(version);
    link.hears({kGroup.address, port::Membership::kMember}, version);
    CHECK(version_at(port, 0) == static_cast<std::uint64_t>(version));
    port.leave_group(kGroup);
    link.hears({kGroup.address, port::Membership::kLeft}, version);
    // From now on the port uses version 2.
    link.asks(IgmpVersion::k2);
    REQUIRE(poll_until([&] { return version_at(port, 0) == 2; }, [&] { ignore_arrivals(port); }));
  }
}

TEST_CASE("igmp: queue 0 hears every question, whichever queue it comes by") {
  const Result<PortPair*> made = ports_with_queues();
  if (!made) return;  // the queue suite prints the reason
  port::Port& port = made.value()->left;
  RawLink link("gpq1");
  // The queries have many senders, so the device spreads them over the queues.
  for (std::uint32_t host = 1; host <= 32; ++host) {
    link.send(question(IgmpVersion::k3, link.mac(), {0x0a510000 + host}));
  }
  REQUIRE(poll_until([&] { return version_at(port, 0) == 3; }, [&] { ignore_arrivals(port); }));
  for (int turn = 0; turn < 100; ++turn) ignore_arrivals(port);
  CHECK(version_at(port, 1) == 0);
}

}  // namespace gradplane::conformance
