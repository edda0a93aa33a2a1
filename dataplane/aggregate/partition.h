// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/aggregate/coverage.h"
#include "dataplane/aggregate/selections.h"
#include "dataplane/model/geometry.h"

namespace gradplane::aggregate {

/// Which blocks of a round each tree of a plan carries, and to which ranks they belong
/// (docs/protocol.md, section 10). It depends only on operation, plan and round, so all nodes
/// compute the same. The blocks of a tree are consecutive, and each block is in exactly one tree.
///
/// A shard goes to the tree whose root hosts the shard's rank, since only that rank contributes to
/// it or only that rank gets it. So block numbers count the shards tree by tree. An exchange is
/// different: each tree has all blocks, and sums them only for its root.
class Partition {
 public:
  struct TreePart {
    WeightShare share;
    std::size_t root_host = HostTable::kNone;  // kNone: the root has no ranks
    bool is_here = true;                       // whether this poll core carries it; see CorePart
    std::size_t root_children = 1;             // to each of them the root sends each result
  };
  /// `hosts` must outlive this object. `max_blocks`: blocks of the largest round.
  Partition(const HostTable& hosts, std::vector<TreePart> trees, std::size_t max_blocks,
            const std::vector<Receivers>& selections = {});

  std::size_t trees() const { return trees_.size(); }
  std::size_t root_host(std::size_t tree) const { return trees_[tree].root_host; }
  const Selections& selections() const { return selections_; }
  /// The most blocks that a tree may have in a round at this core.
  std::size_t capacity(std::size_t tree) const {
    return trees_[tree].is_here ? capacity_[tree] : 0;
  }
  /// The blocks of a round that a tree carries; empty if another poll core carries the tree.
  BlockRange range_of(std::size_t tree, std::uint32_t round, const Geometry& geometry) const {
    return trees_[tree].is_here ? range_at_all_cores(tree, round, geometry) : BlockRange{};
  }
  /// The same, whichever core carries the tree.
  BlockRange range_at_all_cores(std::size_t tree, std::uint32_t round,
                                const Geometry& geometry) const {
    if (geometry.operation == Operation::kAllReduce) return share_of(tree, round, geometry.blocks);
    if (geometry.operation == Operation::kExchange) return {0, geometry.blocks};
    return part_of(tree, round, geometry);
  }

  /// The ranks in the order in which their shards are numbered.
  std::span<const std::uint16_t> shard_order() const { return order_; }
  /// The ranks of the shards that a tree carries, in the same order. The tree's blocks begin with
  /// those of the first of them.
  std::span<const std::uint16_t> shards_of(std::size_t tree) const {
    return shard_order().subspan(first_shard_[tree], first_shard_[tree + 1] - first_shard_[tree]);
  }
  /// The rank to which a block belongs, if the operation does not treat all ranks alike.
  std::uint16_t rank_of(const Geometry& g, std::uint32_t block) const {
    return has_shards(g.operation) ? order_[block / g.shard_blocks] : g.source;
  }
  /// The index of the host of that rank.
  std::size_t host_of(const Geometry& g, std::uint32_t block) const {
    return hosts_.host_of(rank_of(g, block));
  }
  /// The blocks of `range` from `block` on that belong to the same rank as `block`.
  static BlockRange run_at(const Geometry& g, BlockRange range, std::uint32_t block) {
    return {block, std::min(range.end, (block / g.shard_blocks + 1) * g.shard_blocks)};
  }
  /// The offset of a block in a trainer's buffer.
  std::size_t offset_bytes(const Geometry& g, std::uint32_t block) const {
    if (g.shards == 1) return g.offset_bytes(block);
    const std::size_t shard_bytes = std::size_t{g.elements / g.shards} * element_bytes(g.type);
    return order_[block / g.shard_blocks] * shard_bytes + g.offset_bytes(block % g.shard_blocks);
  }

 private:
  void deal_shards();
  BlockRange share_of(std::size_t tree, std::uint32_t round, std::uint32_t blocks) const;
  BlockRange part_of(std::size_t tree, std::uint32_t round, const Geometry& geometry) const;
  BlockRange part_of_broadcast(std::size_t tree, std::uint32_t round, const Geometry& g) const;
  BlockRange share_without(std::size_t host, std::size_t tree, std::uint32_t round,
                           std::uint32_t blocks) const;
  std::size_t tree_near(std::size_t host, std::uint32_t round) const;
  std::uint64_t weight_rooted_at(std::size_t host) const;
  bool gains_without(std::size_t host) const;
  WeightShare share_in_rest(std::size_t host, std::size_t tree) const;
  std::uint64_t least_total_with(std::size_t tree) const;

  const HostTable& hosts_;
  std::vector<TreePart> trees_;
  std::vector<std::vector<std::size_t>> rooted_at_;  // by host: the trees whose root it is
  std::vector<bool> leaves_out_;  // by host: a long broadcast of it goes to the other trees
  Selections selections_;
  std::uint64_t total_weight_ = 0;
  std::vector<std::uint16_t> order_;
  // By tree: index into order_; then the end of the last tree.
  std::vector<std::uint32_t> first_shard_;
  std::vector<std::size_t> capacity_;  // blocks, by tree, whichever core carries it
};

}  // namespace gradplane::aggregate
