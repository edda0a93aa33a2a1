// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/peers/tolerant_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace gradplane::peers {
namespace {

constexpr std::uint32_t kExactBits = 24;  // of fp32
constexpr std::uint32_t kMaxFactorBits = 12;
constexpr std::uint32_t kIndexFactor = 2654435761U;
constexpr std::uint32_t kSeedFactor = 40503U;
/// Both the factor and the product are rounded to fp32, each within 2^-24.
constexpr double kRescaleTolerance = 0x1p-22;
constexpr std::size_t kLayers = 6;
constexpr std::size_t kBiasElements = 64;
/// A shorter message is one tensor.
constexpr std::size_t kMinLayered = 8192;
static_assert(kMinLayered >> kLayers >= 2 * kBiasElements);

}  // namespace

RankCode::RankCode(std::uint32_t world, bool rescaled)
    : world_(world),
      factor_bits_(std::min(kMaxFactorBits, kExactBits - world)),
      rescaled_(rescaled) {
  if (world == 0 || world > kMaxCodedRanks) {
    throw std::runtime_error("1 to " + std::to_string(kMaxCodedRanks) + " ranks, not " +
                             std::to_string(world));
  }
}

/// 1 to 2^factor_bits_.
std::uint32_t RankCode::factor(std::uint64_t seed, std::size_t index) const {
  const auto mixed = static_cast<std::uint32_t>(seed) * kSeedFactor +
                     static_cast<std::uint32_t>(index) * kIndexFactor;
  return (mixed >> (32 - factor_bits_)) + 1;
}

void RankCode::fill(std::span<float> data, std::uint64_t seed, std::uint32_t rank) const {
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<float>(std::uint64_t{factor(seed, i)} << rank);
  }
}

std::optional<RankSet> RankCode::ranks_in(std::span<const float> block, std::uint64_t seed,
                                          std::size_t first_index,
                                          std::optional<std::uint32_t> known) const {
  const double coded = static_cast<double>(block[0]) / factor(seed, first_index);
  if (!rescaled_) {
    const bool possible = coded >= 0 && coded <= everyone();
    const auto set = possible ? static_cast<RankSet>(coded) : 0;
    return possible && holds(block, seed, first_index, set) ? std::optional(set) : std::nullopt;
  }
  for (std::uint32_t count = known.value_or(world_); count > 0; --count) {
    if (known && count != *known) break;
    const double scaled_back = std::round(coded * count / world_);
    if (!(scaled_back >= 1 && scaled_back <= everyone())) continue;
    const auto set = static_cast<RankSet>(scaled_back);
    if (holds(block, seed, first_index, set)) return set;
  }
  return holds(block, seed, first_index, 0) ? std::optional(RankSet{0}) : std::nullopt;
}

bool RankCode::holds(std::span<const float> block, std::uint64_t seed, std::size_t first_index,
                     RankSet set) const {
  const bool scaled = rescaled_ && set != 0 && set != everyone();
  const double scale = scaled ? static_cast<double>(world_) / std::popcount(set) : 1;
  const double tolerance = scaled ? kRescaleTolerance : 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const double expected = static_cast<double>(set) * factor(seed, first_index + i) * scale;
    // Written so that NaN is wrong, too.
    if (!(std::abs(block[i] - expected) <= tolerance * expected)) return false;
  }
  return true;
}

std::vector<MessageTensor> tensors_of(std::size_t elements) {
  if (elements < kMinLayered) return {{"layer1.weight", 0, elements}};
  std::vector<MessageTensor> tensors;
  std::size_t offset = 0;
  for (std::size_t layer = 1; layer <= kLayers; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    const std::size_t end =
        layer == kLayers ? elements : offset + (elements >> (kLayers + 1 - layer));
    tensors.push_back({name + ".weight", offset, end - offset - kBiasElements});
    tensors.push_back({name + ".bias", end - kBiasElements, kBiasElements});
    offset = end;
  }
  return tensors;
}

std::vector<MessageTensor> tensors_within(std::span<const MessageTensor> tensors,
                                          std::size_t offset_elements, std::size_t elements) {
  std::vector<MessageTensor> found;
  for (const MessageTensor& t : tensors) {
    const std::size_t from = std::max(offset_elements, t.offset_elements);
    const std::size_t to = std::min(offset_elements + elements, t.offset_elements + t.elements);
    if (from < to) found.push_back({t.name, from - offset_elements, to - from});
  }
  return found;
}

void Missing::add(const Missing& other) {
  missing_count += other.missing_count;
  expected_count += other.expected_count;
  partial_blocks += other.partial_blocks;
  worst_share = std::max(worst_share, other.worst_share);
}

Missing count_missing(std::span<const RankSet> sets, std::uint32_t world,
                      std::span<const MessageTensor> tensors, std::size_t block_elements) {
  Missing found;
  found.expected_count = std::uint64_t{world} * sets.size();
  for (const RankSet set : sets) {
    const auto missing = world - static_cast<std::uint32_t>(std::popcount(set));
    found.missing_count += missing;
    found.partial_blocks += missing > 0 ? 1 : 0;
  }
  for (const MessageTensor& t : tensors) {
    const std::size_t begin = t.offset_elements / block_elements;
    const std::size_t end = (t.offset_elements + t.elements - 1) / block_elements + 1;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      std::size_t missing = 0;
      for (std::size_t b = begin; b < end; ++b) missing += ((sets[b] >> rank) & 1u) == 0 ? 1 : 0;
      found.worst_share = std::max(found.worst_share,
                                   static_cast<double>(missing) / static_cast<double>(end - begin));
    }
  }
  return found;
}

}  // namespace gradplane::peers
