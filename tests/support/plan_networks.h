// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "control/plan/planner.h"

/// Networks, requests and plans for tests of planners.
namespace gradplane::testing {

inline constexpr std::uint64_t kMbit = 1'000'000;

inline std::uint64_t uniform(std::mt19937_64& random, std::uint64_t from, std::uint64_t to) {
  return from + random() % (to - from + 1);
}

/// `count` sites with one node each; node and site have the same number.
inline plan::Network sites(std::size_t count) {
  return plan::network_of_accesses(std::vector<plan::Access>(count));
}

inline void connect(plan::Network& network, std::size_t a, std::size_t b, std::uint64_t a_to_b,
                    std::uint64_t b_to_a, Duration rtt = {}) {
  const auto one = static_cast<plan::SiteId>(a);
  const auto other = static_cast<plan::SiteId>(b);
  network.links.push_back({one, other, a_to_b, rtt, 0});
  network.links.push_back({other, one, b_to_a, rtt, 0});
}

/// The 9 sites and 13 links of NetStorm's evaluation. Each direction has 20 to 155 Mbit/s.
inline plan::Network netstorm_network(std::mt19937_64& random) {
  constexpr std::array<std::pair<int, int>, 13> kLinks = {{{1, 2},
                                                           {1, 3},
                                                           {2, 3},
                                                           {2, 5},
                                                           {3, 4},
                                                           {4, 5},
                                                           {4, 6},
                                                           {5, 7},
                                                           {6, 7},
                                                           {6, 8},
                                                           {6, 9},
                                                           {7, 8},
                                                           {8, 9}}};
  plan::Network network = sites(9);
  for (const auto& [a, b] : kLinks) {
    const std::uint64_t there = uniform(random, 20, 155) * kMbit;
    connect(network, static_cast<std::size_t>(a - 1), static_cast<std::size_t>(b - 1), there,
            uniform(random, 20, 155) * kMbit);
  }
  return network;
}

/// A connected network: a random tree, and a link between each other pair with probability 1 /
/// `one_in`.
inline plan::Network random_network(std::mt19937_64& random, std::size_t count,
                                    std::uint64_t one_in) {
  plan::Network network = sites(count);
  for (std::size_t b = 1; b < count; ++b) {
    const std::size_t parent = random() % b;
    for (std::size_t a = 0; a < b; ++a) {
      if (a != parent && random() % one_in != 0) continue;
      const std::uint64_t there = uniform(random, 20, 155) * kMbit;
      connect(network, a, b, there, uniform(random, 20, 155) * kMbit,
              Duration::ms(static_cast<std::int64_t>(random() % 50)));
    }
  }
  return network;
}

/// One rank on every node, and an all_reduce without overhead, as in the fluid model.
inline plan::PlanRequest request_over(plan::Network network, PlanKind kind) {
  plan::PlanRequest request;
  request.planner = kind;
  for (std::size_t n = 0; n < network.nodes.size(); ++n)
    request.members.push_back({static_cast<api::NodeId>(n), {static_cast<std::uint16_t>(n)}});
  request.network = std::move(network);
  request.traffic = {.bytes = 244'000'000, .overhead_bytes = 0};  // 61 million elements of fp32
  return request;
}

/// One rank on each of `nodes` nodes, and one tree whose root is node 0.
inline api::Plan star_of(std::uint16_t nodes) {
  api::Plan plan;
  api::Tree tree{.weight = 1, .root = 0, .parent = {}};
  for (std::uint16_t n = 0; n < nodes; ++n) {
    plan.members.push_back({.node = n, .ranks = {n}});
    tree.parent.push_back(n == 0 ? api::kNoNode : api::NodeId{0});
  }
  plan.trees = {tree};
  return plan;
}

}  // namespace gradplane::testing
