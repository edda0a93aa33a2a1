// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/model/element_type.h"
#include "dataplane/model/limits.h"

namespace gradplane::shim {

/// The memory of one all_reduce: the elements that are summed in place, and how many of them are
/// done. Elements are submitted and completed from the front. So after a lost session the front
/// part is finished and the rest is untouched.
struct Reduction {
  std::byte* data = nullptr;
  std::size_t elements = 0;
  ElementType type = ElementType::kFloat32;
  std::size_t submitted_elements = 0;
  std::size_t completed_elements = 0;

  std::size_t bytes_per_element() const { return element_bytes(type); }
  bool all_submitted() const { return submitted_elements == elements; }
  bool complete() const { return completed_elements == elements; }
};

/// A round: the slice of a reduction that the daemon sums at once.
struct Round {
  Reduction* reduction = nullptr;  // valid until the round is complete
  std::size_t offset_elements = 0;
  std::size_t elements = 0;
  std::size_t bytes = 0;
  bool completed = false;

  std::byte* data() const {
    return reduction->data + offset_elements * reduction->bytes_per_element();
  }
};

/// The rounds of one session as this rank sees them. A round may be submitted only while it is less
/// than `in_flight_max` after the first incomplete one. dataplane/model/limits.h states what
/// follows from this. Round numbers have 64 bits and never wrap. One thread.
class RoundWindow {
 public:
  /// `first` is the number of the first round.
  void restart(std::uint32_t in_flight_max, std::uint64_t first = 0);

  std::uint64_t next() const { return next_; }
  std::uint64_t first_incomplete() const { return first_incomplete_; }
  bool may_submit() const { return next_ - first_incomplete_ < in_flight_max_; }

  void submit(const Round& round);

  /// Returns the round, or nullptr if it is not one of the last kRoundSlots that were submitted.
  /// For these the arena still holds the contribution or the result.
  Round* find(std::uint64_t round);

  /// Returns the full number of a round of which the daemon states only the low 32 bits. If the
  /// daemon names a round that was completed before, the number is not that of a round in flight.
  std::uint64_t expand(std::uint32_t low_bits) const {
    return first_incomplete_ + (low_bits - static_cast<std::uint32_t>(first_incomplete_));
  }

  /// Marks a round as complete. Returns false if the round is not in flight, so nobody waits for
  /// this completion.
  bool complete(std::uint64_t round);

  /// Bit i: round first_incomplete() + i is complete.
  std::uint64_t completed_bits() const;

 private:
  std::array<Round, kRoundSlots> rounds_{};
  std::uint64_t first_ = 0;  // of the session
  std::uint64_t next_ = 0;
  std::uint64_t first_incomplete_ = 0;
  std::uint32_t in_flight_max_ = 0;
};

}  // namespace gradplane::shim
