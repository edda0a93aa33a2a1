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
  std::uint8_t path = 1;  // its number among the ways from `from` to the last of `nodes`
};

/// One node's view of one plan of a job. Trees name the peers by their place in `peers`.
struct PlanConfig {
  std::uint32_t epoch = 0;
  std::uint16_t world_size = 0;
  wire::Key key{};  // where packets are authenticated: of those to and from peers that it brings
  std::vector<hop::PeerConfig> peers;
  std::vector<aggregate::Host> hosts;  // members of the plan with ranks, in its order
  /// For each rank of the plan, in the order of their numbers, its host as an index into `hosts`;
  /// see HostTable. Only the ranks of a plan that has all of its job are known by their numbers, so
  /// only such a plan carries operations with shards or a source.
  std::vector<std::uint16_t> host_of_rank;
  bool has_all_ranks = true;  // the numbers of its ranks have no gap
  std::vector<aggregate::TreeConfig> trees;
  std::vector<RouteConfig> routes;  // those with this node; those of a pair of nodes by path
  /// Whether its planner makes other trees when links change, so that it pays to sound them.
  /// Selections that follow the network go by the updates themselves.
  bool follows_network = false;
  /// Links that no tree uses: the peers that this node sounds, and those that sound it.
  std::vector<hop::PeerIndex> sounded;
  std::vector<hop::PeerIndex> sounders;
  /// Those of its exchanges, in the order of their numbers; none: it carries no exchanges. With
  /// any, each host has one rank and is the root of one tree, and the others are its children.
  std::vector<aggregate::Receivers> selections;
  /// An update goes to the group of its receivers, where they hear it. Not under grants.
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
  CorePart core;                  // what this engine has of it
  std::uint32_t first_round = 0;  // of the job here; numbers wrap around 2^32
  /// Other nodes run the job already. Its plan is only prepared here, and the round with which the
  /// job begins here is that of the commit; see PlanSwitch.
  bool joins = false;
  bool authenticate = false;
  std::size_t block_bytes = kDefaultBlockBytes;
  std::size_t round_bytes = kMaxRoundBytes;
  std::vector<aggregate::LocalRank> local_ranks;
  Compensation compensation = Compensation::kRescale;
  aggregate::CloseLimits close_limits;
  bool measure_energy = false;  // for bounds that are learned
  /// Of all buckets together; a bucket that needs more is exact.
  std::size_t residual_bytes = kMaxResidualBytes;
  CongestionSettings congestion;
  /// From this round trip on, the end of a round is followed by parity where packets get lost.
  Duration parity_from = hop::kLongPath;
  bool grants = false;  // who receives says who may send
  /// Of several rounds of an iteration that wait, the newest goes first: gradients come from the
  /// last layer to the first, and the next forward pass begins with the first.
  bool forward_order = false;
  /// A round in which nothing moves for so long is given up; see stall_after(). Zero: never.
  Duration stall_after = {};
  double weight = 1;  // beside other jobs, where the policy of grants asks for it
  /// Of exchanges of buckets: a result waits for a rank that is more than so many steps behind, and
  /// what comes later is in a later result; see Streams. 0: each waits for all of its step.
  std::uint32_t staleness_steps = 0;
  /// Of all buckets together, for updates that wait for a result; see aggregate::Inbox.
  std::size_t inbox_bytes = kMaxInboxBytes;

  /// Blocks of the largest round.
  std::size_t max_blocks() const { return (round_bytes + block_bytes - 1) / block_bytes; }
};

}  // namespace gradplane::job
