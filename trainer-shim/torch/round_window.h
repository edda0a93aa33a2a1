// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/model/element_type.h"
#include "dataplane/model/limits.h"

namespace gradplane::shim {

/// One all_reduce as memory: what is summed, in place, and how far it has come. Elements are handed
/// over and completed from the front, so a lost session leaves a finished part and an untouched
/// one.
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

/// A round: the slice of a reduction that is in flight as one.
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

/// The rounds of one session, as this rank sees them. It lets a round be submitted only while it is
/// less than `in_flight_max` after the first incomplete one; what follows from that is in
/// dataplane/base/limits.h. Numbers have 64 bits and never wrap. One thread.
class RoundWindow {
 public:
  /// `first` is the number of the first round.
  void restart(std::uint32_t in_flight_max, std::uint64_t first = 0);

  std::uint64_t next() const { return next_; }
  std::uint64_t first_incomplete() const { return first_incomplete_; }
  bool may_submit() const { return next_ - first_incomplete_ < in_flight_max_; }

  void submit(const Round& round);

  /// The round, or nullptr if it is not one of the last kRoundSlots that were submitted: of those
  /// the arena still holds the contribution or the result.
  Round* find(std::uint64_t round);

  /// The round that the daemon means, which knows the low 32 bits alone. No round in flight is it
  /// if the daemon names one that was completed before.
  std::uint64_t expand(std::uint32_t low_bits) const {
    return first_incomplete_ + (low_bits - static_cast<std::uint32_t>(first_incomplete_));
  }

  /// Marks a round. False if it is not in flight: a completion that nobody waits for.
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
