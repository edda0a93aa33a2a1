// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/coding.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gradplane::sim {
namespace {

/// The number of bits of integers that a type represents without gaps.
std::uint32_t exact_bits(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return 24;
    case ElementType::kFloat16:
      return 11;
    case ElementType::kBfloat16:
      return 8;
    case ElementType::kInt32:
      return 31;
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return 53;
  }
  return 0;
}

constexpr std::uint32_t kMaxDigitBits = 12;
constexpr std::uint32_t kLargestDigit = 7;
// For Layout::kSpread.
constexpr std::uint32_t kSmallDigit = 2;
constexpr std::uint32_t kSpreadBits = 3;
/// Bits of a type that scaled sums leave free for rounding errors.
constexpr std::uint32_t kRoundingBits = 4;

}  // namespace

Coding::Coding(ElementType type, std::uint32_t world, Compensation compensation,
               std::uint32_t submissions, Layout layout)
    : type_(type),
      world_(world),
      per_lane_(world),
      bits_(std::min(exact_bits(type) / world, kMaxDigitBits)) {
  if (layout == Layout::kSpread) {
    spread(compensation, submissions);
    return;
  }
  // Scaled sums of two sets of ranks differ as long as no digit, multiplied by a number of ranks,
  // carries into the next digit.
  std::uint32_t piled = 1;
  if (compensation == Compensation::kCarry) piled = std::max(submissions, 1U);
  if (compensation == Compensation::kRescale) piled = world;
  largest_ = std::min(((1U << bits_) - 1) / piled, kLargestDigit);
}

/// Makes digits as small as possible, so that few elements show all ranks. A scaled sum must be
/// right to less than half, because decoding tries sets of ranks until one fits all lanes.
void Coding::spread(Compensation compensation, std::uint32_t submissions) {
  const bool carry = compensation == Compensation::kCarry;
  const std::uint32_t kept_free = compensation == Compensation::kRescale ? kRoundingBits : 0;
  const std::uint32_t piled = carry ? std::max(submissions, 1U) : 1;
  bits_ = carry ? static_cast<std::uint32_t>(std::bit_width(kSmallDigit * piled)) : kSpreadBits;
  per_lane_ = std::clamp((exact_bits(type_) - kept_free) / bits_, 1U, world_);
  largest_ = std::min(((1U << bits_) - 1) / piled, kLargestDigit);
}

std::uint32_t Coding::digit(std::uint32_t round, std::uint32_t rank, std::uint32_t element) const {
  const std::uint32_t mixed = (element * 2654435761U) ^ (round * 40503U + rank * 9973U);
  return 1 + (mixed >> 7) % largest_;
}

double Coding::rounding() const {
  return std::ldexp(1.0, 2 - static_cast<int>(exact_bits(type_)));
}

}  // namespace gradplane::sim
