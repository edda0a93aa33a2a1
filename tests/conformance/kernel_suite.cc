// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "tests/conformance/port_suite.h"
#include "tests/conformance/veth.h"
#include "tests/support/catch.h"

/// A port against the kernel of another namespace: what other hosts on the link see of a port.
namespace gradplane::conformance {

port::Port& port_to_kernel() {
  static auto port = [] {
    port::DpdkPortOptions o = veth_options("gpk0", kPortToKernel);
    o.gateway = kKernelAddress;
    disable_checksum_offload("gpk1");
    return open_or_exit(o);
  }();
  return *port;
}

void ignore_arrivals(port::Port& port) {
  std::vector<Received> ignored;
  receive_into(port, ignored);
}

namespace {

using port::PortDrop;
using port::TrafficClass;

constexpr Ipv4 kUs = kPortToKernel;
constexpr Endpoint kKernel{kKernelAddress, 7000};
constexpr Endpoint kBehind{{0x0a630001}, 7001};  // 10.99.0.1, behind the gateway 10.78.0.2
constexpr std::uint16_t kPort = 4791;

bool ping(port::Port& port, const std::string& arguments) {
  PeerCommand command("ping " + arguments);
  REQUIRE(poll_until([&] { return command.ended(); }, [&] { ignore_arrivals(port); }));
  return command.status() == 0;
}

// Sends until a datagram arrives, because the first ones may wait for an ARP answer.
std::vector<std::byte> send_to_kernel(port::Port& port, KernelSocket& kernel, Endpoint to,
                                      TrafficClass traffic, Endpoint& from, int& traffic_class) {
  std::vector<std::byte> got;
  bool arrived = false;
  Instant next_try;
  REQUIRE(poll_until([&] { return arrived; },
                     [&] {
                       if (now() >= next_try) {
                         send(port, to, 50000, pattern(1000, 3), traffic);
                         next_try = now() + Duration::ms(20);
                       }
                       ignore_arrivals(port);
                       arrived = kernel.receive(got, from, traffic_class);
                     }));
  return got;
}

TEST_CASE("kernel: a down interface is brought up, and ping is answered at every size") {
  port::Port& port = port_to_kernel();
  CHECK(ping(port, "-c 3 -i 0.05 -W 2 10.78.0.1"));
  CHECK(ping(port, "-c 1 -W 2 -s 0 10.78.0.1"));
  CHECK(ping(port, "-c 1 -W 2 -s 1 10.78.0.1"));
  CHECK(ping(port, "-c 1 -W 2 -M do -s 1472 10.78.0.1"));
}

TEST_CASE("kernel: an address that is nobody's is not answered for") {
  CHECK_FALSE(ping(port_to_kernel(), "-c 1 -W 1 10.78.0.9"));
}

TEST_CASE("kernel: resolves by ARP, and sends both classes with their code points") {
  port::Port& port = port_to_kernel();
  KernelSocket kernel(kKernel);
  Endpoint from;
  int traffic_class = -1;
  CHECK(send_to_kernel(port, kernel, kKernel, TrafficClass::kData, from, traffic_class) ==
        pattern(1000, 3));
  CHECK(from == Endpoint{kUs, 50000});
  CHECK(traffic_class == (port::kDataDscp << 2 | 2));
  Endpoint ignored;
  std::vector<std::byte> rest;
  while (kernel.receive(rest, ignored, traffic_class)) {
  }
  send_to_kernel(port, kernel, kKernel, TrafficClass::kControl, from, traffic_class);
  CHECK(traffic_class == (port::kControlDscp << 2 | 2));
}

TEST_CASE("kernel: what is not on the subnet goes through the gateway") {
  port::Port& port = port_to_kernel();
  KernelSocket kernel(kBehind);
  Endpoint from;
  int traffic_class = -1;
  send_to_kernel(port, kernel, kBehind, TrafficClass::kData, from, traffic_class);
  CHECK(from.address == kUs);
}

TEST_CASE("kernel: its datagrams arrive, with source, port and congestion mark") {
  port::Port& port = port_to_kernel();
  KernelSocket kernel(kKernel);
  for (const int mark : {0, 3}) {
    kernel.set_traffic_class(mark);
    std::vector<Received> got;
    REQUIRE(kernel.send({kUs, kPort}, pattern(1472, 9)));
    REQUIRE(poll_until([&] { return !got.empty(); }, [&] { receive_into(port, got); }));
    CHECK(got[0].payload == pattern(1472, 9));
    CHECK(got[0].source == kKernel);
    CHECK(got[0].destination_udp_port == kPort);
    CHECK(got[0].congestion_experienced == (mark == 3));
  }
}

// Frames with one error each, and a correct one.
class Injector {
 public:
  Injector() : link_("gpk1") {
    std::vector<std::byte> frame;
    link_.send(request(kUs));
    bool answered = false;
    REQUIRE(poll_until([&] { return answered; },
                       [&] {
                         ignore_arrivals(port_to_kernel());
                         answered = link_.receive(frame) && frame.size() >= port::kMinFrameBytes &&
                                    frame[12] == std::byte{8} && frame[13] == std::byte{6} &&
                                    frame[21] == std::byte{2};
                       }));
    std::memcpy(us_.bytes.data(), frame.data() + 6, us_.bytes.size());
  }

