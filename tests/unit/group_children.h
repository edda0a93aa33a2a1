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

/// The edges to the children of a node, and their group, in the round of slot 0.
struct Children {
  explicit Children(std::size_t count)
      : edges(edges_to(count)), group({.max_blocks = kBlocks}, pointers_to(edges)) {}

  static std::vector<OutEdge> edges_to(std::size_t count) {
    std::vector<OutEdge> edges(count);
    for (OutEdge& edge : edges) {
      edge.type = wire::PacketType::kResult;
      edge.senders.assign(kRoundSlots, BlockSender(kBlocks));
    }
    return edges;
  }
  static std::vector<OutEdge*> pointers_to(std::vector<OutEdge>& edges) {
    std::vector<OutEdge*> pointers;
    for (OutEdge& edge : edges) pointers.push_back(&edge);
    return pointers;
  }
  GroupMember& member(std::size_t child) { return group.members()[child]; }

  void open(std::size_t slot = 0, const Bitmap* critical = nullptr) {
    for (OutEdge& edge : edges) {
      edge.senders[slot].open(kRange, 0, critical);
      edge.refresh(slot);
    }
    group.open(slot, kRange, 0, critical);
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
  /// Sends the group's next block. Returns for how many children it is in flight.
  std::size_t send(std::size_t slot = 0) {
    const auto block = group.next(slot);
    if (!block) return 0;
    std::size_t takers = 0;
    for (GroupMember& member : group.members()) {
      takers += Group::on_sent_to(member, slot, *block, 100) ? 1 : 0;
    }
    group.on_sent(slot, *block);
    return takers;
  }
  void all_hear() {
    for (GroupMember& member : group.members()) group.on_heard(member, ++clock_us, kNow);
  }
  void go_deaf(std::size_t child) { go_deaf(group, child); }
  static void go_deaf(Group& group, std::size_t child) {
    for (std::uint32_t n = 0; n < kDeafAfter; ++n) group.on_unanswered(group.members()[child]);
  }
  /// Returns whether the group goes on without the child, if the others have room for the next
  /// block and the child has none.
  bool is_left(std::size_t child, bool is_slow, Duration round_trip = Duration::ms(1),
               Instant now = kNow, std::size_t slot = 0) {
    return group.on_waited_for(member(child), slot, round_trip, is_slow, now);
  }
  bool is_member(std::size_t child, std::size_t slot = 0) const {
    return edges[child].senders[slot].way() == BlockSender::Way::kMember;
  }

  std::vector<OutEdge> edges;
  Group group;
  std::uint32_t clock_us = 10;
};

}  // namespace gradplane::hop::testing
