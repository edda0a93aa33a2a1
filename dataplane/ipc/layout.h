// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dataplane/model/core_part.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/reduction.h"

/// The shared-memory ABI between one rank and its daemon. docs/shm-abi.md draws it.
///
///   0      ChannelHeader            one page; sizes, written by the daemon before the fd is passed
///   4096   RingMemory<Submission>   trainer -> daemon   } of core 0; each further core of the
///   8192   RingMemory<Completion>   daemon -> trainer   } job has another two pages
///   12288  arena: slot_count slots of slot_bytes each; round r lives in slot r % slot_count
///
/// A job may be shared by several poll cores of its daemon. The rank submits each round to all of
/// them, and the round is complete when all have completed it.
///
/// The daemon creates the memfd, seals its size, and keeps its own copy of every size: a value from
/// this memory is copied and checked before it decides what the daemon accesses.
namespace gradplane::ipc {

inline constexpr std::uint64_t kChannelMagic = 0x31656e616c707067;  // "gpplane1", little endian
inline constexpr std::uint32_t kAbiVersion = 3;
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kCacheLineBytes = 64;
/// Entries of a ring. Twice the round slots, so that a correct client never finds a full ring.
inline constexpr std::uint32_t kRingEntries = 32;
static_assert(kRingEntries >= 2 * kRoundSlots);
static_assert((kRingEntries & (kRingEntries - 1)) == 0, "indices are masked");

/// Identifies a channel. The daemon writes it once, before it passes the descriptor.
struct ChannelIdentity {
  std::uint64_t magic;
  std::uint32_t abi_version;
  std::uint32_t slot_count;
  std::uint64_t slot_bytes;
  std::uint64_t arena_offset;
  std::uint64_t total_bytes;
  std::uint32_t core_count;
  std::uint32_t unused;
};
static_assert(sizeof(ChannelIdentity) == 48);

/// What one poll core tells the trainer about itself.
struct CoreFlags {
  /// The poll loop writes it, the trainer reads it. Grows while the poll loop lives; if it stands
  /// still for longer than the liveness limit, the daemon is dead or stopped.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> beat;
  /// The poll loop writes it, the trainer reads it. Not 0 while the poll loop sleeps and wants its
  /// doorbell rung.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> sleeps;
};
static_assert(sizeof(CoreFlags) == 2 * kCacheLineBytes);

struct ChannelHeader {
  ChannelIdentity identity;
  /// The trainer writes it, poll loops read it. Not 0 while the trainer sleeps and wants its
  /// doorbell rung.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> trainer_sleeps;
  CoreFlags cores[kMaxCores];
};
static_assert(offsetof(ChannelHeader, trainer_sleeps) == kCacheLineBytes);
static_assert(offsetof(ChannelHeader, cores) == 2 * kCacheLineBytes);
static_assert(sizeof(ChannelHeader) <= kPageBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// "Round `round` of this rank lies in its slot." The daemon copies it, checks the copy and uses
/// it.
///
/// If the operation has shards, the slot has one of equal size for each rank, in the order of the
/// ranks, so their number divides `elements`. What a rank gives and gets:
///   all_reduce      gives the slot, gets the sum (or another reduction) of all ranks' slots
///   reduce_scatter  gives the slot, gets its own shard of that sum, at the shard's place; the
///                   rest of the slot is not specified afterwards
///   all_gather      gives its own shard, at the shard's place, gets the slot
///   broadcast       the source gives the slot, all get it
///   exchange        gives the slot, gets the mean over its own slot and those that the
///                   selection lets it receive, times the number of ranks
/// Bytes that only one rank contributes arrive unchanged. All ranks submit each round, and all
/// state the same about it.
struct Submission {
  std::uint32_t round = 0;        // the next round: rounds are submitted in order, without a gap
  std::uint32_t elements = 0;     // in the slot: > 0; elements * element_bytes <= slot_bytes
  std::uint8_t element_type = 0;  // ElementType
  std::uint8_t operation = static_cast<std::uint8_t>(Operation::kAllReduce);
  std::uint16_t source = 0;  // broadcast: the rank that has the bytes; exchange: the selection
  std::uint16_t bucket = 0;  // bucket of an all_reduce or exchange; 0: none, so the round is exact
  std::uint8_t reduction = static_cast<std::uint8_t>(Reduction::kSum);
  std::uint8_t unused = 0;
};
static_assert(sizeof(Submission) == 16);

enum class CompletionStatus : std::uint32_t {
  kOk = 0,      // the slot holds the result; see Submission
  kFailed = 1,  // the job failed; the slot's content means nothing
};

struct Completion {
  std::uint32_t round = 0;
  CompletionStatus status = CompletionStatus::kOk;
  // The fewest contributions to any block: all ranks if a sum is complete.
  std::uint32_t contributors = 0;
  std::uint32_t partial_blocks = 0;  // blocks whose sum lacks some rank's contribution
};
static_assert(sizeof(Completion) == 16);

/// A ring with a single producer and a single consumer. `tail` and `head` only grow, and are masked
/// on use. Each side trusts only its own index, and checks the other's (distance <= kRingEntries)
/// before use.
template <typename Entry>
struct RingMemory {
  // The producer writes, the consumer reads.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> tail;
  // The consumer writes, the producer reads.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> head;
  alignas(kCacheLineBytes) Entry entries[kRingEntries];
};

constexpr std::size_t submission_ring_offset(std::size_t core) {
  return (1 + 2 * core) * kPageBytes;
}
constexpr std::size_t completion_ring_offset(std::size_t core) {
  return (2 + 2 * core) * kPageBytes;
}
/// The arena begins after the rings of all cores.
constexpr std::size_t arena_offset(std::size_t core_count) {
  return submission_ring_offset(core_count);
}
static_assert(sizeof(RingMemory<Submission>) <= kPageBytes);
static_assert(sizeof(RingMemory<Completion>) <= kPageBytes);

}  // namespace gradplane::ipc
