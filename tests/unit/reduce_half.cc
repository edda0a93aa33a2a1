// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/reduce/half.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/catch.h"

using namespace gradplane::reduce;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Returns the half that is nearest to `value`, found by trying all of them. Ties go to the even
/// pattern.
std::uint16_t nearest_half_by_search(float value) {
  std::uint16_t best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double distance = std::abs(std::abs(double{value}) - double{half_to_float(half)});
    if (distance < best_distance || (distance == best_distance && (half & 1) == 0)) {
      best = half;
      best_distance = distance;
    }
  }
  return static_cast<std::uint16_t>(best | (std::signbit(value) ? 0x8000 : 0));
}

}  // namespace

TEST_CASE("known halves have known values") {
  CHECK(half_to_float(0x0000) == 0.0f);
  CHECK(half_to_float(0x3c00) == 1.0f);
  CHECK(half_to_float(0xc000) == -2.0f);
  CHECK(half_to_float(0x7bff) == 65504.0f);
  CHECK(half_to_float(0x0001) == 0x1p-24f);
  CHECK(half_to_float(0x03ff) == 1023 * 0x1p-24f);
  CHECK(half_to_float(0x0400) == 0x1p-14f);
  CHECK(half_to_float(0x7c00) == kInfinity);
  CHECK(half_to_float(0xfc00) == -kInfinity);
  CHECK(std::isnan(half_to_float(0x7c01)));
  CHECK(std::signbit(half_to_float(0x8000)));
}

TEST_CASE("every half and every bfloat survives the way through fp32") {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const bool half_is_nan = (bits & 0x7fff) > 0x7c00;
    const bool bfloat_is_nan = (bits & 0x7fff) > 0x7f80;
    REQUIRE(float_to_half(half_to_float(pattern)) == (half_is_nan ? pattern | 0x200 : pattern));
    REQUIRE(float_to_bfloat(bfloat_to_float(pattern)) ==
            (bfloat_is_nan ? pattern | 0x40 : pattern));
  }
}

TEST_CASE("fp32 rounds to the nearest half, ties to even") {
  CHECK(float_to_half(1.0f + 0x1p-11f) == 0x3c00);             // a tie: down to even
  CHECK(float_to_half(1.0f + 3 * 0x1p-11f) == 0x3c02);         // a tie: up to even
  CHECK(float_to_half(1.0f + 0x1p-11f + 0x1p-23f) == 0x3c01);  // just above a tie
  CHECK(float_to_half(65519.0f) == 0x7bff);                    // just below the last tie
  CHECK(float_to_half(65520.0f) == 0x7c00);                    // overflow is infinity
  CHECK(float_to_half(0x1p-25f) == 0x0000);                    // a tie with zero
  CHECK(float_to_half(0x1.000002p-25f) == 0x0001);
  CHECK(float_to_half(-0x1p-26f) == 0x8000);     // zero keeps the sign
  CHECK(float_to_half(0x1.ffep-15f) == 0x0400);  // the smallest normal number
  CHECK(float_to_half(-kInfinity) == 0xfc00);
  CHECK(float_to_half(kNan) == 0x7e00);
  // If all payload bits of a NaN are cut off, it must not become infinity.
  CHECK(float_to_half(std::bit_cast<float>(0x7f800001u)) == 0x7e00);

  for (const float value : {0.1f, 3.14159f, 1e-5f, 5.9e-8f, 6.1e-5f, 60000.0f, 1234.5f, -0.7f}) {
    CHECK(float_to_half(value) == nearest_half_by_search(value));
  }
}

TEST_CASE("fp32 rounds to the nearest bfloat, ties to even") {
  CHECK(float_to_bfloat(1.0f) == 0x3f80);
  CHECK(float_to_bfloat(1.0f + 0x1p-8f) == 0x3f80);
  CHECK(float_to_bfloat(1.0f + 3 * 0x1p-8f) == 0x3f82);
  CHECK(float_to_bfloat(1.0f + 0x1p-8f + 0x1p-23f) == 0x3f81);
  CHECK(float_to_bfloat(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(float_to_bfloat(-kInfinity) == 0xff80);
  CHECK(float_to_bfloat(kNan) == 0x7fc0);
  CHECK(float_to_bfloat(std::bit_cast<float>(0x7f800001u)) == 0x7fc0);
  CHECK(float_to_bfloat(std::bit_cast<float>(0x7fffffffu)) == 0x7fff);
}
