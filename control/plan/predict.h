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

/// Bytes on the wire for each datagram besides our header and the block: Ethernet with preamble and
/// gap, IP, UDP (docs/protocol.md, section 9).
inline constexpr std::size_t kFrameBytes = 66;

/// One all_reduce, as the network sees it.
struct Traffic {
  std::uint64_t bytes = 0;  // size of the gradients of one rank
  std::size_t block_bytes = kDefaultBlockBytes;
  std::size_t overhead_bytes = kMaxHeaderBytes + kFrameBytes;  // per block
  /// How many bytes a rank may have submitted whose results have not come.
  std::uint64_t window_bytes = kMaxInFlightRounds * kMaxRoundBytes;
};

struct Prediction {
  Duration time;             // of the all_reduce: transfer + latency
  Duration transfer;         // at the resource that takes longest, or as open rounds limit it
  Duration latency;          // of one block, in the slowest tree
  std::string bottleneck;    // the resource that limits transfer, or "open rounds"
  std::uint16_t height = 0;  // of the highest tree, in edges
};

/// How long one all_reduce takes under a plan, from the first byte submitted to the last result.
///
///   time = max(max over resources of bits(r) / rate(r),  latency x bytes / window) + latency
///
/// - bits(r): every edge of a tree carries the tree's share of the blocks once up, as a sum, and
///   once down, as a result. Both load all resources on their way, with the overhead of each block.
///   Pushes and results overlap, so the slowest resource alone sets the pace of the pipeline. On a
///   way that loses the share p of the packets, each block is sent 1 / (1 - p) times.
/// - latency: the slowest block must reach the root, and its result must reach every member. So it
///   is the sum of the slowest way up and the slowest way down of a tree. Each hop costs half a
///   round trip, the time of one block on each link, and the repair of the last losses. Earlier
///   losses are repaired while other blocks flow. In the last round trip n blocks are in flight.
///   The unluckiest of them needs in the mean the sum over k >= 1 of 1 - (1 - p^k)^n attempts after
///   the first (the largest of n geometric numbers). Each attempt takes a round trip and the
///   reorder window, max(200 us, RTT / 4).
/// - window: ranks submit new rounds as old ones end, so at most window_bytes are on their way at a
///   time.
///
/// With no round trips, no loss, no overhead and small blocks this is the fluid model in which
/// NetStorm's trees and those of mTree have been compared. The model leaves out the time of the
/// sums, congestion control that does not reach a link's rate, other traffic, and NICs that
/// forward.
///
/// The plan passes validate(). An Error when two nodes that it connects do not reach each other.
Result<Prediction> predict(const Network& network, const api::Plan& plan, const Traffic& traffic);
/// The same for many plans over one network, whose routes are found only once.
Result<Prediction> predict(Routes& routes, const api::Plan& plan, const Traffic& traffic);

/// "1.32 s", for people.
std::string text_of(Duration time);
/// "96 MiB", or in bytes if that is no whole number.
std::string text_of_bytes(std::uint64_t bytes);

}  // namespace gradplane::plan
