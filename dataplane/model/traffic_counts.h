// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>

namespace gradplane {

/// What one job, or all of a node's, has carried since its start. Counted by the poll loop, copied
/// into snapshots and told in a status.
struct TrafficCounts {
  std::uint64_t blocks_sent = 0;  // with retransmissions
  std::uint64_t blocks_retransmitted = 0;
  std::uint64_t blocks_suspected_lost = 0;  // found by a later packet's ack
  std::uint64_t probes = 0;                 // sent again because nothing was heard
  std::uint64_t blocks_routed = 0;          // of those sent, over an auxiliary route
  std::uint64_t blocks_relayed = 0;         // of other nodes, sent on over such a route
  std::uint64_t blocks_to_groups = 0;       // of those sent, once for all members
  std::uint64_t group_trials = 0;           // of those sent, to a group to learn who hears it
  std::uint64_t group_members_left = 0;     // how often a member was too slow for its group
  std::uint64_t group_members_deaf = 0;     // how often one heard nothing of its group any more
  std::uint64_t parity_sent = 0;            // packets, beside blocks
  std::uint64_t parity_received = 0;
  std::uint64_t blocks_recovered = 0;     // of those received, computed from parity
  std::uint64_t blocks_of_soundings = 0;  // of those sent, beyond window and pace to measure a link
  std::uint64_t sounding_packets_sent = 0;  // padding beside those blocks
  std::uint64_t sounding_packets_received = 0;
  std::uint64_t blocks_received = 0;  // without duplicates
  std::uint64_t acks_sent = 0;
  std::uint64_t acks_received = 0;
  std::uint64_t grants_sent = 0;
  std::uint64_t grants_received = 0;
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t payload_bytes_saved = 0;  // of those sent, by narrower wire types
  std::uint64_t payload_bytes_received = 0;
  std::uint64_t rounds_completed = 0;       // results of every block are here
  std::uint64_t payload_bytes_reduced = 0;  // of those results, once for all ranks of the node
  std::uint64_t congestion_marks = 0;
  // Of rounds under loss bounds: how often this node, a relay or a root, closed its part of a round
  // without some contribution.
  std::uint64_t rounds_closed_early = 0;
  std::uint64_t rounds_closed_deadline = 0;
  std::uint64_t rounds_closed_absent = 0;
  std::uint64_t blocks_missing = 0;   // contributions that did not enter, of all; roots count them
  std::uint64_t blocks_late = 0;      // came after the close
  std::uint64_t blocks_excluded = 0;  // of what this node pushed, did not enter
  std::uint64_t updates_received =
      0;                             // of other ranks under bounded staleness, by sender and round
  std::uint64_t updates_late = 0;    // of those, after the result of their step had left
  std::uint64_t blocks_carried = 0;  // of those, kept and added to the next gradient
  std::uint64_t carry_dropped = 0;   // of those, not kept because not finite

  void add(const TrafficCounts& other);
};

/// Every one of them.
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
