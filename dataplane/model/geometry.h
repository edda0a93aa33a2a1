// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dataplane/model/element_type.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/reduction.h"

namespace gradplane {

/// A half-open range of block indices of one round.
struct BlockRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t size() const { return end - begin; }
  bool contains(std::uint32_t block) const { return block >= begin && block < end; }
};

/// What a rank or a packet states about a round.
struct Statement {
  ElementType type = ElementType::kFloat32;
  std::uint32_t elements = 0;  // elements of the whole slot
  std::uint16_t bucket = 0;    // only of an all_reduce or exchange: see Geometry
  Operation operation = Operation::kAllReduce;
  std::uint16_t source = 0;  // broadcast: the rank that has the bytes; exchange: the selection
  Reduction reduction = Reduction::kSum;  // all_reduce, reduce_scatter
};

/// What all nodes state alike about a round: what it computes, how its slot is cut into blocks, and
/// its bucket. A block never splits an element, so only whole elements are lost (LTP's Bubble
/// Filling, by construction). No block crosses the end of a shard, and the blocks of a shard are
/// consecutive. The plan decides the order of the shards (Partition).
struct Geometry {
  ElementType type = ElementType::kFloat32;
  Operation operation = Operation::kAllReduce;
  Reduction reduction = Reduction::kSum;
  std::uint16_t bucket = 0;  // 0: none, so every block is needed
  // Of a broadcast, its rank; of an exchange, the number of its selection.
  std::uint16_t source = 0;
  std::uint16_t shards = 1;          // number of shards, which have equal sizes
  std::uint32_t elements = 0;        // of all shards
  std::uint32_t block_elements = 0;  // in every block but the last one of a shard
  std::uint32_t blocks = 0;          // of all shards
  std::uint32_t shard_blocks = 0;

  /// The geometry of an all_reduce: one shard, of which every rank gets the sum.
  static Geometry of(ElementType type, std::uint32_t elements, std::size_t block_bytes,
                     std::uint16_t bucket = 0) {
    return of({.type = type, .elements = elements, .bucket = bucket}, block_bytes, 1);
  }
  /// The geometry of a statement with a valid type and operation. Its other fields may have any
  /// value, so check is_sound().
  static Geometry of(const Statement& said, std::size_t block_bytes, std::uint16_t ranks) {
    Geometry g;
    g.type = said.type;
    g.operation = said.operation;
    g.reduction = said.reduction;
    g.bucket = said.bucket;
    g.source = said.source;
    g.shards = has_shards(said.operation) ? ranks : std::uint16_t{1};
    g.elements = said.elements;
    g.block_elements = static_cast<std::uint32_t>(block_bytes / element_bytes(said.type));
    const std::uint32_t shard = g.shards == 1 ? g.elements : g.elements / g.shards;
    g.shard_blocks = (shard + g.block_elements - 1) / g.block_elements;
    g.blocks = g.shard_blocks * g.shards;
    return g;
  }

  Statement statement() const { return {type, elements, bucket, operation, source, reduction}; }

  /// Whether its fields are consistent in a job of this many ranks. Only an all_reduce or an
  /// exchange may have a bucket, and only a broadcast a source rank. An exchange is a mean. A
  /// reduction other than a sum has no bucket.
  bool is_sound(std::uint16_t ranks) const {
    if (elements == 0) return false;
    const bool reduces =
        operation == Operation::kAllReduce || operation == Operation::kReduceScatter;
    if (reduction != Reduction::kSum && (!reduces || bucket != 0)) return false;
    if (operation == Operation::kAllReduce) return source == 0;
    if (operation == Operation::kExchange) return is_floating(type) && source < kMaxSelections;
    const bool source_fits = operation == Operation::kBroadcast ? source < ranks : source == 0;
    return bucket == 0 && source_fits && elements % shards == 0;
  }

  std::uint32_t elements_in(std::uint32_t block) const {
    if (shards == 1) return std::min(block_elements, elements - block * block_elements);
    return std::min(block_elements, elements / shards - block % shard_blocks * block_elements);
  }
  std::size_t bytes_in(std::uint32_t block) const {
    return elements_in(block) * element_bytes(type);
  }
  /// The offset of a block in a trainer's buffer with one shard.
  std::size_t offset_bytes(std::uint32_t block) const {
    return std::size_t{block} * block_elements * element_bytes(type);
  }
  /// Whether a tensor table of one geometry also fits the other.
  bool is_cut_like(const Geometry& other) const {
    return type == other.type && bucket == other.bucket && elements == other.elements &&
           block_elements == other.block_elements && blocks == other.blocks;
  }
  bool operator==(const Geometry&) const = default;
};

/// One tree's part of the weights of all trees: [begin, begin + weight) of total.
struct WeightShare {
  std::uint64_t begin = 0;
  std::uint64_t weight = 0;
};

/// The blocks of a round that a tree carries. All nodes compute the same, and each block is in the
/// range of exactly one tree. The order of the trees rotates with the round, so that a bucket of
/// fewer blocks than trees does not always land on the same root. `first_begin` is the begin of the
/// share of tree round % trees.
inline BlockRange blocks_of_tree(WeightShare share, std::uint64_t first_begin, std::uint64_t total,
                                 std::uint32_t blocks) {
  const std::uint64_t begin = (share.begin + total - first_begin) % total;
  const auto cut = [&](std::uint64_t weight) {
    return static_cast<std::uint32_t>(std::uint64_t{blocks} * weight / total);
  };
  return {cut(begin), cut(begin + share.weight)};
}

/// The most blocks that blocks_of_tree() can give a tree of this weight.
inline std::size_t max_blocks_of_tree(std::uint64_t weight, std::uint64_t total,
                                      std::size_t blocks) {
  return std::min<std::size_t>(blocks, blocks * weight / total + 1);
}

}  // namespace gradplane
