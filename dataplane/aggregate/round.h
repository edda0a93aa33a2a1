// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/aggregate/bucket.h"
#include "dataplane/aggregate/partition.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/limits.h"

namespace gradplane::aggregate {

/// One round slot of a job at this node. It joins the trees that carry the round: each tree counts
/// down what it still waits for. A slot serves the rounds id, id + kRoundSlots, ... in turn.
struct Round {
  bool open = false;
  std::uint32_t id = 0;  // number of the open round, or of the next one that may open here
  Geometry geometry;
  const Partition* partition = nullptr;  // of the round's plan
  std::uint16_t whole_ranks = 0;         // contributions to a block that lacks nobody
  LocalRankBits submitted = 0;
  std::uint32_t results_awaited = 0;  // blocks whose result is not here
  std::uint32_t results_unacked = 0;  // result edges whose peer lacks some result
  std::uint32_t partial_blocks = 0;   // blocks whose result lacks some rank's contribution
  std::uint16_t min_contributors = 0;
  bool streamed = false;    // an exchange under bounded staleness; see job::Streams
  bool delivering = false;  // an exchange: every result is being copied to local ranks
  bool delivered = false;   // an exchange: every result has been copied
  bool told = false;        // local ranks have been told that the round is done
  // The bucket whose bounds are known here; null: the round is gathered exactly.
  Bucket* bucket = nullptr;

  std::size_t slot() const { return id % kRoundSlots; }
  /// Whether blocks may go in a narrower type than the trainer's. wire_type() says which one a
  /// block has.
  bool narrows() const {
    return bucket != nullptr && geometry.operation == Operation::kAllReduce && bucket->narrows();
  }
  WireType wire_type(std::uint32_t block) const {
    return narrows() ? bucket->wire_type(block) : WireType::kElements;
  }
  /// Whether a rank's contribution is in a block that lacks nobody.
  bool is_in(std::uint16_t rank, std::uint32_t block) const {
    return all_contribute(geometry.operation) || partition->rank_of(geometry, block) == rank;
  }
  /// Whether a rank gets the result of a block.
  bool is_for(std::uint16_t rank, std::uint32_t block) const {
    return all_receive(geometry.operation) || partition->rank_of(geometry, block) == rank;
  }
};

/// Whether round `a` comes before round `b`. Round numbers wrap around 2^32.
inline bool is_older(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace gradplane::aggregate
