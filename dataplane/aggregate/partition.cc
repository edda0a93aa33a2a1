// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/partition.h"

#include <algorithm>
#include <bit>

namespace gradplane::aggregate {
namespace {

/// A broadcast of fewer blocks goes whole to the tree of its source. There it needs one hop, and
/// shared by the trees it needs two.
constexpr std::size_t kSharedFromBlocks = 16;
/// Weights are rounded to so many bits in all where they are multiplied by each other.
constexpr int kWeightBits = 24;

}  // namespace

Partition::Partition(const HostTable& hosts, std::vector<TreePart> trees, std::size_t max_blocks,
                     const std::vector<Receivers>& selections)
    : hosts_(hosts),
      trees_(std::move(trees)),
      rooted_at_(hosts.size()),
      selections_(hosts.size(), hosts.words(), selections) {
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    total_weight_ += trees_[t].share.weight;
    if (trees_[t].root_host != HostTable::kNone) rooted_at_[trees_[t].root_host].push_back(t);
  }
  for (std::size_t host = 0; host < hosts.size(); ++host)
    leaves_out_.push_back(gains_without(host));
  deal_shards();
  const std::size_t shard_blocks = max_blocks / std::max<std::size_t>(1, hosts_.rank_count());
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    const std::size_t shards = first_shard_[t + 1] - first_shard_[t];
    const std::size_t exchanged = selections_.size() > 0 ? max_blocks : 0;
    capacity_.push_back(
        std::max({max_blocks_of_tree(trees_[t].share.weight, least_total_with(t), max_blocks),
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

BlockRange Partition::part_of(std::size_t tree, std::uint32_t round, const Geometry& g) const {
  if (has_shards(g.operation)) {
    return {first_shard_[tree] * g.shard_blocks, first_shard_[tree + 1] * g.shard_blocks};
  }
  return part_of_broadcast(tree, round, g);
}

/// A short broadcast goes whole to one tree. The root of that tree sends a copy to each other host.
/// For a long one the link of the root would be the bottleneck, so the trees share it, and each
/// root passes its part on. Where that takes less time, the trees with the source as their root
/// carry nothing of it.
BlockRange Partition::part_of_broadcast(std::size_t tree, std::uint32_t round,
                                        const Geometry& g) const {
  const std::size_t source = hosts_.host_of(g.source);
  const std::size_t nearest = tree_near(source, round);
  if (g.blocks >= kSharedFromBlocks || g.blocks > capacity_[nearest])
    return share_without(source, tree, round, g.blocks);
  return tree == nearest ? BlockRange{0, g.blocks} : BlockRange{};
}

/// A tree's share of the blocks, if the trees with this root get none where that takes less time.
BlockRange Partition::share_without(std::size_t host, std::size_t tree, std::uint32_t round,
                                    std::uint32_t blocks) const {
  if (!leaves_out_[host]) return share_of(tree, round, blocks);
  const std::uint64_t rest = total_weight_ - weight_rooted_at(host);
  if (trees_[tree].root_host == host) return {};
  std::size_t first = round % trees_.size();
  while (trees_[first].root_host == host) first = (first + 1) % trees_.size();
  return blocks_of_tree(share_in_rest(host, tree), share_in_rest(host, first).begin, rest, blocks);
}

/// The share of a tree among those that this host is not the root of.
WeightShare Partition::share_in_rest(std::size_t host, std::size_t tree) const {
  WeightShare share = trees_[tree].share;
  for (const std::size_t own : rooted_at_[host])
    share.begin -= own < tree ? trees_[own].share.weight : 0;
  return share;
}

std::uint64_t Partition::weight_rooted_at(std::size_t host) const {
  std::uint64_t weight = 0;
  for (const std::size_t tree : rooted_at_[host]) weight += trees_[tree].share.weight;
  return weight;
}

/// The least weight of all trees that share a round, if the tree is one of them.
std::uint64_t Partition::least_total_with(std::size_t tree) const {
  std::uint64_t most = 0;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (leaves_out_[host] && host != trees_[tree].root_host)
      most = std::max(most, weight_rooted_at(host));
  }
  return total_weight_ - most;
}

/// Whether a long broadcast of this host takes less time if its own trees carry nothing of it. What
/// counts is how many copies of the broadcast leave the busiest root. The source sends each child
/// of its own trees a copy, and one copy to the roots of the others. The trees' memory at most
/// doubles.
bool Partition::gains_without(std::size_t host) const {
  const int shift = std::max(0, static_cast<int>(std::bit_width(total_weight_)) - kWeightBits);
  std::uint64_t total = 0;
  std::uint64_t own = 0;
  std::uint64_t others = 0;                               // copies that leave the busiest of them
  std::vector<std::uint64_t> copies_from(hosts_.size());  // in units of the total weight
  for (const TreePart& tree : trees_) {
    const std::uint64_t weight = tree.share.weight >> shift;
    const std::uint64_t copies = weight * tree.root_children;
    const bool has_host = tree.root_host != HostTable::kNone;
    total += weight;
    own += tree.root_host == host ? weight : 0;
    std::uint64_t& from_root = has_host ? copies_from[tree.root_host] : others;
    from_root = has_host ? from_root + copies : std::max(others, copies);
  }
  const std::uint64_t from_own = copies_from[host];
  copies_from[host] = 0;
  for (const std::uint64_t copies : copies_from) others = std::max(others, copies);
  const std::uint64_t rest = total - own;
  if (2 * rest < total) return false;
  const std::uint64_t with = std::max(from_own + rest, others);
  const std::uint64_t without = std::max(rest, others);
  return without * total < with * rest;
}

/// The tree whose root is this host. If there is none, a different tree in each round.
std::size_t Partition::tree_near(std::size_t host, std::uint32_t round) const {
  return rooted_at_[host].empty() ? round % trees_.size() : rooted_at_[host].front();
}

}  // namespace gradplane::aggregate
