// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/aggregate/round.h"
#include "dataplane/reduce/wire_codec.h"

namespace gradplane::aggregate {

/// A rank on this node. Slot s of its arena begins at arena + s * round_bytes.
struct LocalRank {
  std::byte* arena = nullptr;
  std::uint16_t rank = 0;
};

/// The memory that the ranks of this node share with the poll loop. It holds contributions first,
/// and then results in their place.
class LocalRanks {
 public:
  LocalRanks(std::vector<LocalRank> ranks, std::size_t round_bytes)
      : ranks_(std::move(ranks)), round_bytes_(round_bytes) {}

  std::size_t size() const { return ranks_.size(); }
  bool empty() const { return ranks_.empty(); }

  /// The rank's number in the job.
  std::uint16_t number(std::size_t rank) const { return ranks_[rank].rank; }
  std::byte* at(std::size_t rank, const Round& round, std::uint32_t block) const {
    return ranks_[rank].arena + round.slot() * round_bytes_ +
           round.partition->offset_bytes(round.geometry, block);
  }
  std::span<const std::byte> bytes(std::size_t rank, const Round& round,
                                   std::uint32_t block) const {
    return {at(rank, round, block), round.geometry.bytes_in(block)};
  }
  /// Copies the result of a block, which has come as `wire`, to the local ranks that get it.
  void deliver(const Round& round, std::uint32_t block, std::span<const std::byte> result,
               WireType wire = WireType::kElements) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!round.is_for(ranks_[r].rank, block)) continue;
      if (wire == WireType::kElements) {
        std::memcpy(at(r, round, block), result.data(), result.size());
      } else {
        reduce::decode(wire, at(r, round, block), result.data(), round.geometry.elements_in(block));
      }
    }
  }

 private:
  std::vector<LocalRank> ranks_;
  std::size_t round_bytes_;
};

}  // namespace gradplane::aggregate
