// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Auxiliary routes, with whole engines in virtual time. run() checks every sum.

#include "dataplane/wire/envelope.h"
#include "tests/sim/cluster.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

constexpr std::uint64_t kSlow = 20'000'000;
constexpr std::uint64_t kFast = 200'000'000;

/// Three nodes with a rank each. Node 0 is the root. The link between 0 and 1 is slow. All others
/// are fast, so node 2 can relay.
Scenario triangle(bool with_routes) {
  Scenario s;
  s.seed = 1;
  s.link.bits_per_second = kFast;
  s.link.delay = Duration::us(500);
  s.link.queue_bytes = 256 << 10;
  s.link.pair_links = {{.from = 0, .to = 1, .bits_per_second = kSlow},
                       {.from = 1, .to = 0, .bits_per_second = kSlow}};
  s.plan.epoch = 5;
  s.plan.members = members(0, 3);
  s.plan.trees = {{.weight = 1, .root = 0, .parent = {api::kNoNode, 0, 0}}};
  if (with_routes) {
    s.plan.routes = {{.from = 1, .to = 0, .via = {2}}, {.from = 0, .to = 1, .via = {2}}};
  }
  s.paced = false;
  s.block_bytes = kDefaultBlockBytes;
  s.round_bytes = 1 << 20;
  s.rounds.assign(12, {ElementType::kFloat32, (1 << 20) / sizeof(float)});
  s.compute_max = {};
  return s;
}

double seconds_of(const Outcome& outcome) {
  return (outcome.ended - Instant()).to_seconds();
}

Outcome run_well(const Scenario& s) {
  const Outcome outcome = run(s);
  INFO(outcome.failure);
  REQUIRE(outcome.failure.empty());
  return outcome;
}

}  // namespace

TEST_CASE("blocks go round a slow link over an idle node") {
  const Outcome straight = run_well(triangle(false));
  const Outcome routed = run_well(triangle(true));
  CHECK(straight.counters.blocks_routed == 0);
  CHECK(routed.counters.blocks_routed > 1000);
  CHECK(routed.counters.blocks_relayed > routed.counters.blocks_routed * 9 / 10);
  INFO("straight " << seconds_of(straight) << " s, with routes " << seconds_of(routed)
                   << " s; lost " << routed.counters.blocks_suspected_lost << " of "
                   << routed.counters.blocks_sent << ", routed " << routed.counters.blocks_routed);
  CHECK(seconds_of(routed) < seconds_of(straight) / 3);
}

TEST_CASE("a relay measures the first link of a route, although no tree uses it") {
  CHECK(run_well(triangle(false)).links[2].find(1) == nullptr);
  const Outcome outcome = run_well(triangle(true));
  const awareness::LinkEstimate* link = outcome.links[2].find(1);
  REQUIRE(link != nullptr);
  const auto rate = link->rate(outcome.ended);
  INFO(rate.bits_per_second << " bit/s, confidence " << rate.confidence);
  CHECK(rate.bits_per_second > kSlow);
  CHECK(rate.bits_per_second <= kFast * 105 / 100);
}

TEST_CASE("sums are right when blocks on all paths are lost, repeated and overtaken") {
  for (const bool authenticate : {true, false}) {
    for (const bool grants : {false, true}) {
      INFO("authenticated " << authenticate << ", grants " << grants);
      Scenario s = triangle(true);
      s.authenticate = authenticate;
      s.grants = grants;
      s.rounds.resize(6);
      s.link.loss = 0.02;
      s.link.duplication = 0.05;
      s.link.jitter = Duration::ms(2);
      s.link.replays = 0.05;
      const Outcome outcome = run_well(s);
      CHECK(outcome.counters.blocks_routed > 100);
    }
  }
}

TEST_CASE("a route that carries nothing costs little") {
  Scenario dead = triangle(true);
  dead.link.lose = [](std::uint16_t, std::uint16_t, const testing::SeenPacket& packet) {
    return wire::is_routed(packet);
  };
  const Outcome straight = run_well(triangle(false));
  const Outcome outcome = run_well(dead);
  CHECK(outcome.counters.blocks_relayed == 0);
  CHECK(outcome.counters.blocks_routed > 0);
  CHECK(outcome.counters.blocks_routed < outcome.counters.blocks_sent / 20);
  INFO("straight " << seconds_of(straight) << " s, with a dead route " << seconds_of(outcome));
  CHECK(seconds_of(outcome) < seconds_of(straight) * 1.2);
}

TEST_CASE("a route may have two relays, also one that is in no tree") {
  // Node 3 is a member that has no ranks and is in no tree.
  Scenario s = triangle(false);
  s.plan.members.push_back({.node = 3, .ranks = {}});
  s.plan.trees[0].parent.push_back(api::kNoNode);
  s.plan.routes = {{.from = 1, .to = 0, .via = {3, 2}}};
  s.rounds.resize(4);
  const Outcome outcome = run_well(s);
  CHECK(outcome.counters.blocks_routed > 100);
  CHECK(outcome.counters.blocks_relayed > outcome.counters.blocks_routed * 18 / 10);
}

TEST_CASE("plans with other routes follow each other") {
  Scenario s = triangle(true);
  s.round_bytes = 64 << 10;
  s.rounds.assign(400, {ElementType::kFloat32, (64 << 10) / sizeof(float)});
  s.link.loss = 0.01;
  s.link.jitter = Duration::us(300);
  s.flip_every = 50;
  for (std::uint32_t n = 1; n <= 5; ++n) {
    api::Plan next = s.plan;
    next.epoch += n;
    if (n % 2 == 1) next.routes.clear();
    if (n == 4) next.trees[0] = {.weight = 1, .root = 2, .parent = {2, 2, api::kNoNode}};
    if (n == 4) next.routes = {{.from = 0, .to = 2, .via = {1}}, {.from = 2, .to = 1, .via = {0}}};
    s.flips.push_back(next);
  }
  const Outcome outcome = run_well(s);
  CHECK(outcome.activations.size() >= 4);
  CHECK(outcome.counters.blocks_routed > 100);
}
