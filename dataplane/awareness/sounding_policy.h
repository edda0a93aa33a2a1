// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/awareness/train_meter.h"
#include "dataplane/base/time.h"

namespace gradplane::awareness {

/// A sounding is a train of this many packets. Some of them only fill the queue.
inline constexpr std::uint32_t kSoundingBlocks = 48;
static_assert(kSoundingBlocks > kTrainPackets + 2, "a train has a beginning and an end");
/// The same if the receiver says that the link is slow, and the last sounding was useful.
inline constexpr std::uint32_t kShortSoundingBlocks = 24;
static_assert(kShortSoundingBlocks > kSlowTrainPackets + 2);
/// Of all blocks that a job sends from a node, padding included, at most one in this many is part
/// of a sounding. Packets are counted instead of bytes: packets of a sounding are as long as one
/// with a full block, and nearly all other packets are full, too.
inline constexpr std::uint64_t kSoundingOneOf = 50;
/// The budget for this many long soundings is saved while none are sent. Links often change
/// together, so many may have to be measured at once.
inline constexpr std::uint64_t kSavedSoundings = 24;
/// This many of them are reserved for links that seem to change. Half of the earned budget goes
/// there until they are saved.
inline constexpr std::uint64_t kReservedSoundings = 12;
static_assert(kReservedSoundings < kSavedSoundings);
/// The time between two soundings of a link whose receiver asks for them.
inline constexpr Duration kSoundingPause = Duration::ms(500);
/// The same if the receiver does not ask, but the sender sees other links change.
inline constexpr Duration kUnaskedPause = Duration::ms(1500);
/// The same for a link that no tree uses. Nobody asks, and nothing depends on the link at the
/// moment.
inline constexpr Duration kUnusedLinkPause = Duration::seconds(2);
/// The time doubles with each useless sounding, up to this.
inline constexpr Duration kLongestSoundingPause = Duration::seconds(16);
/// The time between two soundings of a node on any links, because they share the node's own link.
inline constexpr Duration kSoundingsApart = Duration::ms(20);

/// The soundings of one link.
struct Sounding {
  std::uint32_t left = 0;    // packets that the current sounding may still send
  std::uint32_t blocks = 0;  // packets of the last sounding
  Instant began = Instant::from_ns(INT64_MIN / 4);  // when the last sounding began
  std::uint32_t number = 0;                         // number of the last sounding
  std::uint32_t in_vain = 0;                        // soundings since the last useful one
  Duration round_trip;                              // round trip from their answers; 0: not known
  bool is_slow = false;  // the receiver says that short soundings are enough

  bool is_on() const { return left > 0; }
  /// Packets of the next sounding. It is long if the last one was useless, because a slow link may
  /// have become fast.
  std::uint32_t next_blocks() const {
    return is_slow && in_vain == 0 ? kShortSoundingBlocks : kSoundingBlocks;
  }
  /// The last sounding was useful: the receiver has measured the link, or at least answered.
  void on_use() { in_vain = 0; }
};

/// The reason to sound a link.
struct SoundingCause {
  bool is_used = true;   // a tree sends blocks over it
  bool is_asked = true;  // its receiver asks for a train
  bool alarm = false;    // links to this node have changed, so those from it may have, too
};

/// Decides which packets a sender may send beyond its window and its pacing, so that the receiver
/// can measure a link that the controller does not fill. A sounding consists of blocks that wait
/// anyway, and of padding if they are too few. All links of a job at a node share one budget, so a
/// link that carries little may be sounded at the cost of others.
class SoundingPolicy {
 public:
  /// Whether a sounding of the link may begin: the last one was long enough ago, with a longer time
  /// after useless ones, and the budget suffices. An urgent sounding may also use the reserved
  /// budget.
  bool may_begin(Instant now, const Sounding& link, const SoundingCause& why) const;
  void begin(Instant now, Sounding& link);
  /// A block or a packet of padding was sent. Call it for each of them, on every link.
  void on_sent(Sounding& link);
  /// Ends a sounding to which no more packets go. Other links get its unused budget.
  void end(Sounding& link);

  /// Counts of all packets, and of those of soundings. For tests.
  std::uint64_t packets() const { return packets_; }
  std::uint64_t sounding_packets() const { return sounding_packets_; }

 private:
  std::uint64_t packets_ = 0;
  std::uint64_t sounding_packets_ = 0;               // of these, packets of soundings
  std::uint32_t credit_ = 0;                         // budget for the next soundings, in packets
  std::uint32_t reserved_ = 0;                       // the same, only for urgent soundings
  Instant began_ = Instant::from_ns(INT64_MIN / 4);  // when the last sounding of any link began
};

}  // namespace gradplane::awareness
