// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds in which not every host contributes to each block, or gets it. Blocks that an edge does
// not carry count as settled or arrived from the start.
#include "dataplane/aggregate/tree.h"

namespace gradplane::aggregate {

/// Indexes shards by edge. A host is below at most one child, so each shard is visited once here,
/// and opening a round does not visit all shards for each edge.
void Tree::index_shards(const Limits& limits) {
  constexpr std::size_t kNoChild = SIZE_MAX;
  std::vector<std::size_t> child_of_host(hosts_->size(), kNoChild);
  for (std::size_t e = has_parent() ? 1 : 0; e < edge_hosts_.size(); ++e) {
    for_each_host(edge_hosts_[e], [&](std::size_t host) { child_of_host[host] = e; });
  }
  for (std::size_t host = 0; host < hosts_->size(); ++host) {
    const bool is_gathered = !has_parent() || has_host(subtree_, host);
    const std::uint16_t children = child_of_host[host] != kNoChild ? 1 : 0;
    sources_of_host_.push_back(is_gathered ? static_cast<std::uint16_t>(children + local_ranks_)
                                           : std::uint16_t{0});
  }
  edge_shards_.resize(edge_hosts_.size());
  const std::span<const std::uint16_t> ranks = limits.partition->shards_of(number_);
  for (std::uint32_t shard = 0; shard < ranks.size(); ++shard) {
    const std::size_t host = hosts_->host_of(ranks[shard]);
    if (has_parent() && has_host(subtree_, host)) edge_shards_[0].push_back(shard);
    if (child_of_host[host] != kNoChild) edge_shards_[child_of_host[host]].push_back(shard);
  }
}

void Tree::leave_out(const Round& round, BlockRange range) {
  const std::size_t slot = round.slot();
  const Operation operation = round.geometry.operation;
  for (std::size_t e = 0; e < out_.size(); ++e) {
    const bool is_to_parent = has_parent() && e == 0;
    mark_blocks_below(round, range, out_[e].id.index);
    if (!all_receive(operation)) {
      is_to_parent ? in_[e].receivers[slot].carry_only(carried_)
                   : out_[e].senders[slot].carry_only(carried_);
    }
    if (all_contribute(operation)) continue;
    carried_.set(0);
    is_to_parent ? out_[e].senders[slot].carry_only(carried_)
                 : in_[e].receivers[slot].carry_only(carried_);
  }
  if (!all_contribute(operation) && sums_) await_contributors(round, range);
}

void Tree::leave_out_of_exchange(const Round& round, BlockRange range) {
  const std::size_t slot = round.slot();
  const std::uint16_t selection = round.geometry.source;
  const Selections& selections = round.partition->selections();
  carried_.reset(range.size());  // none
  if (has_parent()) {
    const std::size_t root = round.partition->root_host(number_);
    if (!selections.sends(selection, own_host_, root)) push().senders[slot].carry_only(carried_);
    results().receivers[slot].carry_only(carried_);
    return;
  }
  const HostSet senders = selections.senders_to(selection, own_host_);
  std::size_t sources = local_ranks_;
  for (hop::InEdge& edge : child_pushes()) {
    const bool sends = meets(hosts_of(edge.id.index), senders);
    sources += sends ? 1 : 0;
    if (!sends) edge.receivers[slot].carry_only(carried_);
  }
  for (hop::OutEdge& edge : child_results()) edge.senders[slot].carry_only(carried_);
  slots_[slot].sums.await(range, static_cast<std::uint16_t>(sources));
}

/// Under bounded staleness each node sends something to each root, so that all know how far it is.
void Tree::open_streamed(const Round& round, BlockRange range) {
  const std::size_t slot = round.slot();
  Slot& own = slots_[slot];
  carried_.reset(range.size());  // none
  if (!has_parent()) {
    for (hop::InEdge& edge : child_pushes()) edge.receivers[slot].carry_only(carried_);
    for (hop::OutEdge& edge : child_results()) edge.senders[slot].carry_only(carried_);
    own.sums.await(range, 0);
    own.local_left = 0;
    return;
  }
  results().receivers[slot].carry_only(carried_);
  const std::size_t root = round.partition->root_host(number_);
  own.sends_update = round.partition->selections().sends(round.geometry.source, own_host_, root);
  if (own.sends_update) return;
  carried_.set(0);
  push().senders[slot].carry_only(carried_);
}

/// Marks the blocks of the range, by their number in it, that belong to ranks below an edge; for
/// the parent's edge, to ranks at or below this node.
void Tree::mark_blocks_below(const Round& round, BlockRange range, hop::EdgeIndex edge) {
  carried_.reset(range.size());
  const Geometry& g = round.geometry;
  if (has_shards(g.operation)) {
    for (const std::size_t shard : shards_below(edge)) {
      carried_.set_range(shard * g.shard_blocks, (shard + 1) * g.shard_blocks);
    }
    return;
  }
  const HostSet hosts = out(edge).is_push() ? HostSet(subtree_) : hosts_of(edge);
  const std::size_t source = round.partition->host_of(g, range.begin);
  if (has_host(hosts, source)) carried_.set_range(0, range.size());
}

/// A block awaits a push only from the child below which its contributor is, but the first block
/// awaits one from every child. All local ranks add each block that this node gathers. So nothing
/// leaves, and no result reaches their memory, before all of them have submitted the round.
void Tree::await_contributors(const Round& round, BlockRange range) {
  const Geometry& g = round.geometry;
  Slot& own = slots_[round.slot()];
  const auto await = [&](BlockRange run, std::size_t sources) {
    own.sums.await(run, static_cast<std::uint16_t>(sources));
    own.local_left += sources > 0 ? run.size() * local_ranks_ : 0;
  };
  own.local_left = 0;
  await({range.begin, range.begin + 1}, config_.children.size() + local_ranks_);
  for (BlockRange run{range.begin, range.begin + 1}; run.end < range.end;) {
    run = Partition::run_at(g, range, run.end);
    await(run, sources_of_host_[round.partition->host_of(g, run.begin)]);
  }
}

}  // namespace gradplane::aggregate
