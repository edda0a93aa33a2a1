// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <random>
#include <vector>

#include "dataplane/aggregate/bucket.h"
#include "tests/support/catch.h"

using namespace gradplane;
using aggregate::TensorBound;
using aggregate::TensorMap;

namespace {

std::vector<std::size_t> tensors_in(const TensorMap& map, std::uint32_t block) {
  std::vector<std::size_t> out;
  map.for_each_in(block, [&](std::size_t t) { out.push_back(t); });
  return out;
}

}  // namespace

TEST_CASE("a block knows the tensors that lie in it, and whether they fill it") {
  // Blocks have 128 elements. Tensor a is in block 0, b in 0 to 2, c in 2 behind a gap of 10, and d
  // in 3.
  const Geometry g = Geometry::of(ElementType::kFloat32, 400, 512, 1);
  const TensorMap map(g, {{0, 100, 0}, {100, 200, 0}, {310, 74, 0}, {384, 16, 0}});
  CHECK(tensors_in(map, 0) == std::vector<std::size_t>{0, 1});
  CHECK(tensors_in(map, 1) == std::vector<std::size_t>{1});
  CHECK(tensors_in(map, 2) == std::vector<std::size_t>{1, 2});
  CHECK(tensors_in(map, 3) == std::vector<std::size_t>{3});
  // Block 1 has only elements of b, the only tensor of more than one block. Blocks 0 and 3 hold a
  // part of a tensor that is exact under any bound. Block 2 also holds elements of no tensor.
  CHECK(map.is_always_critical(0));
  CHECK_FALSE(map.is_always_critical(1));
  CHECK(map.is_always_critical(2));
  CHECK(map.is_always_critical(3));
  REQUIRE(map.wide_count() == 1);
  CHECK(map.tensor_of_wide(0) == 1);
  CHECK(map.first_wide_in({1, 3}) == 0);
  CHECK(map.end_wide_in({1, 3}) == 1);
  CHECK(map.first_wide_in({3, 4}) == 1);
  CHECK(map.blocks_in(1, {1, 2}) == 1);
  CHECK(map.blocks_in(3, {0, 3}) == 0);
}

TEST_CASE("roots that share a tensor never let more be missing than its bound, nor less") {
  std::mt19937 generator(5);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  for (int n = 0; n < 200; ++n) {
    const std::uint32_t blocks = 1 + random() % 500;
    const Geometry g = Geometry::of(ElementType::kFloat32, blocks * 128, 512, 1);
    const std::uint32_t begin = (random() % blocks) * 128;
    const std::uint32_t elements = 1 + random() % (blocks * 128 - begin);
    const float bound = static_cast<float>(random() % 51) / 100;
    const TensorMap map(g, {{begin, elements, bound}});
    std::uint32_t sum = 0;
    for (std::uint32_t at = 0; at < blocks;) {
      const std::uint32_t end = std::min(blocks, at + 1 + random() % 90);
      sum += map.allowance_in(0, bound, {at, end});
      at = end;
    }
    CHECK(sum == map.allowance(0, bound));
    CHECK(static_cast<float>(sum) <= bound * static_cast<float>(map.blocks(0).size()));
  }
}

TEST_CASE("critical blocks hold something of an exact tensor, of one too small, or of none") {
  const Geometry g = Geometry::of(ElementType::kFloat32, 20 * 128, 512, 1);
  // Blocks 0 to 4 are exact. A tenth of 5 to 14 is one block. A tenth of 15 to 18 is less than one.
  // Block 19 belongs to no tensor.
  const aggregate::Bucket bucket({.geometry = g,
                                  .tensors = {{0, 640, 0}, {640, 1280, 0.1F}, {1920, 512, 0.1F}},
                                  .gathered = {},
                                  .limits = {},
                                  .keeps_residual = false});
  for (std::uint32_t b = 0; b < 20; ++b) {
    CAPTURE(b);
    CHECK(bucket.is_critical(b) == (b < 5 || b >= 15));
  }
}

