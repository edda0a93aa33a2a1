// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/round_window.h"

#include <algorithm>
#include <cstring>

#include "trainer-shim/group/copy_crew.h"
#include "trainer-shim/group/stream_copy.h"

namespace gradplane::shim {
namespace {

/// The length of a slice is a multiple of the size of every element type and of cache lines.
constexpr std::size_t kSliceAlignBytes = kBlockAlignBytes;
static_assert(kSliceAlignBytes % sizeof(double) == 0);

/// The longest shard for which all shards together have no more blocks than a round, because
/// daemons refuse longer ones. A rank does not know the size of blocks, so the length must fit all
/// sizes. 0: there is none.
std::size_t longest_shard_bytes(std::size_t shards, std::size_t round_bytes) {
  std::size_t longest = round_bytes / shards;
  for (std::size_t block = kMinBlockBytes; block <= kMaxBlockBytes; block += kBlockAlignBytes) {
    longest = std::min(longest, (round_bytes + block - 1) / block / shards * block);
  }
  return longest;
}

}  // namespace

void Round::give(std::byte* slot, std::uint32_t rank) const {
  const bool is_large = collective->bytes * shards >= kStreamedTensorBytes;
  const auto give_shard = [&](std::size_t shard) {
    std::byte* to = slot + shard * padded_bytes;
    const std::byte* from = collective->data + shard * collective->bytes + offset_bytes;
    is_large ? copy_crew().copy(to, from, bytes, CopyKind::kOrdinary)
             : static_cast<void>(std::memcpy(to, from, bytes));
    std::memset(to + bytes, 0, padded_bytes - bytes);
  };
  switch (collective->operation) {
    case Operation::kBroadcast:
      if (collective->source == rank) give_shard(0);
      return;
    case Operation::kAllGather:
      if (all_contribute(operation)) std::memset(slot, 0, slot_bytes());
      return give_shard(rank);
    case Operation::kAllReduce:
    case Operation::kReduceScatter:
    case Operation::kExchange:
      for (std::size_t shard = 0; shard < shards; ++shard) give_shard(shard);
      return;
  }
}

void Round::take(const std::byte* slot, std::uint32_t rank) const {
  if (operation == Operation::kBroadcast && collective->source == rank) return;
  const auto take_shard = [&](std::byte* to, std::size_t shard, std::size_t result_bytes) {
    const std::byte* from = slot + shard * padded_bytes;
    result_bytes >= kStreamedTensorBytes ? copy_crew().copy(to, from, bytes, CopyKind::kPastCaches)
                                         : static_cast<void>(std::memcpy(to, from, bytes));
  };
  if (collective->operation == Operation::kReduceScatter)
    return take_shard(collective->result + offset_bytes, rank, collective->bytes);
  for (std::size_t shard = 0; shard < shards; ++shard) {
    std::byte* to = collective->data + shard * collective->bytes + offset_bytes;
    take_shard(to, shard, collective->bytes * shards);
  }
}

Round cut(Collective& collective, std::size_t round_bytes) {
  const std::size_t one_bytes = element_bytes(collective.type);
  std::size_t limit_bytes = round_bytes / collective.shards;
  Round round;
  round.collective = &collective;
  round.operation = collective.operation;
  round.type = collective.type;
  round.reduction = collective.reduction;
  if (has_shards(round.operation)) {
    const std::size_t longest_bytes = longest_shard_bytes(collective.shards, round_bytes);
    // The shards of very many ranks do not fit a small round. Then the round is an all_reduce, in
    // which each rank gives the whole slot. In an all_gather it has zeros in place of the others'
    // shards, and the sum of integers has the same bits.
    if (longest_bytes == 0) round.operation = Operation::kAllReduce;
    if (longest_bytes != 0) limit_bytes = longest_bytes;
  }
  round.offset_bytes = collective.submitted_bytes;
  round.bytes = std::min(collective.bytes - collective.submitted_bytes,
                         limit_bytes / kSliceAlignBytes * kSliceAlignBytes);
  round.shards = collective.shards;
  round.padded_bytes = (round.bytes + one_bytes - 1) / one_bytes * one_bytes;
  return round;
}

void RoundWindow::restart(std::uint32_t in_flight_max, std::uint64_t first) {
  rounds_.fill({});
  first_ = next_ = first_incomplete_ = first;
  in_flight_max_ = std::min(in_flight_max, static_cast<std::uint32_t>(kMaxInFlightRounds));
}

void RoundWindow::submit(const Round& round) {
  rounds_[next_++ % kRoundSlots] = round;
}

Round* RoundWindow::find(std::uint64_t round) {
  if (round < first_ || round >= next_ || next_ - round > kRoundSlots) return nullptr;
  return &rounds_[round % kRoundSlots];
}

bool RoundWindow::complete(std::uint64_t round) {
  Round* found = find(round);
  if (!found || found->completed || round < first_incomplete_) return false;
  found->completed = true;
  while (first_incomplete_ < next_ && rounds_[first_incomplete_ % kRoundSlots].completed) {
    ++first_incomplete_;
  }
  return true;
}

std::uint64_t RoundWindow::completed_bits() const {
  std::uint64_t bits = 0;
  for (std::uint64_t round = first_incomplete_; round < next_; ++round) {
    const bool completed = rounds_[round % kRoundSlots].completed;
    bits |= std::uint64_t{completed} << (round - first_incomplete_);
  }
  return bits;
}

std::uint64_t RoundWindow::exchange_bits() const {
  std::uint64_t bits = 0;
  const std::uint64_t count = std::min<std::uint64_t>(next_ - first_, kRoundSlots);
  for (std::uint64_t back = 0; back < count; ++back) {
    const Round& round = rounds_[(next_ - 1 - back) % kRoundSlots];
    bits |= std::uint64_t{round.operation == Operation::kExchange} << back;
  }
  return bits;
}

}  // namespace gradplane::shim
