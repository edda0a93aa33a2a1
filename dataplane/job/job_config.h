// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/aggregate/gather.h"
#include "dataplane/model/congestion_settings.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/wire/packet.h"

namespace gradplane::job {

/// What a packet costs on the link besides its payload: Ethernet with preamble and gap, IPv4, UDP,
/// and our header (docs/protocol.md, section 9).
inline constexpr std::size_t kWireOverheadBytes = 66 + wire::kHeaderBytes;

/// Another node, as this job sees it. A peer's index in JobConfig::peers is its name inside the
/// core.
struct PeerConfig {
  std::uint16_t node = 0;
  /// What this node may send it: an even share of the peer's link, or the whole of it where the
  /// peer grants. 0: not paced.
  std::uint64_t rate_bits_per_second = 0;
  /// With grants, of that what needs none: an even share. 0: not paced.
  std::uint64_t unscheduled_bits_per_second = 0;
};

struct ChildConfig {
  std::uint16_t peer = 0;   // index into JobConfig::peers
  std::uint16_t ranks = 0;  // in the child's subtree: what a complete block of it must name
};

inline constexpr std::uint16_t kNoPeer = 0xffff;

/// This node's place in one tree.
struct TreeConfig {
  bool member = false;             // this node is in the tree at all
  std::uint16_t parent = kNoPeer;  // a member without a parent is the root
  std::vector<ChildConfig> children;
  WeightShare share;
  /// Every member's parent is the root: only there may a round close without all blocks.
  bool flat = false;
};

/// A rank on this node: its arena. Slot s begins at arena + s * round_bytes.
struct LocalRank {
  std::byte* arena = nullptr;
  std::uint16_t rank = 0;
};

/// One node's view of one job under one plan.
struct JobConfig {
  std::uint32_t job = 0;
  std::uint32_t epoch = 0;
  std::uint16_t self = 0;  // this node's id
  std::uint16_t world_size = 0;
  std::uint32_t first_round = 0;  // of this plan; numbers wrap around 2^32
  bool authenticate = false;
  wire::Key key{};
  std::size_t block_bytes = kDefaultBlockBytes;
  std::size_t round_bytes = kMaxRoundBytes;
  std::vector<PeerConfig> peers;
  std::vector<TreeConfig> trees;
  std::vector<LocalRank> local_ranks;
  Compensation compensation = Compensation::kRescale;
  aggregate::CloseLimits close_limits;
  bool measure_energy = false;  // for bounds that are learned
  /// Of all buckets together; a bucket that needs more is exact.
  std::size_t residual_bytes = kMaxResidualBytes;
  CongestionSettings congestion;
  bool grants = false;  // who receives says who may send
  /// Of several rounds of an iteration that wait, the newest goes first: gradients come from the
  /// last layer to the first, and the next forward pass begins with the first.
  bool forward_order = false;
  /// A round in which nothing moves for so long is given up; see stall_after(). Zero: never.
  Duration stall_after = {};
  double weight = 1;  // beside other jobs, where the policy of grants asks for it

  std::uint64_t total_weight() const {
    std::uint64_t sum = 0;
    for (const TreeConfig& tree : trees) sum += tree.share.weight;
    return sum;
  }
  /// Blocks of the largest round.
  std::size_t max_blocks() const { return (round_bytes + block_bytes - 1) / block_bytes; }
};

}  // namespace gradplane::job
