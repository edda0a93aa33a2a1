// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/model/element_type.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::sim {

/// How ranks encode contributions to a bucket, so that a sum shows which ranks are in it. Each rank
/// has one digit of the number. The digit counts what the rank has submitted of this element and
/// has not yet seen in a sum. A rank's digit is never 0, so a 0 in a sum says that the rank is
/// missing.
///
/// A number has room for few digits. If there are more ranks, elements take turns: each of lanes()
/// adjacent elements has the digits of per_lane() ranks, and together they have those of all ranks.
/// A host enters a sum with whole blocks, so a block with at least lanes() elements shows every
/// rank.
class Coding {
 public:
  enum class Layout : std::uint8_t {
    kEveryElement,  // every element shows every rank
    kSpread,        // each rank is in one of lanes() adjacent elements
  };
  /// `submissions`: how many rounds may accumulate in one digit (with Compensation::kCarry).
  Coding(ElementType type, std::uint32_t world, Compensation compensation,
         std::uint32_t submissions, Layout layout = Layout::kEveryElement);

  /// Whether the type represents every possible sum exactly.
  bool fits() const { return largest_ >= 1; }
  std::uint32_t lanes() const { return (world_ + per_lane_ - 1) / per_lane_; }
  std::uint32_t per_lane() const { return per_lane_; }
  std::uint32_t lane_of_element(std::uint32_t element) const { return element % lanes(); }
  /// A lane has the ranks from first_rank() to before end_rank().
  std::uint32_t first_rank(std::uint32_t lane) const { return lane * per_lane_; }
  std::uint32_t end_rank(std::uint32_t lane) const {
    return std::min(world_, first_rank(lane) + per_lane_);
  }
  bool carries(std::uint32_t element, std::uint32_t rank) const {
    return lane_of_element(element) == rank / per_lane_;
  }
  /// The value that rank `rank` adds to its digit in a round: a small number, at least 1. The rank
  /// must be in the element's lane.
  std::uint32_t digit(std::uint32_t round, std::uint32_t rank, std::uint32_t element) const;
  /// The place value of a rank's digit.
  double worth(std::uint32_t rank) const {
    return static_cast<double>(std::uint64_t{1} << (bits_ * (rank % per_lane_)));
  }
  /// The digit of rank `rank` in an unscaled sum.
  std::uint64_t digit_of(double sum, std::uint32_t rank) const {
    return static_cast<std::uint64_t>(sum) >> (bits_ * (rank % per_lane_)) &
           ((std::uint64_t{1} << bits_) - 1);
  }
  /// The largest unscaled sum, plus one.
  double limit() const { return static_cast<double>(std::uint64_t{1} << (bits_ * per_lane_)); }
  /// The largest relative error of a scaled sum.
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