  std::vector<std::byte> request(Ipv4 target) const {
    std::vector<std::byte> frame(port::kMaxArpFrameBytes);
    frame.resize(port::write_arp(frame, {.destination_mac = port::kBroadcastMac,
                                         .vlan = std::nullopt,
                                         .is_request = true,
                                         .sender_mac = link_.mac(),
                                         .sender = kKernel.address,
                                         .target_mac = {},
                                         .target = target}));
    return frame;
  }

  std::vector<std::byte> datagram() const { return datagram_to(us_, {kUs, kPort}); }
  std::vector<std::byte> datagram_to(const port::Group& group) const {
    return datagram_to(port::group_mac(group.address), {group.address, group.udp_port});
  }

  void send(const std::vector<std::byte>& frame) { link_.send(frame); }

  // Injects a frame, then a correct one. When that has arrived, the first was counted, too.
  std::uint64_t counted(PortDrop reason, const std::vector<std::byte>& frame) {
    port::Port& port = port_to_kernel();
    const std::uint64_t before = drops(port, reason);
    link_.send(frame);
    link_.send(datagram());
    std::vector<Received> got;
    REQUIRE(poll_until([&] { return !got.empty(); }, [&] { receive_into(port, got); }));
    CHECK(got.size() == 1);
    CHECK(got[0].payload == pattern(100, 4));
    return drops(port, reason) - before;
  }

 private:
  std::vector<std::byte> datagram_to(const port::MacAddress& mac, const Endpoint& to) const {
    const std::vector<std::byte> payload = pattern(100, 4);
    std::vector<std::byte> frame(port::udp_headers_bytes(false) + payload.size());
    write_udp_headers(std::span(frame).first(port::udp_headers_bytes(false)),
                      {.source_mac = link_.mac(),
                       .destination_mac = mac,
                       .vlan = std::nullopt,
                       .source = {kKernel.address, 7777},
                       .destination = to},
                      port::Payload{payload}, port::UdpChecksum::kSoftware);
    std::memcpy(frame.data() + port::udp_headers_bytes(false), payload.data(), payload.size());
    return frame;
  }

  RawLink link_;
  port::MacAddress us_;
};

std::vector<std::byte> with(std::vector<std::byte> frame, std::size_t offset, int value) {
  frame[offset] = static_cast<std::byte>(value);
  return frame;
}

TEST_CASE("kernel: every malformed frame is counted by its reason and nothing else happens") {
  Injector link;
  const std::vector<std::byte> good = link.datagram();
  const std::vector<std::byte> short_frame(good.begin(), good.begin() + 50);
  std::vector<std::byte> tagged = good;
  const std::array tag = {std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{9}};
  tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());

