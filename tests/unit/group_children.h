// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/hop/group.h"
#include "tests/support/catch.h"

namespace gradplane::hop::testing {

inline constexpr std::uint32_t kBlocks = 256;
inline constexpr BlockRange kRange{0, kBlocks};
inline const Instant kNow = Instant::from_ns(1'000'000'000);

/// The edges to the children of one node, and their group, in the round of slot 0.
struct Children {
  explicit Children(std::size_t count) : group(kBlocks) {
    for (std::size_t c = 0; c < count; ++c) {
      OutEdge& edge = edges.emplace_back();
      edge.type = wire::PacketType::kResult;
      edge.senders.assign(kRoundSlots, BlockSender(kBlocks));
    }
  }

  void open(std::size_t slot = 0) {
    for (OutEdge& edge : edges) {
      edge.senders[slot].open(kRange, 0);
      edge.refresh(slot);
    }
    group.open(slot, kRange, 0, edges);
  }
  void offer(std::uint32_t block, std::size_t slot = 0) {
    for (OutEdge& edge : edges) {
      edge.senders[slot].offer(block);
      edge.refresh(slot);
    }
    group.offer(slot, block);
  }
  void offer_all() {
    for (std::uint32_t b = 0; b < kBlocks; ++b) offer(b);
  }
  /// The group's next block leaves; to how many children it counts as in flight.
  std::size_t send(std::size_t slot = 0) {
    const auto block = group.next(slot, edges);
    if (!block) return 0;
    std::size_t takers = 0;
    for (OutEdge& edge : edges) takers += group.on_sent_to(edge, slot, *block, 100) ? 1 : 0;
    group.on_sent(slot, *block, edges);
    return takers;
  }
  void all_hear() {
    for (OutEdge& edge : edges) group.on_heard(edge, ++clock_us, kNow);
  }
  bool is_member(std::size_t child, std::size_t slot = 0) const {
    return edges[child].senders[slot].way() == BlockSender::Way::kMember;
  }

  std::vector<OutEdge> edges;
  Group group;
  std::uint32_t clock_us = 10;
};

}  // namespace gradplane::hop::testing
