// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/model/element_type.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::sim {

/// How ranks write what they contribute to a bucket, so that a sum shows who is in it: a rank has a
/// digit of the number. A digit is what the rank has submitted of this element and not yet seen in
/// a sum, never 0, so a digit of 0 says that the rank is not in.
///
/// A number has room for few digits. Where there are more ranks, the elements take turns: lanes()
/// elements next to each other carry the digits of all ranks, each of them those of per_lane()
/// ranks. A host enters a sum with whole blocks, so a block with that many elements shows all.
class Coding {
 public:
  enum class Layout : std::uint8_t {
    kEveryElement,  // every element shows every rank
    kSpread,        // the elements take turns
  };
  /// `submissions`: how many rounds may pile up in one digit (with Compensation::kCarry).
  Coding(ElementType type, std::uint32_t world, Compensation compensation,
         std::uint32_t submissions, Layout layout = Layout::kEveryElement);

  /// Whether the type holds every sum that can occur exactly.
  bool fits() const { return largest_ >= 1; }
  std::uint32_t lanes() const { return (world_ + per_lane_ - 1) / per_lane_; }
  std::uint32_t per_lane() const { return per_lane_; }
  std::uint32_t lane_of_element(std::uint32_t element) const { return element % lanes(); }
  /// The ranks of a lane, from the first to one past the last.
  std::uint32_t first_rank(std::uint32_t lane) const { return lane * per_lane_; }
  std::uint32_t end_rank(std::uint32_t lane) const {
    return std::min(world_, first_rank(lane) + per_lane_);
  }
  bool carries(std::uint32_t element, std::uint32_t rank) const {
    return lane_of_element(element) == rank / per_lane_;
  }
  /// What rank `rank` adds to its digit in a round: 1 to a small number. The element carries it.
  std::uint32_t digit(std::uint32_t round, std::uint32_t rank, std::uint32_t element) const;
  /// What a digit of a rank is worth.
  double worth(std::uint32_t rank) const {
    return static_cast<double>(std::uint64_t{1} << (bits_ * (rank % per_lane_)));
  }
  /// Digit `rank` of an unscaled sum.
  std::uint64_t digit_of(double sum, std::uint32_t rank) const {
    return static_cast<std::uint64_t>(sum) >> (bits_ * (rank % per_lane_)) &
           ((std::uint64_t{1} << bits_) - 1);
  }
  /// The largest unscaled sum, plus one.
  double limit() const { return static_cast<double>(std::uint64_t{1} << (bits_ * per_lane_)); }
  /// How far a scaled sum may be from the exact quotient, as a share of it.
  double rounding() const;

 private:
  void spread(Compensation compensation, std::uint32_t submissions);

  ElementType type_;
  std::uint32_t world_;
  std::uint32_t per_lane_;
  std::uint32_t bits_;
  std::uint32_t largest_ = 0;
};

}  // namespace gradplane::sim
