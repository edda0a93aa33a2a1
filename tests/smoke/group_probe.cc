// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A port that groups_test.py controls. It joins and leaves groups, and sends and counts datagrams,
// as lines on its input say. It answers each of them with a line.
//   group_probe KIND INTERFACE ADDRESS
//     join GROUP            leave GROUP
//     multicast GROUP COUNT    datagrams to the group
//     unicast ADDRESS          one, as soon as the neighbour is known
//     seen                     numbers of datagrams: to its groups, to itself, to other groups
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "dataplane/port/dpdk/dpdk_port.h"

namespace gradplane {
namespace {

constexpr std::uint16_t kUdpPort = 47000;
constexpr std::byte kToGroup{1};
constexpr std::byte kToNode{2};

Instant now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return Instant::from_ns(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

Ipv4 address_of(const std::string& text) {
  std::array<unsigned, 4> part{};
  if (std::sscanf(text.c_str(), "%u.%u.%u.%u", &part[0], &part[1], &part[2], &part[3]) != 4) {
    return {};
  }
  return {part[0] << 24 | part[1] << 16 | part[2] << 8 | part[3]};
}

class Probe {
 public:
  explicit Probe(port::Port& port) : port_(port), queue_(port.queue(0)) {}

  void poll() {
    queue_.tick(now());
    std::array<port::RxDatagram, port::kMaxBurst> burst;
    const std::size_t count = queue_.receive(burst);
    for (std::size_t i = 0; i < count; ++i) {
      if (burst[i].payload.empty()) continue;
      to_group_ += burst[i].payload[0] == kToGroup ? 1 : 0;
      to_node_ += burst[i].payload[0] == kToNode ? 1 : 0;
    }
    queue_.release({burst.data(), count});
  }

  std::string obey(const std::string& line) {
    std::istringstream words(line);
    std::string command, where;
    int count = 0;
    words >> command >> where >> count;
    const port::Group group{address_of(where), kUdpPort};
    if (command == "join") {
      const Status joined = port_.join_group(group);
      return joined ? "ok" : joined.error().message;
    }
    if (command == "leave") {
      port_.leave_group(group);
      return "ok";
    }
    if (command == "multicast") {
      while (count-- > 0) send(group, kToGroup);
      return "ok";
    }
    if (command == "unicast") {
      send(Endpoint{address_of(where), kUdpPort}, kToNode);
      return "ok";
    }
    const auto& drops = queue_.counters().drops;
    return std::to_string(to_group_) + " " + std::to_string(to_node_) + " " +
           std::to_string(drops[static_cast<std::size_t>(port::PortDrop::kNotJoined)]);
  }

 private:
  /// Tries until the device takes the datagram.
  void send(const port::Destination& to, std::byte first) {
    for (;;) {
      port::TxDatagram datagram;
      if (queue_.allocate(datagram)) {
        datagram.buffer[0] = first;
        datagram.length_bytes = 64;
        datagram.destination = to;
        datagram.source_udp_port = 50000;
        if (queue_.transmit({&datagram, 1}) == 1) return;
      }
      poll();
    }
  }

  port::Port& port_;
  port::PortQueue& queue_;
  std::uint64_t to_group_ = 0;
  std::uint64_t to_node_ = 0;
};

int run(const std::string& kind, const std::string& interface, const std::string& address) {
  port::DpdkPortOptions options;
  options.kind = kind == "af_xdp" ? port::DeviceKind::kAfXdp : port::DeviceKind::kAfPacket;
  options.interface = interface;
  options.address = address_of(address);
  options.huge_pages = port::HugePages::kNever;
  auto port = port::open_dpdk_port(options);
  if (!port) {
    std::cerr << port.error().message << "\n";
    return 1;
  }
  Probe probe(*port.value());
  fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  std::cout << "ready" << std::endl;
  std::string pending;
  for (;;) {
    probe.poll();
    std::array<char, 256> text;
    const ssize_t got = read(STDIN_FILENO, text.data(), text.size());
    if (got == 0) return 0;
    if (got > 0) pending.append(text.data(), static_cast<std::size_t>(got));
    for (std::size_t end; (end = pending.find('\n')) != std::string::npos;) {
      std::cout << probe.obey(pending.substr(0, end)) << std::endl;
      pending.erase(0, end + 1);
    }
    usleep(100);  // The hosts of a lab share processors.
  }
}

}  // namespace
}  // namespace gradplane

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: group_probe af_packet|af_xdp INTERFACE ADDRESS\n";
    return 2;
  }
  return gradplane::run(argv[1], argv[2], argv[3]);
}
