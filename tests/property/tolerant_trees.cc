// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Deadlines in trees of several levels whose links have very different delays.
#include <memory>
#include <set>
#include <utility>

#include "tests/property/seeds.h"
#include "tests/property/tolerant_lab.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"

using namespace gradplane;
using namespace gradplane::tolerant_lab;
using gradplane::testing::kSanitized;

namespace {

/// The permission to close early goes down one level in each round after the strict ones.
constexpr std::uint32_t kLossyRound = 8;
constexpr std::uint32_t kLate = 6;

/// A chain: node 0 is the root, and each further node sends to the one before. The last node sends
/// to the root over a link without delay. `delays`: one-way delays of the chain's links.
struct Chain {
  std::vector<Duration> delays;
  bool relays_have_ranks = true;
  /// On a slow link, later blocks prove the loss of earlier ones. On a fast link, the whole round
  /// is in flight before anything is acked.
  std::uint64_t mbit = 2;

  std::uint16_t height() const { return static_cast<std::uint16_t>(delays.size()); }
  std::uint16_t near_leaf() const { return static_cast<std::uint16_t>(height() + 1); }
  bool has_rank(std::uint16_t node) const {
    return node >= height() || (node > 0 && relays_have_ranks);
  }
};

plan::Network network_of(const Chain& chain) {
  plan::Network network = testing::sites(chain.near_leaf() + std::size_t{1});
  const std::uint64_t rate = chain.mbit * testing::kMbit;
  for (std::size_t n = 0; n < chain.delays.size(); ++n) {
    testing::connect(network, n, n + 1, rate, rate, chain.delays[n] * 2);
  }
  testing::connect(network, 0, chain.near_leaf(), rate, rate);
  return network;
}

Scenario chain_scenario(const Chain& chain, std::uint32_t rounds) {
  Scenario s = lab_scenario(Compensation::kCarry, {plain_bucket(1)}, rounds);
  s.plan.members.clear();
  api::Tree tree{.weight = 1, .root = 0, .parent = {}};
  std::uint16_t rank = 0;
  for (std::uint16_t n = 0; n <= chain.near_leaf(); ++n) {
    s.plan.members.push_back({.node = n, .ranks = {}});
    if (chain.has_rank(n)) s.plan.members.back().ranks.push_back(rank++);
    tree.parent.push_back(n == 0 ? api::kNoNode : static_cast<api::NodeId>(n - 1));
  }
  tree.parent.back() = 0;
  s.plan.trees = {tree};
  s.link.sites = {{{}, network_of(chain)}};
  s.link.delay = {};
  s.in_flight = 1;
  s.tolerance.slack = Duration::ms(100);
  add_closing_rounds(s);
  return s;
}

/// Loses the first transmission of these blocks of a round, on the way from a node to its parent.
void lose_first(Scenario& s, std::uint16_t node, BlockRange blocks) {
  const auto lost = std::make_shared<std::set<std::uint16_t>>();
  s.link.lose = [=](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    if (from != node || !is_push(h, kLossyRound) || !blocks.contains(h.block)) return false;
    return lost->insert(h.block).second;
  };
}

std::vector<Duration> delays_of(std::size_t shape, std::uint16_t height) {
  constexpr Duration kLong = Duration::ms(60);
  constexpr Duration kShort = Duration::ms(1);
  std::vector<Duration> delays(height, kShort);
  switch (shape) {
    case 0:  // the lowest link has the long delay
      delays.back() = kLong;
      break;
    case 1:
      delays.front() = kLong;
      break;
    case 2:
      delays[height / 2] = kLong;
      break;
    case 3:
      delays.assign(height, kLong);
      break;
    default:  // delays grow towards the leaf
      for (std::size_t n = 0; n < height; ++n) delays[n] = kLong * (n + 1) / height;
  }
  return delays;
}
constexpr std::size_t kShapes = 5;
/// Under sanitizers the test runs one in so many chains.
constexpr std::size_t kChainsOfSanitizers = kSanitized ? 5 : 1;

}  // namespace

TEST_CASE("what a link loses is missing of the hosts below it, and of no others") {
  const auto height = static_cast<std::uint16_t>(GENERATE(1, 2, 3, 4, 5));
  const auto shape = static_cast<std::size_t>(GENERATE(range(std::size_t{0}, kShapes)));
  const bool ranks = GENERATE(true, false);
  const std::uint64_t mbit = GENERATE(2, 1000);
  if ((height + shape + (ranks ? 1 : 0) + mbit) % kChainsOfSanitizers != 0) return;
  for (std::uint16_t node = 1; node <= height; ++node) {
    const Chain chain{.delays = delays_of(shape, height), .relays_have_ranks = ranks, .mbit = mbit};
    Scenario s = chain_scenario(chain, kLossyRound);
    lose_first(s, node, {kFirstLossy, kFirstLossy + kAllowance + 1});
    const Outcome outcome = run(s);
    INFO("height " << height << ", shape " << shape << ", ranks " << ranks << ", " << mbit
                   << " Mbit/s, lost above node " << node);
    CHECK(outcome.failure == "");
    // If a node above closed before its relay did, all hosts below that relay would be missing.
    // Some blocks that were not lost may be late.
    std::uint32_t hosts_below = 0;
    for (std::uint16_t n = node; n <= height; ++n) hosts_below += chain.has_rank(n) ? 1 : 0;
    CHECK(outcome.tolerance.missing_blocks <= (kAllowance + kLate) * hosts_below);
    CHECK(outcome.packets_dropped >= kAllowance);  // one block may not be sent before the close
  }
}

/// Neither may a daemon that does not know the bounds begin a second round of the bucket. A root
/// that still gathers the first round would gather the second one exactly, and not count what is
/// missing from relays that may close early.
TEST_CASE("a host without bounds submits no bucket again before its last round is over") {
  constexpr BlockRange kLost = {kFirstLossy, kFirstLossy + 5};
  const Chain chain{.delays = {Duration::ms(1), Duration::ms(1)}, .mbit = 1000};
  Scenario s = chain_scenario(chain, kLossyRound + 1);
  s.in_flight = 2;
  s.tolerance.overlap = true;
  const std::uint16_t without = chain.near_leaf();
  s.tolerance.installations = {{.member = without, .bucket = 1, .after = Duration::max()}};
  s.link.lose = [=](std::uint16_t from, std::uint16_t, const testing::SeenPacket& h) {
    const bool lossy = is_push(h, kLossyRound) || is_push(h, kLossyRound + 1);
    return lossy && from == chain.height() && kLost.contains(h.block);
  };
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(outcome.tolerance.missing_blocks == 2 * kLost.size());
  CHECK(count(outcome, CloseReason::kEarly) == 2);
}
