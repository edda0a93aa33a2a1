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
  kMalformed,        // not one of our packets, or its fields contradict each other
  kUnknownNode,      // from an address that is no node of the cluster, or under another's name
  kUnknownJob,       // no such job here
  kWrongEpoch,       // of another plan
  kBadTag,           // authentication failed
  kReplayed,         // its number has come before, or is too old to tell
  kBadRoute,         // its route is a circle, too long, or not one on which it came here
  kUnknownRoute,     // of a route that the plan does not have
  kRelayFull,        // to be sent on to another node, and too many wait already
  kNotPeer,          // from a node that is no neighbour in this tree, or in the wrong direction
  kPastRound,        // of a round that has ended here
  kFutureRound,      // of a round that cannot be open yet
  kBadGeometry,      // sizes that no round here can have
  kMismatch,         // sizes or type differ from what others said of this round
  kBadContributors,  // names more or fewer ranks than the sender's subtree has
  kDuplicate,        // a block that is already in the sum
  kBadGrant,         // lets this node send more than any peer may
  kUnusedParity,     // of blocks that this node has not followed from the first one on
  kCount,
};
inline constexpr std::size_t kDropCount = static_cast<std::size_t>(Drop::kCount);
std::string_view drop_name(Drop drop);

/// Written by the poll thread alone.
struct Counters : TrafficCounts {
  std::array<std::uint64_t, kDropCount> drops{};

  void drop(Drop reason) { ++drops[static_cast<std::size_t>(reason)]; }
  void add(const Counters& other);
};

}  // namespace gradplane::hop