  CHECK(link.counted(PortDrop::kBadHeader, short_frame) == 1);
  CHECK(link.counted(PortDrop::kBadHeader, with(good, 14, 0x46)) == 1);  // IPv4 options
  CHECK(link.counted(PortDrop::kBadHeader, with(good, 14, 0x65)) == 1);  // version 6
  // DPDK's af_packet driver reassembles fragments before the port sees them.
  const std::uint64_t fragments = kind_under_test() == port::DeviceKind::kAfPacket ? 0 : 1;
  CHECK(link.counted(PortDrop::kBadHeader, with(good, 20, 0x20)) == fragments);
  CHECK(link.counted(PortDrop::kBadHeader, with(good, 22, 0)) == 1);  // time to live
  CHECK(link.counted(PortDrop::kBadChecksum, with(good, 24, 0x5a)) == 1);
  CHECK(link.counted(PortDrop::kBadChecksum, with(good, 60, 0x5a)) == 1);
  CHECK(link.counted(PortDrop::kNotUdp, with(good, 13, 0x99)) == 1);  // an unknown Ethernet type
  const int other_mac = std::to_integer<int>(good[5]) ^ 0x5a;  // the kernel has a random address
  CHECK(link.counted(PortDrop::kNotForUs, with(good, 5, other_mac)) == 1);
  CHECK(link.counted(PortDrop::kWrongVlan, tagged) == 1);
}

/// Whether the interface passes frames to 239.192.0.1 on.
bool interface_passes_group() {
  return std::system("ip maddr show dev gpk0 | grep -q 01:00:5e:40:00:01") == 0;
}

TEST_CASE("kernel: what is sent to a group comes to its members, and is counted by others") {
  constexpr port::Group kGroup{.address = {0xefc00001}, .udp_port = kPort};
  Injector link;
  port::Port& port = port_to_kernel();
  CHECK(link.counted(PortDrop::kNotJoined, link.datagram_to(kGroup)) == 1);
  REQUIRE_FALSE(interface_passes_group());
  REQUIRE(port.join_group(kGroup));
  CHECK(interface_passes_group());
  std::vector<Received> got;
  link.send(link.datagram_to(kGroup));
  REQUIRE(poll_until([&] { return !got.empty(); }, [&] { receive_into(port, got); }));
  CHECK(got[0].payload == pattern(100, 4));
  port.leave_group(kGroup);
  CHECK_FALSE(interface_passes_group());
  CHECK(link.counted(PortDrop::kNotJoined, link.datagram_to(kGroup)) == 1);
}

TEST_CASE("kernel: what is dropped or answered gives its buffer back") {
  Injector link;
  const std::vector<std::byte> damaged = with(link.datagram(), 24, 0x5a);
  const std::array others = {link.request(kUs), link.request(Ipv4{kUs.value + 50})};
  port::Port& port = port_to_kernel();
  const std::uint64_t before = drops(port, PortDrop::kBadChecksum);
  // More frames than any pool has buffers. They come in bursts, so that the device loses none.
  constexpr std::uint64_t kFrames = 20000;
  for (std::uint64_t sent = 0; sent < kFrames; sent += port::kMaxBurst) {
    for (std::size_t i = 0; i < port::kMaxBurst; ++i)
      link.send(i % 2 == 0 ? damaged : others[i / 2 % 2]);
    const std::uint64_t due = before + (sent + port::kMaxBurst) / 2;
    REQUIRE(poll_until([&] { return drops(port, PortDrop::kBadChecksum) >= due; },
                       [&] { ignore_arrivals(port); }));
  }
  CHECK(link.counted(PortDrop::kBadChecksum, damaged) == 1);
}

TEST_CASE("kernel: somebody else with our address is counted") {
  RawLink link("gpk1");
  std::vector<std::byte> claim(port::kMaxArpFrameBytes);
  claim.resize(port::write_arp(claim, {.destination_mac = port::kBroadcastMac,
                                       .vlan = std::nullopt,
                                       .is_request = true,
                                       .sender_mac = link.mac(),
                                       .sender = kUs,
                                       .target_mac = {},
                                       .target = kUs}));
  port::Port& port = port_to_kernel();
  const std::uint64_t before = drops(port, PortDrop::kAddressConflict);
  link.send(claim);
  REQUIRE(poll_until([&] { return drops(port, PortDrop::kAddressConflict) > before; },
                     [&] { ignore_arrivals(port); }));
}

TEST_CASE("vlan: tagged ports reach each other, and untagged frames are not for them") {
  port::DpdkPortOptions o = veth_options("gpv0", Ipv4{0x0a4f0001});
  o.vlan = 7;
  const std::unique_ptr<port::Port> left = open_or_exit(o);
  o.interface = "gpv1";
  o.address = Ipv4{0x0a4f0002};
  std::unique_ptr<port::Port> right;
  {
    const InPeerNamespace there;
    right = open_or_exit(o);
  }
  for (auto [from, to] : {std::pair{left.get(), right.get()}, std::pair{right.get(), left.get()}}) {
    std::vector<Received> got;
    REQUIRE(poll_until(
        [&] { return !got.empty(); },
        [&] {
          send(*from, {to->address(), kPort}, 50000, pattern(to->mtu_payload_bytes(), 2));
          ignore_arrivals(*from);
          receive_into(*to, got);
        }));
    CHECK(got[0].payload == pattern(to->mtu_payload_bytes(), 2));
  }
  CHECK(drops(*left, PortDrop::kWrongVlan) == 0);
  std::vector<std::byte> request(port::kMaxArpFrameBytes);
  RawLink link("gpv1");
  request.resize(port::write_arp(request, {.destination_mac = port::kBroadcastMac,
                                           .vlan = std::nullopt,
                                           .is_request = true,
                                           .sender_mac = {{2, 0, 0, 0, 0, 9}},
                                           .sender = Ipv4{0x0a4f0009},
                                           .target_mac = {},
                                           .target = left->address()}));
  link.send(request);
  REQUIRE(poll_until([&] { return drops(*left, PortDrop::kWrongVlan) == 1; },
                     [&] { ignore_arrivals(*left); }));
}

}  // namespace
}  // namespace gradplane::conformance
