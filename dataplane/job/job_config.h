// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/aggregate/coverage.h"
#include "dataplane/aggregate/gather.h"
#include "dataplane/aggregate/local_ranks.h"
#include "dataplane/aggregate/selections.h"
#include "dataplane/aggregate/tree_config.h"
#include "dataplane/hop/peer_table.h"
#include "dataplane/model/congestion_settings.h"
#include "dataplane/model/core_part.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/wire/seal.h"

namespace gradplane::job {

/// An auxiliary route: `from` sends blocks over it to the last of `nodes`, and the others relay
/// them.
struct RouteConfig {
  std::uint16_t from = 0;
  std::vector<std::uint16_t> nodes;
  std::uint8_t path = 1;  // its number among the paths from `from` to the last of `nodes`
};

/// One node's view of one plan of a job. Trees name peers by their index in `peers`.
struct PlanConfig {
  std::uint32_t epoch = 0;
  std::uint16_t world_size = 0;
  wire::Key key{};  // if packets are authenticated: for the peers that this plan brings
  std::vector<hop::PeerConfig> peers;
  std::vector<aggregate::Host> hosts;  // the plan's members with ranks, in the plan's order
  /// For each rank of the plan, in ascending order, its host as an index into `hosts`; see
  /// HostTable. Ranks can be named by number only if the plan has all ranks of its job, so only
  /// such a plan carries operations with shards or a source.
  std::vector<std::uint16_t> host_of_rank;
  bool has_all_ranks = true;  // the numbers of its ranks have no gap
  std::vector<aggregate::TreeConfig> trees;
  // Routes with this node on them; those between the same two nodes in the order of their paths.
  std::vector<RouteConfig> routes;
  /// Whether the planner makes other trees when links change, so that sounding them pays.
  /// Selections that follow the network need no soundings: updates themselves measure the links.
  bool follows_network = false;
  /// The peers that this node sounds and those that sound it, over links that no tree uses.
  std::vector<hop::PeerIndex> sounded;
  std::vector<hop::PeerIndex> sounders;
  /// Selections of its exchanges, by number. If it is empty, the plan carries no exchanges.
  /// Otherwise each host has one rank and is the root of one tree, and the other hosts are its
  /// children.
  std::vector<aggregate::Receivers> selections;
  /// Whether an update goes to the group of those of its receivers that hear it. Never under
  /// grants.
  bool multicasts_updates = false;

  std::uint64_t total_weight() const {
    std::uint64_t sum = 0;
    for (const aggregate::TreeConfig& tree : trees) sum += tree.share.weight;
    return sum;
  }
};

/// One node's view of one job, with its first plan.
struct JobConfig : PlanConfig {
  std::uint32_t job = 0;
  std::uint16_t self = 0;         // this node's id
  CorePart core;                  // the part of the job that this engine runs
  std::uint32_t first_round = 0;  // the first round of the job here; numbers wrap around at 2^32
  /// Other nodes run the job already. Its plan is only prepared here, and the commit names the
  /// round with which the job begins here; see PlanSwitch.
  bool joins = false;
  bool authenticate = false;
  std::size_t block_bytes = kDefaultBlockBytes;
  std::size_t round_bytes = kMaxRoundBytes;
  std::vector<aggregate::LocalRank> local_ranks;
  Compensation compensation = Compensation::kRescale;
  aggregate::CloseLimits close_limits;
  bool measure_energy = false;  // needed by bounds that are learned
  /// The most residual memory of all buckets together. A bucket that would need more is exact.
  std::size_t residual_bytes = kMaxResidualBytes;
  CongestionSettings congestion;
  /// Parity follows the end of a round on a lossy path whose round trip is at least this long.
  Duration parity_from = hop::kLongPath;
  bool grants = false;  // receivers give credit to senders
  /// Among waiting rounds of an iteration, the newest goes first. Gradients are computed from the
  /// last layer to the first, and the next forward pass begins with the first.
  bool forward_order = false;
  /// A round in which nothing moves for this time is given up; see stall_after(). Zero: never.
  Duration stall_after = {};
  double weight = 1;  // weight among other jobs, if the policy of grants uses weights
  /// The staleness bound in steps. The result of an exchange of a bucket waits for a rank that is
  /// more steps behind; updates that come later are in a later result; see Streams. 0: each result
  /// waits for all updates of its step.
  std::uint32_t staleness_steps = 0;
  /// The most memory, over all buckets, for updates that wait for a result; see aggregate::Inbox.
  std::size_t inbox_bytes = kMaxInboxBytes;

  /// The number of blocks of the largest round.
  std::size_t max_blocks() const { return (round_bytes + block_bytes - 1) / block_bytes; }
};

}  // namespace gradplane::job