TEST_CASE("a residual gives back what it kept, once, and nothing that is not finite") {
  const Geometry g = Geometry::of(ElementType::kFloat32, 300, 512, 1);
  aggregate::Residual residual(g);
  const std::vector<float> one(128, 1.5F);
  const std::vector<float> two(128, 2.0F);
  const auto bytes = [](const std::vector<float>& v) {
    return reinterpret_cast<const std::byte*>(v.data());
  };
  const std::array<const std::byte*, 2> parts = {bytes(one), bytes(two)};
  CHECK(residual.keep(1, parts));
  CHECK(residual.has(1));
  CHECK_FALSE(residual.has(0));
  std::vector<float> gradient(128, 10.0F);
  residual.move_to(1, reinterpret_cast<std::byte*>(gradient.data()));
  CHECK(gradient == std::vector<float>(128, 13.5F));
  CHECK_FALSE(residual.has(1));

  std::vector<float> broken(128, 1.0F);
  broken[77] = std::numeric_limits<float>::infinity();
  const std::array<const std::byte*, 1> bad = {bytes(broken)};
  CHECK_FALSE(residual.keep(1, bad));
  CHECK_FALSE(residual.has(1));
  CHECK(residual.next(0) == Bitmap::kNone);
}

TEST_CASE("a tensor whose bound is learned is not critical, though it begins at nothing") {
  const Geometry g = Geometry::of(ElementType::kFloat32, 10 * 128, 512, 1);
  const aggregate::Bucket bucket({.geometry = g,
                                  .tensors = {{0, 1280, 0, true}},
                                  .gathered = {},
                                  .limits = {},
                                  .keeps_residual = false});
  for (std::uint32_t b = 0; b < 10; ++b) CHECK_FALSE(bucket.is_critical(b));
}

TEST_CASE("an infinite gradient does not end the measurement of a tensor's noise") {
  const Geometry g = Geometry::of(ElementType::kFloat32, 10 * 128, 512, 1);
  aggregate::Bucket bucket({.geometry = g,
                            .tensors = {{0, 1280, 0.1F}},
                            .gathered = {},
                            .limits = {},
                            .keeps_residual = false});
  bucket.add_part(4, std::numeric_limits<double>::infinity());
  bucket.end_parts(4, std::numeric_limits<double>::infinity());
  CHECK(bucket.part_energy(0) == 0);
  bucket.add_part(5, 3);
  bucket.end_parts(5, 2);
  CHECK(bucket.part_energy(0) == 3);
  CHECK(bucket.sum_energy(0) == 2);
}

TEST_CASE("a block takes a wire type that serves all its tensors") {
  using enum WireType;
  const auto types = [](const std::vector<aggregate::TensorBound>& tensors,
                        ElementType type = ElementType::kFloat32) {
    return aggregate::wire_types_of(Geometry::of(type, 4 * 128 + 1, 512, 1), tensors);
  };
  const auto tensor = [](std::uint32_t offset, std::uint32_t elements, WireType wire) {
    return aggregate::TensorBound{.offset_elements = offset, .elements = elements, .wire = wire};
  };
  using Types = std::vector<WireType>;
  // Blocks end at 128, 256, 384, 512 and 513. A block of a single element is larger as int8.
  CHECK(types({tensor(0, 513, kInt8)}) == Types{kInt8, kInt8, kInt8, kInt8, kElements});
  CHECK(types({tensor(0, 513, kFloat16)}) == Types(5, kFloat16));
  CHECK(types({tensor(0, 130, kBfloat16), tensor(130, 200, kInt8), tensor(330, 183, kElements)}) ==
        Types{kBfloat16, kBfloat16, kElements, kElements, kElements});
  CHECK(types({tensor(0, 10, kInt8), tensor(10, 503, kFloat16)}) ==
        Types{kElements, kFloat16, kFloat16, kFloat16, kFloat16});
  // Blocks with elements of no tensor go as they are.
  CHECK(types({tensor(1, 299, kFloat16), tensor(300, 213, kFloat16)}) ==
        Types{kElements, kFloat16, kFloat16, kFloat16, kFloat16});
  CHECK(types({tensor(0, 513, kElements)}).empty());
  CHECK(types({tensor(0, 258, kBfloat16)}, ElementType::kFloat16).empty());
}
