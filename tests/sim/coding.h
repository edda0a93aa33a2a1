// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/model/element_type.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::sim {

/// How ranks write what they contribute to a bucket, so that a sum shows who is in it: rank r has
/// digit r of the number. A digit is what the rank has submitted of this element and not yet seen
/// in a sum, never 0, so a digit of 0 says that the rank is not in.
class Coding {
 public:
  /// `submissions`: how many rounds may pile up in one digit (with Compensation::kCarry).
  Coding(ElementType type, std::uint32_t world, Compensation compensation,
         std::uint32_t submissions);

  /// Whether the type holds every sum that can occur exactly.
  bool fits() const { return largest_ >= 1; }
  /// What rank `rank` adds to its digit in a round: 1 to a small number.
  std::uint32_t digit(std::uint32_t round, std::uint32_t rank, std::uint32_t element) const;
  /// What a digit of a rank is worth.
  double worth(std::uint32_t rank) const {
    return static_cast<double>(std::uint64_t{1} << (bits_ * rank));
  }
  /// Digit `rank` of an unscaled sum.
  std::uint64_t digit_of(double sum, std::uint32_t rank) const {
    return static_cast<std::uint64_t>(sum) >> (bits_ * rank) & ((std::uint64_t{1} << bits_) - 1);
  }
  /// The largest unscaled sum, plus one.
  double limit(std::uint32_t world) const { return worth(world); }
  /// How far a scaled sum may be from the exact quotient, as a share of it.
  double rounding() const;

 private:
  ElementType type_;
  std::uint32_t bits_;
  std::uint32_t largest_;
};

}  // namespace gradplane::sim
