// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/partition.h"

#include <algorithm>

namespace gradplane::aggregate {

Partition::Partition(const HostTable& hosts, std::vector<TreePart> trees, std::size_t max_blocks,
                     const std::vector<Receivers>& selections)
    : hosts_(hosts),
      trees_(std::move(trees)),
      selections_(hosts.size(), hosts.words(), selections) {
  for (const TreePart& tree : trees_) total_weight_ += tree.share.weight;
  deal_shards();
  const std::size_t shard_blocks = max_blocks / std::max<std::size_t>(1, hosts_.rank_count());
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    const std::size_t shards = first_shard_[t + 1] - first_shard_[t];
    const std::size_t exchanged = selections_.size() > 0 ? max_blocks : 0;
    capacity_.push_back(
        std::max({max_blocks_of_tree(trees_[t].share.weight, total_weight_, max_blocks),
                  shards * shard_blocks, exchanged}));
  }
}

/// Assigns each rank's shard to a tree: to a tree whose root is the rank's host, otherwise to any.
/// Among several it is the tree with the fewest shards for its weight so far.
void Partition::deal_shards() {
  std::vector<std::vector<std::uint16_t>> dealt(trees_.size());
  const auto is_root_of = [&](std::size_t host) {
    return [host](const TreePart& tree) { return tree.root_host == host; };
  };
  const auto has_tree = [&](std::uint16_t rank) {
    return std::any_of(trees_.begin(), trees_.end(), is_root_of(hosts_.host_of(rank)));
  };
  const auto deal = [&](std::uint16_t rank, bool to_own_tree) {
    std::size_t best = trees_.size();
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      if (to_own_tree && trees_[t].root_host != hosts_.host_of(rank)) continue;
      const bool is_better =
          best == trees_.size() || (dealt[t].size() + 1) * trees_[best].share.weight <
                                       (dealt[best].size() + 1) * trees_[t].share.weight;
      if (is_better) best = t;
    }
    if (best < trees_.size()) dealt[best].push_back(rank);
  };
  for (const bool to_own_tree : {true, false}) {
    for (std::size_t r = 0; r < hosts_.rank_count(); ++r) {
      const auto rank = static_cast<std::uint16_t>(r);
      if (has_tree(rank) == to_own_tree) deal(rank, to_own_tree);
    }
  }
  for (const std::vector<std::uint16_t>& ranks : dealt) {
    first_shard_.push_back(static_cast<std::uint32_t>(order_.size()));
    order_.insert(order_.end(), ranks.begin(), ranks.end());
  }
  first_shard_.push_back(static_cast<std::uint32_t>(order_.size()));
}

BlockRange Partition::share_of(std::size_t tree, std::uint32_t round, std::uint32_t blocks) const {
  const std::size_t first = round % trees_.size();
  return blocks_of_tree(trees_[tree].share, trees_[first].share.begin, total_weight_, blocks);
}

/// A broadcast goes to one tree, if that tree has room for all of it. Without multicast the root of
/// a large broadcast would be the bottleneck, so the trees share it, and each root passes its part
/// on.
BlockRange Partition::part_of(std::size_t tree, std::uint32_t round, const Geometry& g) const {
  if (has_shards(g.operation)) {
    return {first_shard_[tree] * g.shard_blocks, first_shard_[tree + 1] * g.shard_blocks};
  }
  const std::size_t nearest = tree_near(hosts_.host_of(g.source), round);
  if (g.blocks > capacity_[nearest]) return share_of(tree, round, g.blocks);
  return tree == nearest ? BlockRange{0, g.blocks} : BlockRange{};
}

/// The tree whose root is this host. If there is none, a different tree in each round.
std::size_t Partition::tree_near(std::size_t host, std::uint32_t round) const {
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    if (trees_[t].root_host == host) return t;
  }
  return round % trees_.size();
}

}  // namespace gradplane::aggregate
