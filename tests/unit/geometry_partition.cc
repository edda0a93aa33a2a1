// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/model/geometry.h"
#include "dataplane/model/limits.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

/// Returns whether the trees' ranges of a round cover each of `blocks` blocks exactly once, and
/// whether no range is larger than the memory for it.
bool partitions(const std::vector<std::uint64_t>& weights, std::uint32_t round,
                std::uint32_t blocks, std::uint32_t most_blocks) {
  std::vector<WeightShare> shares;
  std::uint64_t total = 0;
  for (const std::uint64_t weight : weights) {
    shares.push_back({total, weight});
    total += weight;
  }
  std::vector<int> covered(blocks);
  for (const WeightShare& share : shares) {
    const BlockRange range =
        blocks_of_tree(share, shares[round % shares.size()].begin, total, blocks);
    if (range.end > blocks || range.begin > range.end) return false;
    if (range.size() > max_blocks_of_tree(share.weight, total, most_blocks)) return false;
    for (std::uint32_t b = range.begin; b < range.end; ++b) ++covered[b];
  }
  for (const int times : covered) {
    if (times != 1) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the trees carry every block once, for all small weights, rounds and sizes") {
  constexpr std::uint32_t kMax = 17;
  std::vector<std::vector<std::uint64_t>> all;
  for (std::uint64_t a = 1; a <= 4; ++a) {
    all.push_back({a});
    for (std::uint64_t b = 1; b <= 4; ++b) {
      all.push_back({a, b});
      for (std::uint64_t c = 1; c <= 4; ++c) {
        all.push_back({a, b, c});
        for (std::uint64_t d = 1; d <= 4; ++d) all.push_back({a, b, c, d});
      }
    }
  }
  for (const auto& weights : all) {
    for (std::uint32_t round = 0; round < 5; ++round) {
      for (std::uint32_t blocks = 1; blocks <= kMax; ++blocks) {
        if (!partitions(weights, round, blocks, kMax)) {
          FAIL("weights of " << weights.size() << " trees, round " << round << ", blocks "
                             << blocks);
        }
      }
    }
  }
  CHECK(all.size() == 340);
}

TEST_CASE("the largest weights and rounds still partition") {
  const std::vector<std::uint64_t> heavy(kMaxTrees, 0xffff'ffff);
  CHECK(partitions(heavy, 0xffff'ffff, kMaxBlocksPerRound, kMaxBlocksPerRound));
  std::vector<std::uint64_t> uneven(kMaxTrees, 1);
  uneven[3] = 0xffff'ffff;
  CHECK(partitions(uneven, 7, kMaxBlocksPerRound, kMaxBlocksPerRound));
}

TEST_CASE("a bucket of one block is not always the same tree's") {
  int first_tree = 0;
  for (std::uint32_t round = 0; round < 4; ++round) {
    first_tree += blocks_of_tree({0, 1}, round % 2, 2, 1).size() == 1 ? 1 : 0;
  }
  CHECK(first_tree == 2);
}

TEST_CASE("blocks cut a bucket without splitting an element") {
  for (const ElementType type : kElementTypes) {
    for (const std::size_t block_bytes : {kMinBlockBytes, kDefaultBlockBytes, kMaxBlockBytes}) {
      for (const std::uint32_t elements : {1U, 255U, 256U, 257U, 100'000U}) {
        const Geometry g = Geometry::of(type, elements, block_bytes);
        std::uint32_t sum = 0;
        std::size_t offset = 0;
        for (std::uint32_t b = 0; b < g.blocks; ++b) {
          REQUIRE(g.offset_bytes(b) == offset);
          REQUIRE(g.elements_in(b) > 0);
          REQUIRE(g.bytes_in(b) <= block_bytes);
          offset += g.bytes_in(b);
          sum += g.elements_in(b);
        }
        CHECK(sum == elements);
      }
    }
  }
}
