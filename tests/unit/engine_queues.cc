// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Several engines of one node, each on a queue of the node's port. No engine gets packets of
// another.
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/engine_host.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kElements = 5000;
constexpr std::size_t kNodes = 2;
constexpr std::uint16_t kEngines = 2;

/// Two nodes with two engines each. One thread polls all of them in turn.
class TwoByTwo {
 public:
  TwoByTwo() : network_(port::LoopbackNetwork::create(kAddresses, kOptions).value()) {
    for (std::uint16_t n = 0; n < kNodes; ++n) {
      ports_.push_back(std::move(network_->open(kAddresses[n]).value()));
      for (std::uint16_t q = 0; q < kEngines; ++q) {
        hosts_[n].push_back(std::make_unique<EngineHost>(*ports_[n], q, n, kAddresses));
      }
    }
  }

  EngineHost& engine(std::size_t node, std::size_t queue) { return *hosts_[node][queue]; }
  port::Port& port(std::size_t node) { return *ports_[node]; }
  Instant now() const { return now_; }
  void turn() {
    for (auto& engines : hosts_) {
      for (const auto& host : engines) host->engine().poll_once(now_);
    }
    now_ = now_ + Duration::us(1);
  }

 private:
  inline static const std::vector<Ipv4> kAddresses = {{0x0a000001U}, {0x0a000002U}};
  inline static const port::LoopbackOptions kOptions = {
      .steering = {.queue_count = kEngines, .first_udp_port = EngineHost::kFirstUdpPort}};

  std::shared_ptr<port::LoopbackNetwork> network_;
  std::vector<std::unique_ptr<port::Port>> ports_;
  std::array<std::vector<std::unique_ptr<EngineHost>>, kNodes> hosts_;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

/// A job that runs on both nodes.
struct Pair {
  EngineHost::Job& a;
  EngineHost::Job& b;

  void submit(std::uint32_t round, float value) const {
    REQUIRE(a.trainers[0].submit(round, kElements, value));
    REQUIRE(b.trainers[0].submit(round, kElements, 2 * value));
  }
  bool has_sum(std::uint32_t round, float value) const {
    ipc::Completion at_a{}, at_b{};
    if (!a.trainers[0].completions.pop(at_a) || !b.trainers[0].completions.pop(at_b)) return false;
    CHECK(at_a.round == round);
    CHECK(at_b.round == round);
    CHECK(a.trainers[0].last(round, kElements) == 3 * value);
    CHECK(b.trainers[0].last(round, kElements) == 3 * value);
    return true;
  }
};

std::uint64_t drops(const api::TrafficSnapshot& traffic) {
  return std::accumulate(traffic.drops.begin(), traffic.drops.end(), std::uint64_t{0});
}

}  // namespace

TEST_CASE("two engines of a node carry a job each over their queues, and meet nowhere") {
  TwoByTwo nodes;
  // Two engines may have jobs with the same number. They are different jobs.
  const std::uint32_t second = GENERATE(1, 2);
  const Pair pairs[] = {{nodes.engine(0, 0).add({.id = 1, .plan = star_of(2)}),
                         nodes.engine(1, 0).add({.id = 1, .plan = star_of(2)})},
                        {nodes.engine(0, 1).add({.id = second, .plan = star_of(2)}),
                         nodes.engine(1, 1).add({.id = second, .plan = star_of(2)})}};
  for (std::uint32_t round = 0; round < 20; ++round) {
    const auto value = static_cast<float>(round + 1);
    pairs[0].submit(round, value);
    pairs[1].submit(round, 10 * value);
    for (int turn = 0; turn < 3'000; ++turn) nodes.turn();
    REQUIRE(pairs[0].has_sum(round, value));
    REQUIRE(pairs[1].has_sum(round, 10 * value));
  }
  for (std::size_t n = 0; n < kNodes; ++n) {
    port::PortCounters sum;
    for (std::size_t q = 0; q < kEngines; ++q) {
      const auto snapshot = nodes.engine(n, q).snapshot(nodes.now());
      CHECK(drops(snapshot->node) == 0);
      CHECK(snapshot->job_count == 1);
      CHECK(snapshot->jobs[0].traffic.blocks_sent > 0);
      CHECK(snapshot->port.rx_datagrams > 0);
      sum += nodes.engine(n, q).queue().counters();
    }
    CHECK(nodes.port(n).total_counters().rx_datagrams == sum.rx_datagrams);
  }
}

TEST_CASE("one engine that is not polled holds up no other") {
  TwoByTwo nodes;
  const Pair stuck{nodes.engine(0, 0).add({.id = 1, .plan = star_of(2)}),
                   nodes.engine(1, 0).add({.id = 1, .plan = star_of(2)})};
  const Pair moving{nodes.engine(0, 1).add({.id = 2, .plan = star_of(2)}),
                    nodes.engine(1, 1).add({.id = 2, .plan = star_of(2)})};
  stuck.submit(0, 1);
  Instant now = nodes.now();
  for (std::uint32_t round = 0; round < 5; ++round) {
    moving.submit(round, 2);
    for (int turn = 0; turn < 3'000; ++turn) {
      nodes.engine(0, 1).engine().poll_once(now);
      nodes.engine(1, 1).engine().poll_once(now);
      now = now + Duration::us(1);
    }
    REQUIRE(moving.has_sum(round, 2));
  }
  CHECK_FALSE(stuck.has_sum(0, 1));
}

TEST_CASE("only the engine of queue 0 grants for its node") {
  for (const std::uint16_t queue : std::initializer_list<std::uint16_t>{0, 1}) {
    TwoByTwo nodes;
    EngineHost& host = nodes.engine(0, queue);
    host.add({.id = 1, .plan = star_of(2), .grants = true});
    for (int turn = 0; turn < 100; ++turn) nodes.turn();
    const std::vector<api::Event> events = host.events();
    REQUIRE(events.size() == queue);
    if (queue == 1) CHECK(events[0].job_refusal == JobRefusal::kNoGrants);
  }
}
