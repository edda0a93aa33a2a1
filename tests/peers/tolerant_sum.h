// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// Data whose sum tells which ranks are in it, for measurements of rounds that may lack something.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gradplane::peers {

/// fp32 counts exactly to 2^24: a bit for each rank, and four for the elements to differ in.
inline constexpr std::uint32_t kMaxCodedRanks = 20;

/// Bit r: rank r's contribution is in the sum.
using RankSet = std::uint32_t;

/// Rank r contributes 2^r k, where k is a small integer of the element and the seed. So the sum
/// over a set of ranks is k times the set, exactly, in whatever order it is made; and it stays
/// legible when it was scaled by ranks / ranks in it.
class RankCode {
 public:
  /// `rescaled`: gather.compensation is `rescale`, not `zero`. At most kMaxCodedRanks ranks.
  RankCode(std::uint32_t world, bool rescaled);

  void fill(std::span<float> data, std::uint64_t seed, std::uint32_t rank) const;

  /// The ranks that every element of the block holds; nothing when no one set does. `first_index`
  /// is the block's place in the data. Of two sets that look alike after scaling, the larger; so
  /// where `count` is known, only sets of so many ranks.
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

/// A tensor of the model that a message stands for.
struct MessageTensor {
  std::string name;
  std::size_t offset_elements = 0;
  std::size_t elements = 0;
};

/// The tensors of a message: weights, each about twice as large as the last, with a bias each.
std::vector<MessageTensor> tensors_of(std::size_t elements);

/// Those that lie in a slice of the message, with offsets in it.
std::vector<MessageTensor> tensors_within(std::span<const MessageTensor> tensors,
                                          std::size_t offset_elements, std::size_t elements);

/// What a sum lacks, in blocks of one rank each.
struct Missing {
  std::uint64_t missing_count = 0;
  std::uint64_t expected_count = 0;
  std::uint64_t partial_blocks = 0;  // that lack some rank
  double worst_share = 0;            // of one rank's blocks of one tensor

  void add(const Missing& other);
};

/// Counts the sets of a slice's blocks, each of `block_elements` elements.
Missing count_missing(std::span<const RankSet> sets, std::uint32_t world,
                      std::span<const MessageTensor> tensors, std::size_t block_elements);

}  // namespace gradplane::peers
