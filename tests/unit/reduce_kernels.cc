// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/reduce/kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::reduce;

namespace {

/// Reduces `contributions` of one element as a gathering node does.
template <typename Wire, std::size_t kCount>
Wire reduce_with(const Kernels& kernels, const std::array<Wire, kCount>& contributions) {
  std::array<std::byte, 8> accumulator{};
  kernels.set(accumulator.data(), std::as_bytes(std::span(contributions)).data(), 1);
  for (std::size_t i = 1; i < kCount; ++i) {
    kernels.accumulate(accumulator.data(),
                       std::as_bytes(std::span(contributions)).data() + i * sizeof(Wire), 1);
  }
  std::array<Wire, 1> result{};
  kernels.finish(std::as_writable_bytes(std::span(result)).data(), accumulator.data(), 1);
  return result[0];
}

template <typename Wire, std::size_t kCount>
Wire sum(ElementType type, const std::array<Wire, kCount>& contributions) {
  return reduce_with(kScalar.kernels_for(type), contributions);
}

template <typename Wire, std::size_t kCount>
Wire reduced(Reduction reduction, ElementType type, const std::array<Wire, kCount>& contributions) {
  return reduce_with(kernels_for(type, reduction), contributions);
}

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

}  // namespace

TEST_CASE("contributions add up") {
  CHECK(sum(ElementType::kFloat32, std::array{1.5f, 2.25f, -4.0f}) == -0.25f);
  CHECK(sum(ElementType::kFloat64, std::array{1.5, 2.25, 1e-9}) == 3.75 + 1e-9);
  CHECK(sum(ElementType::kInt32, std::array{3, -5, 7}) == 5);
  CHECK(sum(ElementType::kInt64, std::array{std::int64_t{1} << 40, std::int64_t{2}}) ==
        (std::int64_t{1} << 40) + 2);
}

TEST_CASE("integers wrap") {
  CHECK(sum(ElementType::kInt32, std::array{INT32_MAX, 1}) == INT32_MIN);
  CHECK(sum(ElementType::kInt64, std::array{INT64_MIN, std::int64_t{-1}}) == INT64_MAX);
}

TEST_CASE("half precision is rounded once, at the end") {
  // No half has the value 2049. In half precision each 1 would be lost, and the sum would be 2048.
  const auto h2048 = std::uint16_t{0x6800};
  const auto h1 = std::uint16_t{0x3c00};
  CHECK(sum(ElementType::kFloat16, std::array{h2048, h1, h1}) == 0x6801);  // 2050
  // In bfloat: 256 + 1 + 1 = 258.
  const auto b256 = std::uint16_t{0x4380};
  const auto b1 = std::uint16_t{0x3f80};
  CHECK(sum(ElementType::kBfloat16, std::array{b256, b1, b1}) == 0x4381);
}

TEST_CASE("a half that overflows only on the way comes back") {
  const auto h60000 = std::uint16_t{0x7b53};
  const auto minus = std::uint16_t{0xfb53};
  CHECK(sum(ElementType::kFloat16, std::array{h60000, h60000, minus}) == h60000);
}

TEST_CASE("what is not a number stays so, as one bit pattern") {
  const float inf = std::numeric_limits<float>::infinity();
  const float payload = std::bit_cast<float>(0xff812345u);
  CHECK(std::bit_cast<std::uint32_t>(sum(ElementType::kFloat32, std::array{inf, -inf})) ==
        0x7fc00000u);
  CHECK(std::bit_cast<std::uint32_t>(sum(ElementType::kFloat32, std::array{payload, 1.0f})) ==
        0x7fc00000u);
  CHECK(std::bit_cast<std::uint32_t>(sum(ElementType::kFloat32, std::array{1.0f, payload})) ==
        0x7fc00000u);
  CHECK(sum(ElementType::kFloat32, std::array{inf, 1.0f}) == inf);
  CHECK(sum(ElementType::kFloat16, std::array{std::uint16_t{0x7c01}, std::uint16_t{0x3c00}}) ==
        0x7e00);
}

