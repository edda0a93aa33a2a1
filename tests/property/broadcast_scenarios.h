// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/hop/peer_table.h"
#include "tests/sim/cluster.h"

namespace gradplane::sim {

inline constexpr std::uint64_t kBroadcastRate = 100'000'000;  // of each host's link, in bit/s
inline constexpr std::uint16_t kReceivers = 7;

inline RoundPlan broadcast_of(std::uint32_t elements) {
  return {.type = ElementType::kFloat32,
          .elements = elements,
          .operation = Operation::kBroadcast,
          .source = 0};
}

/// Node 0 has a rank that broadcasts to a rank on each other node, over a switch that copies. The
/// `warm_up` rounds have 256 KiB; in these the node learns who hears the group.
inline Scenario broadcasts(std::size_t warm_up) {
  Scenario s;
  s.seed = 1;
  s.plan = {.epoch = 3, .activation_round = 0, .members = {}, .trees = {}};
  api::Tree tree{.weight = 1, .root = 0, .parent = {}};
  for (std::uint16_t n = 0; n <= kReceivers; ++n) {
    s.plan.members.push_back({.node = n, .ranks = {n}});
    tree.parent.push_back(n == 0 ? api::kNoNode : api::NodeId{0});
  }
  s.plan.trees.push_back(tree);
  s.link.bits_per_second = kBroadcastRate;
  s.link.queue_bytes = 128 << 10;
  s.block_bytes = kDefaultBlockBytes;
  s.round_bytes = kMaxRoundBytes;
  s.in_flight = 1;
  s.compute_max = {};
  s.multicast = true;
  s.rounds.assign(warm_up, broadcast_of(1 << 16));
  return s;
}

/// The time in seconds for one copy of the rounds from `first` on, over a link of this rate.
inline double seconds_over(const Scenario& s, std::uint64_t bits_per_second,
                           std::size_t first = 0) {
  std::size_t bytes = 0;
  for (std::size_t r = first; r < s.rounds.size(); ++r) {
    const std::size_t blocks =
        (s.rounds[r].elements * 4 + kDefaultBlockBytes - 1) / kDefaultBlockBytes;
    bytes += blocks * (kDefaultBlockBytes + hop::kWireOverheadBytes);
  }
  return static_cast<double>(bytes) * 8 / static_cast<double>(bits_per_second);
}

}  // namespace gradplane::sim
