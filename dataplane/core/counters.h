// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradplane::core {

/// Why a packet was not used. One counter for each; names are in the table of counters.cc.
enum class Drop : std::uint8_t {
  kMalformed,        // not one of our packets, or its fields contradict each other
  kUnknownNode,      // from an address that is no node of the cluster, or under another's name
  kUnknownJob,       // no such job here
  kWrongEpoch,       // of another plan
  kBadTag,           // authentication failed
  kNotPeer,          // from a node that is no neighbour in this tree, or in the wrong direction
  kPastRound,        // of a round that has ended here
  kFutureRound,      // of a round that cannot be open yet
  kBadGeometry,      // sizes that no round here can have
  kMismatch,         // sizes or type differ from what others said of this round
  kBadContributors,  // names more or fewer ranks than the sender's subtree has
  kDuplicate,        // a block that is already in the sum
  kCount,
};
inline constexpr std::size_t kDropCount = static_cast<std::size_t>(Drop::kCount);
std::string_view drop_name(Drop drop);

/// Written by the poll thread alone.
struct Counters {
  std::array<std::uint64_t, kDropCount> drops{};
  std::uint64_t blocks_sent = 0;  // with retransmissions
  std::uint64_t blocks_retransmitted = 0;
  std::uint64_t blocks_suspected_lost = 0;  // found by a later packet's ack
  std::uint64_t probes = 0;                 // sent again because nothing was heard
  std::uint64_t blocks_received = 0;        // without duplicates
  std::uint64_t acks_sent = 0;
  std::uint64_t acks_received = 0;
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t payload_bytes_received = 0;
  std::uint64_t rounds_completed = 0;  // results of every block are here
  std::uint64_t congestion_marks = 0;
  // Of rounds under loss bounds; the first five at their roots.
  std::uint64_t rounds_closed_early = 0;
  std::uint64_t rounds_closed_deadline = 0;
  std::uint64_t rounds_closed_absent = 0;
  std::uint64_t blocks_missing = 0;   // contributions that did not enter, of all sources
  std::uint64_t blocks_late = 0;      // came after the close
  std::uint64_t blocks_excluded = 0;  // of what this node pushed, did not enter
  std::uint64_t blocks_carried = 0;   // of those, kept and added to the next gradient
  std::uint64_t carry_dropped = 0;    // of those, not kept because not finite

  void drop(Drop reason) { ++drops[static_cast<std::size_t>(reason)]; }
  void add(const Counters& other);
};

}  // namespace gradplane::core
