// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "control/plan/network.h"
#include "control/plan/routes.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

namespace gradplane::plan {

/// What a block's datagram has on the wire besides our header and the block: Ethernet, preamble,
/// gap, IP, UDP (docs/protocol.md, section 9).
inline constexpr std::size_t kFrameBytes = 66;

/// One all_reduce, as the network sees it.
struct Traffic {
  std::uint64_t bytes = 0;  // of the gradients of one rank
  std::size_t block_bytes = kDefaultBlockBytes;
  std::size_t overhead_bytes = kMaxHeaderBytes + kFrameBytes;  // of each block
  /// What a rank may have submitted without a result.
  std::uint64_t window_bytes = kMaxInFlightRounds * kMaxRoundBytes;
};

struct Prediction {
  Duration time;             // of the all_reduce: transfer + latency
  Duration transfer;         // at the resource that takes longest, or for want of open rounds
  Duration latency;          // of one block, in the slowest tree
  std::string bottleneck;    // that resource, or "open rounds"
  std::uint16_t height = 0;  // of the highest tree, in edges
};

/// How long one all_reduce takes under a plan, from the first byte submitted to the last result.
///
///   time = max(max over resources of bits(r) / rate(r),  latency x bytes / window) + latency
///
/// - bits(r): every edge of a tree carries the tree's share of the blocks once up, as a sum, and
///   once down, as a result. Both pass all resources on their way, with the overhead of each block.
///   Pushes and results overlap, so each resource counts by itself, and the slowest one is the pace
///   of the pipeline. On a way that loses the share p of the packets, each block is sent 1 / (1 -
///   p) times.
/// - latency: the slowest block has to reach the root and its result every member, so it is the sum
///   of the slowest way up and the slowest way down of a tree. Each hop costs half a round trip,
///   the time of one block on each link, and the repair of what gets lost last. Earlier losses are
///   repaired while other blocks flow. The last round trip has n blocks on its way, and the largest
///   of n geometric numbers of attempts is, in the mean, the sum over k >= 1 of 1 - (1 - p^k)^n
///   attempts after the first. Each takes a round trip and the reorder window, max(200 us, RTT /
///   4).
/// - window: ranks submit new rounds as old ones end, so no more than window_bytes are on their way
///   at a time.
///
/// With no round trips, no loss, no overhead and small blocks this is the fluid model in which
/// NetStorm's trees and those of mTree have been compared. Not in it: the time of the sums, rates
/// that congestion control does not reach, other traffic, and NICs that forward.
///
/// The plan passes validate(). An Error when two nodes that it connects do not reach each other.
Result<Prediction> predict(const Network& network, const api::Plan& plan, const Traffic& traffic);
/// The same for many plans over one network. `routes` is of `network`.
Result<Prediction> predict(Routes& routes, const api::Plan& plan, const Traffic& traffic);

/// "1.32 s", for people.
std::string text_of(Duration time);
/// "96 MiB", or in bytes what is no whole number of these.
std::string text_of_bytes(std::uint64_t bytes);

}  // namespace gradplane::plan
