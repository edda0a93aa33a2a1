// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/peers/tolerant_sum.h"

#include <bit>
#include <limits>
#include <vector>

#include "tests/support/catch.h"

using namespace gradplane::peers;

namespace {

constexpr std::uint64_t kSeed = 1001;
constexpr std::size_t kIndex = 352;  // of the block's first element in its message
constexpr std::size_t kElements = 40;

/// The block that a root sends as the result for a set of ranks.
std::vector<float> sum_of(const RankCode& code, std::uint32_t world, RankSet set, bool rescaled) {
  std::vector<float> sum(kElements);
  std::vector<float> message(kIndex + kElements);
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    if (((set >> rank) & 1u) == 0) continue;
    code.fill(message, kSeed, rank);
    for (std::size_t i = 0; i < kElements; ++i) sum[i] += message[kIndex + i];
  }
  const int count = std::popcount(set);
  if (rescaled && count > 0) {
    for (float& element : sum) element *= static_cast<float>(world) / static_cast<float>(count);
  }
  return sum;
}

}  // namespace

TEST_CASE("a sum tells its ranks") {
  const std::uint32_t world = GENERATE(1u, 2u, 4u, 8u);
  const RankCode code(world, false);
  for (RankSet set = 0; set <= code.everyone(); ++set) {
    REQUIRE(code.ranks_in(sum_of(code, world, set, false), kSeed, kIndex) == set);
  }
}

TEST_CASE("a sum of many ranks tells them, too") {
  const RankCode code(kMaxCodedRanks, false);
  for (const RankSet set : {RankSet{1}, RankSet{0xabcde}, code.everyone()}) {
    CHECK(code.ranks_in(sum_of(code, kMaxCodedRanks, set, false), kSeed, kIndex) == set);
  }
  CHECK_THROWS(RankCode(kMaxCodedRanks + 1, false));
}

TEST_CASE("a scaled sum tells how many ranks are in it, and which unless two sets look alike") {
  const std::uint32_t world = GENERATE(1u, 2u, 4u, 8u);
  const RankCode code(world, true);
  std::size_t mistaken = 0;
  for (RankSet set = 0; set <= code.everyone(); ++set) {
    const auto found = code.ranks_in(sum_of(code, world, set, true), kSeed, kIndex);
    REQUIRE(found.has_value());
    if (*found == set) continue;
    ++mistaken;
    // Both sets have the same mean then.
    REQUIRE(std::popcount(*found) > std::popcount(set));
    REQUIRE(*found * static_cast<RankSet>(std::popcount(set)) ==
            set * static_cast<RankSet>(std::popcount(*found)));
  }
  CHECK(mistaken <= code.everyone() / 16);
}

TEST_CASE("sets that look alike after scaling are told apart by how many ranks they have") {
  const RankCode code(8, true);
  for (const RankSet set : {RankSet{0b10100110}, RankSet{0b11111001}}) {
    const auto sum = sum_of(code, 8, set, true);
    const auto ranks = static_cast<std::uint32_t>(std::popcount(set));
    CHECK(code.ranks_in(sum, kSeed, kIndex, ranks) == set);
    CHECK(code.ranks_in(sum, kSeed, kIndex, ranks + 1) == std::nullopt);
    CHECK(code.ranks_in(sum, kSeed, kIndex) == RankSet{0b11111001});
  }
}

TEST_CASE("what is no sum is seen") {
  const bool rescaled = GENERATE(false, true);
  const RankCode code(4, rescaled);
  auto block = sum_of(code, 4, 0b1011, rescaled);
  REQUIRE(code.ranks_in(block, kSeed, kIndex) == RankSet{0b1011});
  SECTION("one element of another set") {
    block[7] = sum_of(code, 4, 0b1111, rescaled)[7];
  }
  SECTION("a rank that entered twice") {
    const auto twice = sum_of(code, 4, 0b1000, false);
    for (std::size_t i = 0; i < kElements; ++i) block[i] += twice[i];
  }
  SECTION("an element that is a little off") {
    block[kElements - 1] += 1;
  }
  SECTION("an element that is no number") {
    block[GENERATE(0u, 3u)] = std::numeric_limits<float>::quiet_NaN();
  }
  SECTION("an element of the block before") {
    block.insert(block.begin(), 1, 5.0F);
  }
  CHECK(code.ranks_in(block, kSeed, kIndex) == std::nullopt);
}

TEST_CASE("data of another seed or place is seen") {
  const RankCode code(4, false);
  const auto block = sum_of(code, 4, 0b1111, false);
  CHECK(code.ranks_in(block, kSeed + 1, kIndex) == std::nullopt);
  CHECK(code.ranks_in(block, kSeed, kIndex + 1) == std::nullopt);
}

TEST_CASE("the tensors of a message lie one behind the other, whole in the slices together") {
  for (const std::size_t elements : {1ul, 8191ul, 8192ul, 262144ul, 5000000ul}) {
    const auto tensors = tensors_of(elements);
    std::size_t end = 0;
    for (const auto& t : tensors) {
      REQUIRE(t.offset_elements == end);
      REQUIRE(t.elements > 0);
      end += t.elements;
    }
    REQUIRE(end == elements);
    std::size_t sliced = 0;
    for (std::size_t offset = 0; offset < elements; offset += 1000000) {
      const std::size_t size = std::min(elements - offset, std::size_t{1000000});
      std::size_t slice_end = 0;
      for (const auto& t : tensors_within(tensors, offset, size)) {
        REQUIRE(t.offset_elements == slice_end);
        slice_end += t.elements;
      }
      REQUIRE(slice_end == size);
      sliced += slice_end;
    }
    REQUIRE(sliced == elements);
  }
}

TEST_CASE("what is missing is counted per block, rank and tensor") {
  const std::vector<RankSet> sets = {0b11, 0b01, 0b11, 0b00};
  const std::vector<MessageTensor> tensors = {{"a", 0, 15}, {"b", 15, 20}};
  Missing found = count_missing(sets, 2, tensors, 10);
  CHECK(found.missing_count == 3);
  CHECK(found.expected_count == 8);
  CHECK(found.partial_blocks == 2);
  CHECK(found.worst_share == 2.0 / 3);  // rank 1 lacks blocks 1 and 3 of b's three
  found.add(count_missing(std::vector<RankSet>{0b11}, 2, {}, 10));
  CHECK(found.missing_count == 3);
  CHECK(found.expected_count == 10);
  CHECK(found.worst_share == 2.0 / 3);
}
