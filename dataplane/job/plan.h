// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/aggregate/bucket.h"
#include "dataplane/aggregate/context.h"
#include "dataplane/aggregate/partition.h"
#include "dataplane/aggregate/tree.h"
#include "dataplane/hop/ack_queue.h"
#include "dataplane/hop/peer_table.h"
#include "dataplane/job/job_config.h"
#include "dataplane/job/relay.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/group_hearing.h"

namespace gradplane::job {

/// A plan as this node sees it: the node's place in each tree of one epoch, and the blocks of a
/// round that each tree carries. The control thread makes and destroys it; in between it belongs to
/// the poll loop.
class Plan {
 public:
  /// Allocates everything that the plan's rounds will need. `job` says how large rounds may be.
  Plan(const PlanConfig& config, const JobConfig& job);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  std::uint32_t epoch() const { return epoch_; }
  std::uint16_t world_size() const { return world_size_; }
  const aggregate::HostTable& hosts() const { return hosts_; }
  /// The ranks of the plan are numbered from 0 on without a gap.
  bool has_all_ranks() const { return has_all_ranks_; }
  /// Whether the ranks of this node take part. If not, no round of the plan may be submitted here.
  bool has_own_ranks() const { return own_ranks_ > 0; }
  /// Whether a job with this many local ranks can have this plan. A tree waits for all ranks of its
  /// node, so the plan must have all of them, or the node must be in none of its trees.
  bool suits(std::size_t local_ranks) const;
  /// Notes which hosts of this plan are also hosts of `before`. Allocates nothing.
  void follow(const Plan& before);
  aggregate::HostSet hosts_of_plan_before() const { return hosts_before_; }
  /// The key of packets to this plan's groups. Only if packets are authenticated.
  const wire::Gmac& key() const { return *key_; }
  std::span<aggregate::Tree> trees() { return trees_; }
  std::span<const aggregate::Tree> trees() const { return trees_; }
  /// The tree whose root is this node, in a plan with selections; nullptr if there is none.
  aggregate::Tree* rooted_here() { return own_tree_ ? &trees_[*own_tree_] : nullptr; }
  const aggregate::Tree* rooted_here() const { return own_tree_ ? &trees_[*own_tree_] : nullptr; }
  /// The number of incoming edges in all trees.
  std::size_t edge_count() const;
  /// The groups to which this node sends results of its trees, and updates.
  std::span<hop::Group* const> groups() { return groups_; }
  GroupHearing group_hearing() const;
  /// Whether blocks of the edge may go to a group.
  bool has_group_over(const hop::OutEdge& edge);
  /// The group of those who receive this node's update in an exchange; nullptr if it has none.
  hop::Group* receivers_of(const aggregate::Round& round);
  /// The number of the tree whose root is this node, in a plan with selections.
  std::optional<std::uint8_t> own_tree() const { return own_tree_; }
  /// Whether this node receives the updates of another one by a selection.
  bool receives_from(std::uint16_t node, std::size_t selection) const;
  /// The next packet number, from 1 on, of the groups whose packets name this tree.
  std::uint64_t next_group_number(std::uint8_t tree) { return ++group_packets_[tree]; }
  /// The acks that this node owes to its peers under this plan.
  hop::AckQueue& acks() { return acks_; }
  const hop::AckQueue& acks() const { return acks_; }
  const RouteTable& routes() const { return routes_; }
  /// The peers that this node sounds, because no tree uses the links to them. After connect().
  std::span<const hop::PeerIndex> sounded() const { return sounded_; }
  bool follows_network() const { return follows_network_; }
  RelayQueue& relayed() { return relayed_; }
  const RelayQueue& relayed() const { return relayed_; }
  /// What the trees of the plan share. Only after connect().
  aggregate::Context& context() { return *context_; }

