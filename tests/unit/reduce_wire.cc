// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "dataplane/reduce/wire_codec.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::reduce;

namespace {

using Bytes = std::vector<std::byte>;

const std::byte* bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values)).data();
}

Bytes encoded(WireType type, const std::vector<float>& values) {
  Bytes wire(wire_bytes(type, ElementType::kFloat32, values.size()));
  encode(type, wire.data(), bytes_of(values), values.size());
  return wire;
}

std::vector<float> decoded(WireType type, const Bytes& wire, std::size_t count) {
  std::vector<float> values(count);
  decode(type, std::as_writable_bytes(std::span(values)).data(), wire.data(), count);
  return values;
}

std::vector<float> there_and_back(WireType type, const std::vector<float>& values) {
  return decoded(type, encoded(type, values), values.size());
}

bool holds(WireType type, const std::vector<float>& values) {
  return can_hold(type, bytes_of(values), values.size());
}

/// Returns the largest error of an element that rounding to nearest may make.
float most_error(WireType type, float value, float largest) {
  if (type == WireType::kInt8) return largest / 254 * 1.0001F;
  // The last place is 2^-7 of a bfloat's value and 2^-10 of a half's. The smallest half is 2^-24.
  if (type == WireType::kBfloat16) return std::abs(value) * 0x1p-8F;
  return std::max(std::abs(value) * 0x1p-11F, 0x1p-25F);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("a wire type rounds to nearest, and its error is what is left") {
  std::mt19937 random(41);
  std::normal_distribution<float> gradient(0, 0.02F);
  for (const WireType type : {WireType::kBfloat16, WireType::kFloat16, WireType::kInt8}) {
    std::vector<float> values(352);
    float largest = 0;
    for (float& v : values) {
      v = gradient(random);
      largest = std::max(largest, std::abs(v));
    }
    REQUIRE(holds(type, values));
    const Bytes wire = encoded(type, values);
    const std::vector<float> rounded = decoded(type, wire, values.size());
    std::vector<float> error(values.size());
    rounding_error(type, std::as_writable_bytes(std::span(error)).data(), bytes_of(values),
                   wire.data(), values.size());
    INFO(wire_type_name(type));
    for (std::size_t i = 0; i < values.size(); ++i) {
      CHECK(std::abs(error[i]) <= most_error(type, values[i], largest));
      // The sum is exact: rounded value and error are the value.
      CHECK(static_cast<double>(rounded[i]) + error[i] == static_cast<double>(values[i]));
    }
  }
}

TEST_CASE("ties go to the even neighbour") {
  CHECK(there_and_back(WireType::kBfloat16, {257, 259}) == std::vector<float>{256, 260});
  CHECK(there_and_back(WireType::kFloat16, {2049, 2051}) == std::vector<float>{2048, 2052});
  CHECK(there_and_back(WireType::kInt8, {127, 0.5F, 1.5F, -2.5F}) ==
        std::vector<float>{127, 0, 2, -2});
}

TEST_CASE("int8 is a scale and a byte for each element") {
  const Bytes wire = encoded(WireType::kInt8, {-254, 0, 127, 254});
  REQUIRE(wire.size() == 4 + 4);
  const std::vector<float> scale(1, 2);
  CHECK(std::equal(wire.begin(), wire.begin() + 4, bytes_of(scale)));
  CHECK(wire[4] == std::byte{0x81});  // -127
  CHECK(wire[5] == std::byte{0});
  CHECK(wire[6] == std::byte{64});  // 63.5
  CHECK(wire[7] == std::byte{127});
  CHECK(there_and_back(WireType::kInt8, std::vector<float>(9, 0)) == std::vector<float>(9, 0));
}

TEST_CASE("what a wire type would make infinite or nothing goes as it is") {
  for (const WireType type : {WireType::kBfloat16, WireType::kFloat16, WireType::kInt8}) {
    INFO(wire_type_name(type));
    CHECK(holds(type, {1, -2, 0}));
    CHECK_FALSE(holds(type, {1, kNan}));
    CHECK_FALSE(holds(type, {-kInfinity, 1}));
    const std::vector<float> good = {1, 2};
    CHECK(fitting(type, bytes_of(good), 2) == type);
    const std::vector<float> bad(40, kNan);
    CHECK(fitting(type, bytes_of(bad), bad.size()) == WireType::kElements);
  }
  CHECK(holds(WireType::kElements, {kNan, kInfinity}));
  // The largest half is 65504. 65520 is half way to the next power of two.
  CHECK(holds(WireType::kFloat16, {65519}));
  CHECK(there_and_back(WireType::kFloat16, {65519}) == std::vector<float>{65504});
  CHECK_FALSE(holds(WireType::kFloat16, {-65520}));
  CHECK(holds(WireType::kBfloat16, {0x1.fefffep127F}));
  CHECK(there_and_back(WireType::kBfloat16, {0x1.fefffep127F}) == std::vector<float>{0x1.fep127F});
  CHECK_FALSE(holds(WireType::kBfloat16, {0x1.ffp127F}));
  // A subnormal scale would be rounded itself.
  CHECK(holds(WireType::kInt8, {127 * 0x1p-126F}));
  CHECK_FALSE(holds(WireType::kInt8, {127 * 0x1p-127F}));
}

TEST_CASE("a block that two tensors share takes what serves both") {
  using enum WireType;
  for (const WireType type : kWireTypes) {
    CHECK(shared_wire_type(type, type) == type);
    CHECK(shared_wire_type(type, kElements) == kElements);
    CHECK(shared_wire_type(kElements, type) == kElements);
  }
  CHECK(shared_wire_type(kBfloat16, kInt8) == kBfloat16);
  CHECK(shared_wire_type(kInt8, kBfloat16) == kBfloat16);
  CHECK(shared_wire_type(kBfloat16, kFloat16) == kElements);
  CHECK(shared_wire_type(kFloat16, kInt8) == kElements);
}
