// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>

namespace gradplane {

/// What one job, or all jobs of a node, have carried since the start. The poll loop counts it;
/// snapshots and a status show it.
struct TrafficCounts {
  std::uint64_t blocks_sent = 0;  // with retransmissions
  std::uint64_t blocks_retransmitted = 0;
  std::uint64_t blocks_suspected_lost = 0;  // found lost by the ack of a later packet
  std::uint64_t probes = 0;                 // blocks sent again because nothing was heard
  std::uint64_t blocks_routed = 0;          // sent blocks that took an auxiliary route
  std::uint64_t blocks_relayed = 0;      // blocks of other nodes that were relayed on such a route
  std::uint64_t blocks_to_groups = 0;    // sent blocks that went once to all members
  std::uint64_t group_trials = 0;        // sent blocks that tried who hears a group
  std::uint64_t group_members_left = 0;  // how often a member was too slow for its group
  std::uint64_t group_members_deaf = 0;  // how often a member became deaf
  std::uint64_t parity_sent = 0;         // packets, not counted as blocks
  std::uint64_t parity_received = 0;
  std::uint64_t blocks_recovered = 0;       // received blocks that were computed from parity
  std::uint64_t blocks_of_soundings = 0;    // sent blocks that were part of a sounding
  std::uint64_t sounding_packets_sent = 0;  // packets of padding in soundings
  std::uint64_t sounding_packets_received = 0;
  std::uint64_t blocks_received = 0;  // without duplicates
  std::uint64_t acks_sent = 0;
  std::uint64_t acks_received = 0;
  std::uint64_t grants_sent = 0;
  std::uint64_t grants_received = 0;
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t payload_bytes_saved = 0;  // saved by narrower wire types
  std::uint64_t payload_bytes_received = 0;
  std::uint64_t rounds_completed = 0;  // rounds whose results are all here
  // Bytes of those results, once for all ranks of the node.
  std::uint64_t payload_bytes_reduced = 0;
  std::uint64_t congestion_marks = 0;
  // Rounds under loss bounds: how often this node, as a relay or root, closed its part of a round
  // without some contribution.
  std::uint64_t rounds_closed_early = 0;
  std::uint64_t rounds_closed_deadline = 0;
  std::uint64_t rounds_closed_absent = 0;
  // Contributions that did not enter, from all sources; only roots count them.
  std::uint64_t blocks_missing = 0;
  std::uint64_t blocks_late = 0;      // blocks that came after the close
  std::uint64_t blocks_excluded = 0;  // pushed blocks of this node that did not enter
  // Updates of other ranks under bounded staleness, by sender and round.
  std::uint64_t updates_received = 0;
  std::uint64_t updates_late = 0;    // of these, updates that came after the result of their step
  std::uint64_t blocks_carried = 0;  // excluded blocks that were added to the next gradient
  // Excluded blocks that were not kept, because they were not finite.
  std::uint64_t carry_dropped = 0;

  void add(const TrafficCounts& other);
};

/// All counts.
inline constexpr std::array kTrafficCounts = {
    &TrafficCounts::blocks_sent,
    &TrafficCounts::blocks_retransmitted,
    &TrafficCounts::blocks_suspected_lost,
    &TrafficCounts::probes,
    &TrafficCounts::blocks_routed,
    &TrafficCounts::blocks_relayed,
    &TrafficCounts::blocks_to_groups,
    &TrafficCounts::group_trials,
    &TrafficCounts::group_members_left,
    &TrafficCounts::group_members_deaf,
    &TrafficCounts::parity_sent,
    &TrafficCounts::parity_received,
    &TrafficCounts::blocks_recovered,
    &TrafficCounts::blocks_of_soundings,
    &TrafficCounts::sounding_packets_sent,
    &TrafficCounts::sounding_packets_received,
    &TrafficCounts::blocks_received,
    &TrafficCounts::acks_sent,
    &TrafficCounts::acks_received,
    &TrafficCounts::grants_sent,
    &TrafficCounts::grants_received,
    &TrafficCounts::payload_bytes_sent,
    &TrafficCounts::payload_bytes_saved,
    &TrafficCounts::payload_bytes_received,
    &TrafficCounts::rounds_completed,
    &TrafficCounts::payload_bytes_reduced,
    &TrafficCounts::congestion_marks,
    &TrafficCounts::rounds_closed_early,
    &TrafficCounts::rounds_closed_deadline,
    &TrafficCounts::rounds_closed_absent,
    &TrafficCounts::blocks_missing,
    &TrafficCounts::blocks_late,
    &TrafficCounts::blocks_excluded,
    &TrafficCounts::updates_received,
    &TrafficCounts::updates_late,
    &TrafficCounts::blocks_carried,
    &TrafficCounts::carry_dropped,
};
static_assert(sizeof(TrafficCounts) == kTrafficCounts.size() * sizeof(std::uint64_t),
              "kTrafficCounts has every count");

inline void TrafficCounts::add(const TrafficCounts& other) {
  for (const auto count : kTrafficCounts) this->*count += other.*count;
}

}  // namespace gradplane
