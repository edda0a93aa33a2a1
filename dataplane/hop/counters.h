// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/model/traffic_counts.h"

namespace gradplane::hop {

/// Why a packet was not used. One counter for each; names are in the table of counters.cc.
enum class Drop : std::uint8_t {
  kMalformed,        // not a gradplane packet, or its fields contradict each other
  kUnknownNode,      // the source is no other node or not the sender, or the UDP port is not ours
  kUnknownJob,       // no such job here
  kWrongEpoch,       // the packet belongs to no live plan here
  kBadTag,           // authentication failed
  kReplayed,         // its number came before, or is too old to tell
  kBadRoute,         // its route has a loop, is too long, or does not lead here from the last node
  kUnknownRoute,     // the plan does not have its route
  kRelayFull,        // too many packets wait at this relay, or one is too long for it
  kNotPeer,          // the sender is no neighbour in this tree, or sends in the wrong direction
  kPastRound,        // its round has ended here
  kFutureRound,      // its round cannot be open yet
  kBadGeometry,      // no round here can have its sizes
  kMismatch,         // its sizes or type differ from what others stated about this round
  kBadContributors,  // it names more or fewer ranks than the sender's subtree has
  kDuplicate,        // its block is already in the sum
  kBadGrant,         // it lets this node send more than any peer may
  kUnusedParity,     // parity of blocks that this node has not followed from the first one on
  kCount,
};
inline constexpr std::size_t kDropCount = static_cast<std::size_t>(Drop::kCount);
std::string_view drop_name(Drop drop);

/// Only the poll thread writes them.
struct Counters : TrafficCounts {
  std::array<std::uint64_t, kDropCount> drops{};

  void drop(Drop reason) { ++drops[static_cast<std::size_t>(reason)]; }
  void add(const Counters& other);
};

}  // namespace gradplane::hop
