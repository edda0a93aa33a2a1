// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/reduce/wire_codec.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "dataplane/reduce/variants.h"

namespace gradplane::reduce {
namespace {

/// From these magnitudes on, rounding to nearest gives infinity.
constexpr std::uint32_t kBeyondBfloat16 = 0x7f7f8000;
constexpr std::uint32_t kBeyondFloat16 = 0x477ff000;
constexpr std::uint32_t kInfinity = 0x7f800000;

/// The smallest magnitude with a normal scale.
constexpr auto kSmallestInt8 =
    std::bit_cast<std::uint32_t>(kLargestInt8 * std::numeric_limits<float>::min());

}  // namespace

bool can_hold(WireType wire, const std::byte* elements, std::size_t count) noexcept {
  if (wire == WireType::kElements) return true;
  const std::uint32_t largest = largest_magnitude(elements, count);
  switch (wire) {
    case WireType::kElements:
      break;
    case WireType::kBfloat16:
      return largest < kBeyondBfloat16;
    case WireType::kFloat16:
      return largest < kBeyondFloat16;
    case WireType::kInt8:
      return largest == 0 || (largest >= kSmallestInt8 && largest < kInfinity);
  }
  return true;
}

void rounding_error(WireType wire, std::byte* error, const std::byte* elements,
                    const std::byte* bytes, std::size_t count) noexcept {
  decode(wire, error, bytes, count);
  for (std::size_t i = 0; i < count; ++i) {
    float exact = 0;
    float rounded = 0;
    std::memcpy(&exact, elements + i * sizeof exact, sizeof exact);
    std::memcpy(&rounded, error + i * sizeof rounded, sizeof rounded);
    const float left = exact - rounded;
    std::memcpy(error + i * sizeof left, &left, sizeof left);
  }
}

}  // namespace gradplane::reduce
