// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/peers/overlay.h"

#include <set>
#include <stdexcept>

#include "tests/support/catch.h"

namespace gradplane::peers {
namespace {

constexpr std::uint32_t kWorld = 9;
constexpr std::uint32_t kRoot = 3;
constexpr std::uint64_t kNs = 1000;

TEST_CASE("A tree's parents say who is below whom", "[overlay]") {
  const std::vector<std::uint32_t> parents = {0, 0, 0, 1, 1};
  REQUIRE(place_in(parents, 0).children == std::vector<std::uint32_t>{1, 2});
  REQUIRE(place_in(parents, 1).children == std::vector<std::uint32_t>{3, 4});
  REQUIRE(place_in(parents, 4).parent == 1);
  REQUIRE(place_in(parents, 4).children.empty());
}

TEST_CASE("Parents in a circle, or with two roots, are no tree", "[overlay]") {
  REQUIRE_THROWS_AS(place_in({0, 2, 1}, 0), std::runtime_error);
  REQUIRE_THROWS_AS(place_in({0, 1, 1}, 2), std::runtime_error);
  REQUIRE_THROWS_AS(place_in({0, 7}, 1), std::out_of_range);
}

/// Follows all transfers of one chunk, as if each took `slow(from, to)` times as long.
struct Followed {
  std::vector<std::uint32_t> merged = std::vector<std::uint32_t>(kWorld, 1);
  std::multiset<std::uint32_t> served;
  std::vector<PairScheduler::Transfer> pairs;

  void follow(PairScheduler& scheduler) {
    std::deque<PairScheduler::Transfer> open;
    const auto add = [&](const std::vector<PairScheduler::Transfer>& more) {
      open.insert(open.end(), more.begin(), more.end());
    };
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
      add(scheduler.partial_ready(0, rank, 1, kNs));
    }
    for (std::uint64_t now = 2 * kNs; !open.empty(); now += kNs) {
      const auto next = open.front();
      open.pop_front();
      scheduler.measured(0, next.from, next.to, now);
      if (next.is_result) {
        served.insert(next.to);
        add(scheduler.result_received(0, next.from, next.to, now));
        continue;
      }
      pairs.push_back(next);
      merged[next.to] += merged[next.from];
      add(scheduler.partial_ready(0, next.to, merged[next.to], now));
    }
  }
};

TEST_CASE("Pairs end at the root, and each rank gets the result once", "[overlay]") {
  PairScheduler scheduler(kWorld, kRoot, 1);
  for (int round = 0; round < 20; ++round) {
    scheduler.begin(1);
    Followed followed;
    followed.follow(scheduler);
    REQUIRE(followed.pairs.size() == kWorld - 1);
    REQUIRE(followed.merged[kRoot] == kWorld);
    for (const auto& pair : followed.pairs) REQUIRE(pair.from != kRoot);
    REQUIRE(followed.served.size() == kWorld - 1);
    REQUIRE(std::set(followed.served.begin(), followed.served.end()).size() == kWorld - 1);
    REQUIRE(followed.served.count(kRoot) == 0);
    REQUIRE(scheduler.is_over());
  }
}

TEST_CASE("Of two ranks with partial sums the faster direction sends", "[overlay]") {
  PairScheduler scheduler(kWorld, kRoot, 1);
  scheduler.begin(2);
  const auto pair_of = [&](std::uint32_t chunk, std::uint32_t a, std::uint32_t b) {
    REQUIRE(scheduler.partial_ready(chunk, a, 1, 0).empty());
    return scheduler.partial_ready(chunk, b, 1, 0).at(0);
  };
  const auto first = pair_of(0, 5, 6);
  scheduler.measured(0, first.from, first.to, kNs);
  const auto second = pair_of(1, first.to, first.from);
  REQUIRE(second.from == first.from);
  REQUIRE(second.to == first.to);
}

}  // namespace
}  // namespace gradplane::peers
