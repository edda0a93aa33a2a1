// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/awareness/train_meter.h"
#include "dataplane/base/time.h"

namespace gradplane::awareness {

/// A sounding is a train of so many packets. Some of them only fill the queue.
inline constexpr std::uint32_t kSoundingBlocks = 48;
static_assert(kSoundingBlocks > kTrainPackets + 2, "a train has a beginning and an end");
/// The same where the receiver says that the link is slow, and the sounding before was of use.
inline constexpr std::uint32_t kShortSoundingBlocks = 24;
static_assert(kShortSoundingBlocks > kSlowTrainPackets + 2);
/// Of all blocks that a job sends from a node, padding included, at most one in this many is part
/// of a sounding. Packets are counted, and not bytes: those of a sounding are as long as one with a
/// full block, and nearly all others are full, too.
inline constexpr std::uint64_t kSoundingOneOf = 50;
/// The budget of so many long soundings is saved while none are sent.
/// Links that change often change together, so that many are to be measured at once.
inline constexpr std::uint64_t kSavedSoundings = 24;
/// So many of these are for links that seem to change. Half of what is earned goes there until they
/// are saved.
inline constexpr std::uint64_t kReservedSoundings = 12;
static_assert(kReservedSoundings < kSavedSoundings);
/// The time between two soundings of a link whose receiver asks for them.
inline constexpr Duration kSoundingPause = Duration::ms(500);
/// The same where the receiver does not ask, but the sender sees other links change.
inline constexpr Duration kUnaskedPause = Duration::ms(1500);
/// The same of a link that no tree uses. Nobody asks, and nothing depends on it at the moment.
inline constexpr Duration kUnusedLinkPause = Duration::seconds(2);
/// The time doubles with each sounding that was of no use, up to this.
inline constexpr Duration kLongestSoundingPause = Duration::seconds(16);
/// Between two soundings of a node over whatever links, which meet in its own.
inline constexpr Duration kSoundingsApart = Duration::ms(20);

/// The soundings of one link.
struct Sounding {
  std::uint32_t left = 0;                           // packets that the one that runs may still send
  std::uint32_t blocks = 0;                         // of the last one
  Instant began = Instant::from_ns(INT64_MIN / 4);  // the last one
  std::uint32_t number = 0;                         // of the last one
  std::uint32_t in_vain = 0;                        // since the last one that was of use
  Duration round_trip;                              // as answers to them say; 0: not known
  bool is_slow = false;                             // as the receiver says: short ones are enough

  bool is_on() const { return left > 0; }
  /// Packets of the next one. A link that was slow may have become fast.
  std::uint32_t next_blocks() const {
    return is_slow && in_vain == 0 ? kShortSoundingBlocks : kSoundingBlocks;
  }
  /// The receiver has measured the link, or at least heard of the sounding where it does not say.
  void on_use() { in_vain = 0; }
};

/// Why a link would be sounded.
struct SoundingCause {
  bool is_used = true;   // a tree sends blocks over it
  bool is_asked = true;  // its receiver asks for a train
  bool alarm = false;    // links to this node have changed, and those from it may have, too
};

/// Says which packets a sender may send beyond its window and its pace, so that the receiver can
/// measure a link that the controller does not fill. A sounding is made of blocks that wait anyway,
/// and of padding where they are too few. All links of a job at a node share one budget, so a link
/// that carries little may be sounded at the cost of others.
class SoundingPolicy {
 public:
  /// Whether a sounding of the link may begin: the last one was long enough ago, longer where it
  /// was in vain, and the budget bears it. An urgent one may take what is reserved.
  bool may_begin(Instant now, const Sounding& link, const SoundingCause& why) const;
  void begin(Instant now, Sounding& link);
  /// A block or a packet of padding was sent; call it for each over every link.
  void on_sent(Sounding& link);
  /// Nothing more goes there. What the sounding has not sent is there for others.
  void end(Sounding& link);

  std::uint64_t packets() const { return packets_; }
  std::uint64_t sounding_packets() const { return sounding_packets_; }

 private:
  std::uint64_t packets_ = 0;
  std::uint64_t sounding_packets_ = 0;  // of them
  std::uint32_t credit_ = 0;            // packets that count towards the next soundings
  std::uint32_t reserved_ = 0;          // the same, for urgent ones alone
  Instant began_ = Instant::from_ns(INT64_MIN / 4);  // the last one of any link
};

}  // namespace gradplane::awareness
