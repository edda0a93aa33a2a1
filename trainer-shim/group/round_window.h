// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/model/element_type.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/reduction.h"

namespace gradplane::shim {

/// The memory of one collective, and how much of it is done. The contribution of a rank lies where
/// the result will be. For an all_gather this is one shard for each rank, one after the other, of
/// which the rank gives its own. For a reduce_scatter the rank gives all shards, and the result has
/// its own memory. Each shard is submitted and completed from the front. So after a lost session
/// the front part is finished, and the contribution to the rest is untouched.
struct Collective {
  std::byte* data = nullptr;
  std::size_t bytes = 0;  // of a shard
  /// The type of the elements that are summed, of which `data` has a whole number. Bytes that are
  /// only copied travel as elements of this type, too.
  ElementType type = ElementType::kFloat32;
  Operation operation = Operation::kAllReduce;
  Reduction reduction = Reduction::kSum;  // of an all_reduce or a reduce_scatter
  std::uint16_t source = 0;               // of a broadcast
  std::size_t shards = 1;
  std::byte* result = nullptr;  // of a reduce_scatter: `bytes` for this rank's shard of the sum
  /// Set for a gradient bucket of a floating type: the number of its backward pass. The bucket is
  /// exchanged if the session exchanges gradients, and summed otherwise.
  std::optional<std::uint64_t> pass;
  std::size_t submitted_bytes = 0;  // of each shard
  std::size_t completed_bytes = 0;
  std::size_t exchanged_bytes = 0;  // of completed_bytes

  bool all_submitted() const { return submitted_bytes == bytes; }
  bool complete() const { return completed_bytes == bytes; }
};

/// A round: the slice of a collective that the daemon carries at once, which is the same part of
/// each shard.
struct Round {
  Collective* collective = nullptr;  // valid until the round is complete
  Operation operation = Operation::kAllReduce;
  ElementType type = ElementType::kFloat32;
  Reduction reduction = Reduction::kSum;
  std::size_t offset_bytes = 0;  // in each shard
  std::size_t bytes = 0;         // of each shard
  std::size_t shards = 1;
  std::size_t padded_bytes = 0;  // of each shard in the slot, rounded up to whole elements
  bool completed = false;

  std::size_t slot_bytes() const { return shards * padded_bytes; }
  /// Writes this rank's contribution into the slot.
  void give(std::byte* slot, std::uint32_t rank) const;
  /// Writes the result in the slot into the memory of the collective. Writes nothing at the source
  /// of a broadcast, which has the bytes already, perhaps in read-only memory.
  void take(const std::byte* slot, std::uint32_t rank) const;
};

/// The next round of a collective. All ranks cut collectives in the same way.
Round cut(Collective& collective, std::size_t round_bytes);

/// The rounds of one session as this rank sees them. A round may be submitted only if it is less
/// than `in_flight_max` after the first incomplete one. dataplane/model/limits.h says what follows
/// from this. Round numbers have 64 bits and never wrap. One thread.
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

  /// Bit i: round next() - 1 - i, one of the last kRoundSlots, is an exchange.
  std::uint64_t exchange_bits() const;

 private:
  std::array<Round, kRoundSlots> rounds_{};
  std::uint64_t first_ = 0;  // of the session
  std::uint64_t next_ = 0;
  std::uint64_t first_incomplete_ = 0;
  std::uint32_t in_flight_max_ = 0;
};

}  // namespace gradplane::shim
