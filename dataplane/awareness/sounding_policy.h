// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/awareness/link_estimate.h"
#include "dataplane/awareness/train_meter.h"
#include "dataplane/base/time.h"

namespace gradplane::awareness {

/// A sounding is a train of so many blocks. Some of them only fill the queue.
inline constexpr std::uint32_t kSoundingBlocks = 48;
static_assert(kSoundingBlocks > kTrainPackets + 2, "a train has a beginning and an end");
/// Of all blocks that a node sends, at most one in this many is part of a sounding.
inline constexpr std::uint64_t kSoundingOneOf = 50;
/// The time between two soundings of a link.
inline constexpr Duration kSoundingPause = Duration::seconds(1);
/// A sounding ends after this time. A sender that cannot send it faster than that does not fill a
/// link.
inline constexpr Duration kSoundingTime = Duration::ms(5);
/// A link is sounded when it is known with less confidence than this.
inline constexpr double kSoundingConfidence = 0.5;

/// Says which blocks a sender may send without pacing, so that the receiver can measure a link
/// whose capacity pacing hides. A sounding is made of blocks that wait anyway; it costs a burst of
/// kSoundingBlocks in the queue of the link and no bytes. All links of a node share one budget, so
/// a link that carries little may be sounded at the cost of others.
class SoundingPolicy {
 public:
  explicit SoundingPolicy(std::size_t links) : links_(links) {}

  /// Begins a sounding of the link if it is worth it and may be: the capacity is not known, enough
  /// blocks are ready, the last sounding is long ago, and the budget bears it. `known` is what the
  /// receiver has reported, aged until now. `ready` blocks wait for nothing but the pacer: window
  /// and grants let them go.
  bool begin(Instant now, std::size_t link, const RateEstimate& known, std::uint64_t ready);
  /// Whether the next block to the link is part of a sounding: it does not wait for the pacer.
  /// Windows and grants hold for it as for any other.
  bool is_sounding(Instant now, std::size_t link) const {
    return links_[link].left > 0 && now < links_[link].until;
  }
  /// A block was sent; call it for every block over every link.
  void on_sent(Instant now, std::size_t link);

  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t sounding_blocks() const { return sounding_blocks_; }

 private:
  struct Link {
    std::uint32_t left = 0;  // blocks of the sounding
    Instant until = Instant::from_ns(INT64_MIN / 4);
    Instant next = Instant::from_ns(INT64_MIN / 4);  // the next sounding may begin
  };
  std::vector<Link> links_;
  std::uint64_t blocks_ = 0;
  std::uint64_t sounding_blocks_ = 0;  // of them
  std::uint64_t promised_ = 0;         // sounding blocks, with those that a sounding may still send
};

}  // namespace gradplane::awareness
