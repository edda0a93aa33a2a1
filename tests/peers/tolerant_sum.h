// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// Data whose sum shows which ranks are in it, for measurements of rounds that may be partial.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gradplane::peers {

/// fp32 has all integers up to 2^24: one bit for each rank, and four bits in which elements differ.
inline constexpr std::uint32_t kMaxCodedRanks = 20;

/// Bit r is set if rank r's contribution is in the sum.
using RankSet = std::uint32_t;

/// Rank r contributes 2^r k, where k is a small integer that depends on the element and the seed.
/// So the sum over a set of ranks is exactly k times the set, in any order. It can be decoded even
/// if it was scaled by (ranks / ranks in the sum).
class RankCode {
 public:
  /// `rescaled`: gather.compensation is `rescale`, not `zero`. At most kMaxCodedRanks ranks.
  RankCode(std::uint32_t world, bool rescaled);

  void fill(std::span<float> data, std::uint64_t seed, std::uint32_t rank) const;

  /// The set of ranks that every element of the block shows; nothing if there is no such set.
  /// `first_index` is the block's place in the data. If two sets look the same after scaling, it is
  /// the larger one. If `count` is given, it has so many ranks.
  std::optional<RankSet> ranks_in(std::span<const float> block, std::uint64_t seed,
                                  std::size_t first_index,
                                  std::optional<std::uint32_t> count = {}) const;

  RankSet everyone() const { return (RankSet{1} << world_) - 1; }

 private:
  std::uint32_t factor(std::uint64_t seed, std::size_t index) const;
  bool holds(std::span<const float> block, std::uint64_t seed, std::size_t first_index,
             RankSet set) const;

  std::uint32_t world_;
  std::uint32_t factor_bits_;
  bool rescaled_;
};

/// A tensor of the model for which a message stands.
struct MessageTensor {
  std::string name;
  std::size_t offset_elements = 0;
  std::size_t elements = 0;
};

/// The tensors of a message: weights, each about twice as large as the one before, and a bias for
/// each.
std::vector<MessageTensor> tensors_of(std::size_t elements);

/// The tensors in a slice of the message, with offsets relative to the slice.
std::vector<MessageTensor> tensors_within(std::span<const MessageTensor> tensors,
                                          std::size_t offset_elements, std::size_t elements);

/// What is missing from a sum, in blocks of one rank.
struct Missing {
  std::uint64_t missing_count = 0;
  std::uint64_t expected_count = 0;
  std::uint64_t partial_blocks = 0;  // blocks that lack some rank
  double worst_share = 0;            // largest missing share of one rank's blocks of one tensor

  void add(const Missing& other);
};

/// Counts what is missing in a slice. `sets` has an entry for each block of `block_elements`
/// elements.
Missing count_missing(std::span<const RankSet> sets, std::uint32_t world,
                      std::span<const MessageTensor> tensors, std::size_t block_elements);

}  // namespace gradplane::peers
