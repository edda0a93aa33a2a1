// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/element_type.h"
#include "dataplane/base/limits.h"

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
/// less than `in_flight_max` after the first incomplete one; hence no two ranks differ by more, and
/// the last in_flight_max results are all that a peer can lack. One thread.
class RoundWindow {
 public:
  void restart(std::uint32_t in_flight_max);

  std::uint32_t next() const { return next_; }
  std::uint32_t first_incomplete() const { return first_incomplete_; }
  bool may_submit() const { return next_ - first_incomplete_ < in_flight_max_; }

  void submit(const Round& round);

  /// The round, or nullptr if it is not one of the last that were submitted.
  Round* find(std::uint32_t round);

  /// Marks a round. False if it is not in flight: a completion that nobody waits for.
  bool complete(std::uint32_t round);

  /// Bit i: round first_incomplete() + i is complete.
  std::uint64_t completed_bits() const;

 private:
  std::array<Round, kRoundSlots> rounds_{};
  std::uint32_t next_ = 0;
  std::uint32_t first_incomplete_ = 0;
  std::uint32_t in_flight_max_ = 0;
};

}  // namespace gradplane::shim
