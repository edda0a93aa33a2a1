// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds in which not every host contributes to each block, or gets it. What an edge does not carry
// is done from the start.
#include <algorithm>

#include "dataplane/aggregate/tree.h"

namespace gradplane::aggregate {

void Tree::leave_out(const Round& round, BlockRange range) {
  const std::size_t slot = round.slot();
  const Operation operation = round.geometry.operation;
  for (std::size_t e = 0; e < out_.size(); ++e) {
    const bool is_to_parent = has_parent() && e == 0;
    mark_blocks_of(round, range, is_to_parent ? HostSet(subtree_) : hosts_of(e));
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

/// Marks the blocks of the range, by their number in it, that belong to ranks of these hosts.
void Tree::mark_blocks_of(const Round& round, BlockRange range, HostSet hosts) {
  carried_.reset(range.size());
  const Geometry& g = round.geometry;
  for (BlockRange run{range.begin, range.begin}; run.end < range.end;) {
    run = Partition::run_at(g, range, run.end);
    if (!has_host(hosts, round.partition->host_of(g, run.begin))) continue;
    carried_.set_range(run.begin - range.begin, run.end - range.begin);
  }
}

/// A block waits for the child from below which it comes, and the first block for all children. All
/// local ranks add each block that this node gathers, so nothing leaves, and no result reaches
/// their memory, before all of them have submitted the round.
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
    const std::size_t host = round.partition->host_of(g, run.begin);
    const auto is_below = [&](const std::vector<std::uint64_t>& hosts) {
      return has_host(hosts, host);
    };
    const bool is_gathered = !has_parent() || is_below(subtree_);
    const auto first_child = edge_hosts_.begin() + (has_parent() ? 1 : 0);
    const auto children = std::count_if(first_child, edge_hosts_.end(), is_below);
    await(run, is_gathered ? static_cast<std::size_t>(children) + local_ranks_ : 0);
  }
}

}  // namespace gradplane::aggregate
