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

/// Which blocks of a round each tree of a plan carries, and whose blocks they are: a function of
/// operation, plan and round (docs/protocol.md, section 10). All nodes compute the same. The blocks
/// of a tree follow each other, and the trees of a round have every block once.
///
/// A shard goes to the tree whose root runs the shard's rank, since that rank alone contributes to
/// it, or alone gets it. So block numbers count the shards tree by tree. In an exchange each tree
/// has all blocks, and sums them for its root alone.
class Partition {
 public:
  struct TreePart {
    WeightShare share;
    std::size_t root_host = HostTable::kNone;  // kNone: the root has no ranks
    bool is_here = true;                       // this poll core carries it; see CorePart
  };
  /// `hosts` outlives it. `max_blocks`: of a round.
  Partition(const HostTable& hosts, std::vector<TreePart> trees, std::size_t max_blocks,
            const std::vector<Receivers>& selections = {});

  std::size_t trees() const { return trees_.size(); }
  std::size_t root_host(std::size_t tree) const { return trees_[tree].root_host; }
  const Selections& selections() const { return selections_; }
  /// The most blocks that a tree may have in a round here.
  std::size_t capacity(std::size_t tree) const {
    return trees_[tree].is_here ? capacity_[tree] : 0;
  }
  /// Of a tree that another poll core carries it is empty.
  BlockRange range_of(std::size_t tree, std::uint32_t round, const Geometry& geometry) const {
    return trees_[tree].is_here ? range_at_all_cores(tree, round, geometry) : BlockRange{};
  }
  /// Whichever core carries it.
  BlockRange range_at_all_cores(std::size_t tree, std::uint32_t round,
                                const Geometry& geometry) const {
    if (geometry.operation == Operation::kAllReduce) return share_of(tree, round, geometry.blocks);
    if (geometry.operation == Operation::kExchange) return {0, geometry.blocks};
    return part_of(tree, round, geometry);
  }

  /// The ranks in the order in which their shards are numbered.
  std::span<const std::uint16_t> shard_order() const { return order_; }
  /// The same of the shards that a tree carries. Its blocks begin with those of the first of them.
  std::span<const std::uint16_t> shards_of(std::size_t tree) const {
    return shard_order().subspan(first_shard_[tree], first_shard_[tree + 1] - first_shard_[tree]);
  }
  /// The rank to which a block belongs, where the operation does not treat all ranks alike.
  std::uint16_t rank_of(const Geometry& g, std::uint32_t block) const {
    return has_shards(g.operation) ? order_[block / g.shard_blocks] : g.source;
  }
  /// The number of the host on which that rank runs.
  std::size_t host_of(const Geometry& g, std::uint32_t block) const {
    return hosts_.host_of(rank_of(g, block));
  }
  /// The blocks of `range` from `block` on that belong to the same rank.
  static BlockRange run_at(const Geometry& g, BlockRange range, std::uint32_t block) {
    return {block, std::min(range.end, (block / g.shard_blocks + 1) * g.shard_blocks)};
  }
  /// Where a block begins in a trainer's buffer.
  std::size_t offset_bytes(const Geometry& g, std::uint32_t block) const {
    if (g.shards == 1) return g.offset_bytes(block);
    const std::size_t shard_bytes = std::size_t{g.elements / g.shards} * element_bytes(g.type);
    return order_[block / g.shard_blocks] * shard_bytes + g.offset_bytes(block % g.shard_blocks);
  }

 private:
  void deal_shards();
  BlockRange share_of(std::size_t tree, std::uint32_t round, std::uint32_t blocks) const;
  BlockRange part_of(std::size_t tree, std::uint32_t round, const Geometry& geometry) const;
  std::size_t tree_near(std::size_t host, std::uint32_t round) const;

  const HostTable& hosts_;
  std::vector<TreePart> trees_;
  Selections selections_;
  std::uint64_t total_weight_ = 0;
  std::vector<std::uint16_t> order_;
  std::vector<std::uint32_t> first_shard_;  // by tree, in order_; and the end of the last
  std::vector<std::size_t> capacity_;       // by tree, whichever core carries it
};

}  // namespace gradplane::aggregate