TEST_CASE("the largest, the smallest and the product of each type") {
  using enum Reduction;
  constexpr std::array kFloats{1.5f, -4.0f, 2.25f};
  CHECK(reduced(kMax, ElementType::kFloat32, kFloats) == 2.25f);
  CHECK(reduced(kMin, ElementType::kFloat32, kFloats) == -4.0f);
  CHECK(reduced(kProduct, ElementType::kFloat32, kFloats) == -13.5f);
  constexpr std::array kDoubles{1e-9, 3.0, -2.0};
  CHECK(reduced(kMax, ElementType::kFloat64, kDoubles) == 3);
  CHECK(reduced(kMin, ElementType::kFloat64, kDoubles) == -2);
  CHECK(reduced(kProduct, ElementType::kFloat64, kDoubles) == 1e-9 * 3 * -2);
  CHECK(reduced(kMax, ElementType::kInt32, std::array{INT32_MIN, -1, -7}) == -1);
  CHECK(reduced(kMin, ElementType::kInt32, std::array{5, -1, INT32_MIN}) == INT32_MIN);
  CHECK(reduced(kProduct, ElementType::kInt32, std::array{INT32_MAX, 2, 3}) == -6);
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;
  CHECK(reduced(kMax, ElementType::kInt64, std::array{-kLarge, kLarge}) == kLarge);
  CHECK(reduced(kMin, ElementType::kInt64, std::array{-kLarge, kLarge}) == -kLarge);
  CHECK(reduced(kProduct, ElementType::kInt64, std::array{kLarge, std::int64_t{-5}}) ==
        -5 * kLarge);
  // 1, -2 and 3 as halves, and then as bfloats.
  constexpr std::array<std::uint16_t, 3> kHalves{0x3c00, 0xc000, 0x4200};
  CHECK(reduced(kMax, ElementType::kFloat16, kHalves) == 0x4200);
  CHECK(reduced(kMin, ElementType::kFloat16, kHalves) == 0xc000);
  CHECK(reduced(kProduct, ElementType::kFloat16, kHalves) == 0xc600);
  constexpr std::array<std::uint16_t, 3> kBfloats{0x3f80, 0xc000, 0x4040};
  CHECK(reduced(kMax, ElementType::kBfloat16, kBfloats) == 0x4040);
  CHECK(reduced(kMin, ElementType::kBfloat16, kBfloats) == 0xc000);
  CHECK(reduced(kProduct, ElementType::kBfloat16, kBfloats) == 0xc0c0);
}

TEST_CASE("the largest and the smallest do not depend on the order of the contributions") {
  const float nan = std::bit_cast<float>(0xff812345u);
  const float inf = std::numeric_limits<float>::infinity();
  const std::array values{0.0f, -0.0f, nan, inf, -inf, 1.0f};
  for (const Reduction reduction : {Reduction::kMax, Reduction::kMin}) {
    for (const float a : values) {
      for (const float b : values) {
        CAPTURE(reduction_name(reduction), a, b);
        const auto found = bits(reduced(reduction, ElementType::kFloat32, std::array{a, b}));
        CHECK(found == bits(reduced(reduction, ElementType::kFloat32, std::array{b, a})));
        if (a != a || b != b) CHECK(found == 0x7fc00000u);
      }
    }
  }
  CHECK(bits(reduced(Reduction::kMax, ElementType::kFloat32, std::array{-0.0f, 0.0f})) == 0);
  CHECK(bits(reduced(Reduction::kMin, ElementType::kFloat32, std::array{0.0f, -0.0f})) ==
        0x80000000u);
  CHECK(bits(reduced(Reduction::kProduct, ElementType::kFloat32, std::array{0.0f, inf})) ==
        0x7fc00000u);
}

TEST_CASE("two contributions at once give the bits of one after the other") {
  // The bytes contain numbers, infinities and NaNs.
  constexpr std::size_t kCount = 131;  // whole vectors and some more elements
  std::array<std::byte, kCount * 8> first, second;
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i] = static_cast<std::byte>(i * 167 + i / 7);
    second[i] = static_cast<std::byte>(i * 59 + i / 3);
  }
  std::fill_n(first.begin(), 16, std::byte{0xff});
  std::fill_n(second.begin() + 24, 16, std::byte{0xff});
  const auto check = [&](const Kernels& kernels) {
    std::array<std::byte, kCount * 8> one_by_one{}, at_once{};
    kernels.set(one_by_one.data(), first.data(), kCount);
    kernels.accumulate(one_by_one.data(), second.data(), kCount);
    kernels.add(at_once.data(), first.data(), second.data(), kCount);
    CHECK(at_once == one_by_one);
  };
  for (const ElementType type : kElementTypes) {
    for (const Variant* variant : supported_variants()) {
      CAPTURE(variant->name, element_type_name(type));
      check(variant->kernels_for(type));
    }
    for (const Reduction reduction : kReductions) {
      CAPTURE(reduction_name(reduction), element_type_name(type));
      check(kernels_for(type, reduction));
    }
  }
}

TEST_CASE("a variant is chosen once and is the fastest that runs here") {
  const auto variants = supported_variants();
  REQUIRE(!variants.empty());
  CHECK(variants.front() == &kScalar);
  for (const ElementType type : kElementTypes) {
    CHECK(&kernels_for(type) == &variants.back()->kernels_for(type));
    CHECK(&kernels_for(type) == &kernels_for(type));
  }
}
