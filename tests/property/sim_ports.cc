// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The simulator's ports behave as ports must: groups and queues, in virtual time.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "tests/sim/network.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

constexpr port::Group kGroup{.address = {0xefc00001}, .udp_port = 47001};
constexpr port::Steering kTwoQueues{.queue_count = 2, .first_udp_port = 47000};

class Hosts {
 public:
  Hosts(sim::LinkModel model, std::uint16_t count) : network_(std::move(model), 1) {
    for (std::uint16_t h = 0; h < count; ++h) {
      const Ipv4 address{0x0a000001U + h};
      network_.add_host(address);
      ports_.push_back(std::make_unique<sim::SimPort>(network_, h, address, now_, kTwoQueues));
    }
  }

  port::Port& port(std::size_t host) { return *ports_[host]; }
  std::uint64_t dropped() const { return network_.dropped(); }
  void send(std::size_t from, const port::Destination& to) {
    port::TxDatagram d;
    REQUIRE(port(from).queue(0).allocate(d));
    d.length_bytes = 100;
    d.destination = to;
    REQUIRE(port(from).queue(0).transmit(std::span(&d, 1)) == 1);
  }
  /// How many datagrams have arrived at this queue of each host, after a while.
  std::vector<std::size_t> arrived(std::size_t queue) {
    now_ = now_ + Duration::ms(10);
    network_.run_until(now_, [](std::uint16_t) {});
    std::vector<std::size_t> counts;
    for (const auto& port : ports_) {
      std::array<port::RxDatagram, port::kMaxBurst> burst;
      counts.push_back(port->queue(queue).receive(burst));
      port->queue(queue).release(std::span(burst).first(counts.back()));
    }
    return counts;
  }

 private:
  Instant now_;
  sim::Network network_;
  std::vector<std::unique_ptr<sim::SimPort>> ports_;
};

}  // namespace

TEST_CASE("simulated groups: members hear, but for the sender, who left, and who never joined") {
  Hosts hosts({}, 5);
  for (const std::size_t member : {0, 1, 2, 3}) REQUIRE(hosts.port(member).join_group(kGroup));
  CHECK_FALSE(hosts.port(1).join_group(kGroup));
  hosts.port(2).leave_group(kGroup);
  hosts.send(0, kGroup);
  CHECK(hosts.arrived(1) == std::vector<std::size_t>{0, 1, 0, 1, 0});
  CHECK(hosts.arrived(0) == std::vector<std::size_t>{0, 0, 0, 0, 0});
}

TEST_CASE("simulated groups: a copy that is lost is lost to one member") {
  sim::LinkModel model;
  model.host_faults = {{.host = 2, .loss_received = 1}};
  Hosts hosts(model, 4);
  for (const std::size_t member : {1, 2, 3}) REQUIRE(hosts.port(member).join_group(kGroup));
  hosts.send(0, kGroup);
  CHECK(hosts.arrived(1) == std::vector<std::size_t>{0, 1, 0, 1});
  CHECK(hosts.dropped() == 1);
}

TEST_CASE("simulated queues: a datagram waits for the queue of its UDP port") {
  Hosts hosts({}, 2);
  const Ipv4 to = hosts.port(1).address();
  hosts.send(0, Endpoint{to, 47001});
  hosts.send(0, Endpoint{to, 47000});
  hosts.send(0, Endpoint{to, 47001});
  hosts.send(0, Endpoint{to, 9});
  CHECK(hosts.arrived(1) == std::vector<std::size_t>{0, 2});
  CHECK(hosts.arrived(0) == std::vector<std::size_t>{0, 2});
}