  /// The blocks of `round` that a tree carries. All nodes compute the same.
  BlockRange range_of(std::size_t tree, std::uint32_t round, const Geometry& geometry) const {
    return partition_.range_of(tree, round, geometry);
  }
  const aggregate::Partition& partition() const { return partition_; }
  /// Whether exchanges may name this selection.
  bool has_selection(std::size_t selection) const {
    return selection < partition_.selections().size();
  }
  /// Opens the round in every tree.
  void open(aggregate::Round& round);
  /// Count, under bounded staleness, what other ranks still have to send of the exchanges that this
  /// node's rank has submitted. await_updates(): the rank has submitted an exchange. on_update():
  /// another rank has sent its update, or an empty block because it sends none.
  void await_updates() { updates_awaited_ += std::int64_t(rooted_here()->in().size()); }
  void on_update() { --updates_awaited_; }
  /// Whether all other ranks have sent theirs, provided that this node's rank has submitted all
  /// exchanges.
  bool has_all_updates() const { return updates_awaited_ == 0; }

  /// This plan carries the rounds from `round` on, and another plan carries those before.
  void activate(std::uint32_t round);
  /// Whether a round of this plan may be open together with rounds of the plan before.
  bool follows_other_plan(std::uint32_t round) const {
    return activation_ && round - *activation_ < kRoundSlots;
  }

  /// What a bucket of the job needs under this plan. Added by the control thread before the poll
  /// loop gets the plan. The bucket outlives the plan.
  struct BucketPart {
    aggregate::Bucket* bucket = nullptr;
    std::unique_ptr<aggregate::GatherSet> gathers;
    // Null if the bucket needs none or has one already.
    std::unique_ptr<aggregate::Residual> residual;
  };
  void add_bucket(BucketPart part) { bucket_parts_.push_back(std::move(part)); }
  std::span<BucketPart> bucket_parts() { return bucket_parts_; }

  /// The number of this plan's peers that no live plan names.
  std::size_t new_peers(const hop::PeerTable& peers) const;
  /// Makes this a plan of the job. The table gets the peers that no live plan names, and each peer
  /// gets the edges that lead to it. Allocates nothing.
  void connect(hop::PeerTable& peers, const aggregate::Context& context);
  /// Gives this plan's peers the rates that they have under it, either those of updates or those of
  /// all other rounds.
  void apply_rates(hop::PeerTable& peers, bool of_updates, Instant now) const;
  /// Whether blocks of an open round of this plan have still to reach a peer.
  bool sends(const aggregate::Round& round) const;
  /// Routes that differ from those of the plan before begin to measure anew. Called once when the
  /// first round of this plan is open, and again when no block of the plan before is in flight any
  /// more. Allocates nothing.
  void begin_other_ways(hop::PeerTable& peers, const Plan& before) const;
  /// Removes this plan's edges from the peers. The peers stay in the table: those of other live
  /// plans keep what the job has learned of them, and this node answers the others until they have
  /// ended this plan too.
  void disconnect(hop::PeerTable& peers);

 private:
  std::uint16_t whole_ranks(const Geometry& geometry) const;
  void add_update_groups(const PlanConfig& plan);

  std::uint32_t epoch_;
  std::uint16_t world_size_;
  std::shared_ptr<const wire::Gmac> key_;  // null if packets are not authenticated
  bool has_all_ranks_;
  std::uint16_t own_ranks_;  // ranks of this node in the plan
  aggregate::HostTable hosts_;
  std::size_t own_host_;  // HostTable::kNone: this node has no ranks
  std::vector<std::uint64_t> hosts_before_;
  aggregate::Partition partition_;
  std::vector<aggregate::Tree> trees_;
  std::int64_t updates_awaited_ = 0;
  std::optional<std::uint8_t> own_tree_;
  // One for each selection with enough receivers of this node's updates.
  std::vector<hop::Group> updates_;
  std::vector<hop::Group*> groups_;
  std::vector<std::uint64_t> group_packets_;  // packets sent to groups, by tree
  RouteTable routes_;
  RelayQueue relayed_;
  // Nodes that are neighbours on routes or take part in soundings, each once.
  std::vector<std::uint16_t> beside_trees_;
  bool follows_network_;
  std::vector<hop::PeerIndex> sounded_;
  std::vector<hop::Peer> peers_;            // with the indices that the trees use before connect()
  std::vector<hop::PeerConfig> rates_;      // rates of peers_
  std::vector<hop::PeerIndex> peer_names_;  // index of each of peers_ in the job's table
  std::vector<BucketPart> bucket_parts_;
  hop::AckQueue acks_;
  std::optional<aggregate::Context> context_;
  std::optional<std::uint32_t> activation_;  // none for the job's first plan, and before the commit
};

}  // namespace gradplane::job
