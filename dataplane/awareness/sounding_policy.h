// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/awareness/train_meter.h"
#include "dataplane/base/time.h"

namespace gradplane::awareness {

/// A sounding is a train of so many blocks. Some of them only fill the queue.
inline constexpr std::uint32_t kSoundingBlocks = 48;
static_assert(kSoundingBlocks > kTrainPackets + 2, "a train has a beginning and an end");
/// Of all blocks that a job sends from a node, at most one in this many is part of a sounding.
inline constexpr std::uint64_t kSoundingOneOf = 50;
/// The budget of so many soundings is saved while none are sent.
inline constexpr std::uint64_t kSavedSoundings = 3;
/// The time between two soundings of a link.
inline constexpr Duration kSoundingPause = Duration::seconds(1);

/// The soundings of one link.
struct Sounding {
  std::uint32_t left = 0;                          // blocks that the one that runs may still send
  Instant next = Instant::from_ns(INT64_MIN / 4);  // another one may begin

  bool is_on() const { return left > 0; }
};

/// Says which blocks a sender may send beyond its window and its pace, so that the receiver can
/// measure a link that the controller does not fill. A sounding is made of blocks that wait anyway;
/// it costs a burst of kSoundingBlocks in the queue of the link and no bytes. All links of a job at
/// a node share one budget, so a link that carries little may be sounded at the cost of others.
class SoundingPolicy {
 public:
  /// Begins a sounding of the link if it may be: enough blocks are ready, the last sounding is long
  /// ago, and the budget bears it. `ready` blocks wait for nothing but window and pace.
  bool begin(Instant now, Sounding& link, std::uint64_t ready);
  /// A block was sent; call it for every block over every link.
  void on_sent(Sounding& link);
  /// Nothing is left to send. What the sounding has not sent is there for others.
  void end(Sounding& link);

  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t sounding_blocks() const { return sounding_blocks_; }

 private:
  std::uint64_t blocks_ = 0;
  std::uint64_t sounding_blocks_ = 0;  // of them
  std::uint64_t credit_ = 0;           // blocks that count towards the next soundings
};

}  // namespace gradplane::awareness
