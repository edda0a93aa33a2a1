// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

#include "dataplane/base/time.h"

namespace gradplane::lab {

using Rng = std::mt19937_64;

/// What Ethernet adds to a frame without its checksum: preamble 8, checksum 4, gap 12.
inline constexpr std::size_t kFrameOverheadBytes = 24;
/// Shorter frames are padded to this on the wire.
inline constexpr std::size_t kMinFrameBytes = 60;

/// How long a frame occupies a link, in bytes.
constexpr std::size_t wire_bytes(std::size_t frame_bytes) {
  return (frame_bytes < kMinFrameBytes ? kMinFrameBytes : frame_bytes) + kFrameOverheadBytes;
}

/// Losses in bursts: a link is good or bad, and may change with every frame.
struct GilbertElliott {
  double enter = 0;  // probability per frame, good to bad
  double leave = 1;  // bad to good
  double loss_in_bad = 1;
  double loss_in_good = 0;
  bool operator==(const GilbertElliott&) const = default;
};

struct LossModel {
  double random = 0;  // probability per frame, each frame for itself
  std::optional<GilbertElliott> bursts;
  bool operator==(const LossModel&) const = default;
};

struct Reordering {
  double share = 0;      // of the frames are
  Duration extra_delay;  // late by this, and so overtaken
  bool operator==(const Reordering&) const = default;
};

/// One direction of one link.
struct LinkSettings {
  std::int64_t rate_bits_per_second = 0;  // of wire_bytes(); 0: infinitely fast, no queue
  Duration delay;
  Duration jitter;  // uniform from 0 to this, on top of the delay; frames keep their order
  std::int64_t queue_bytes = 256 << 10;  // with the frame that is being sent; more is dropped
  std::int64_t ecn_threshold_bytes = 0;  // marks what finds more than this in the queue; 0: off
  LossModel loss;
  Reordering reorder;
  double duplicate_share = 0;
  bool operator==(const LinkSettings&) const = default;
};

struct LinkCounters {
  std::uint64_t frames = 0;           // offered, whatever became of them
  std::uint64_t bytes = 0;            // of these frames, without kFrameOverheadBytes
  std::uint64_t sent_wire_bytes = 0;  // wire_bytes() of those that the queue took
  std::uint64_t queue_drops = 0;
  std::uint64_t random_drops = 0;
  std::uint64_t marks = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t reordered = 0;
  std::int64_t deepest_queue_bytes = 0;
};

/// What became of a frame: it arrives never, once or twice.
struct Passage {
  std::size_t arrival_count = 0;
  Instant arrivals[2];
  bool mark = false;  // tell its receiver of congestion (only for frames that can carry it)
};

/// Model of one direction of a link: a drop-tail queue, a wire of some rate and length, and what
/// the wire does to frames. Loses frames after the queue, so a lost one has used the rate.
/// Pure: everything follows from the calls and the random numbers. No event per queued frame: how
/// full the queue is follows from when the wire will be free.
class Link {
 public:
  explicit Link(const LinkSettings& settings)
      : settings_(settings), queue_rate_(settings.rate_bits_per_second) {}

  /// `now` should not go back; if it does, the frame still waits behind all before it.
  Passage offer(Instant now, std::size_t frame_bytes, bool can_be_marked, Rng& rng);

  /// For frames to come; those under way stay as they are, and are not overtaken. What is queued
  /// when the next frame comes leaves at the new rate.
  void set(const LinkSettings& settings);
  const LinkSettings& settings() const { return settings_; }

  std::int64_t queued_bytes(Instant now) const;
  const LinkCounters& counters() const { return counters_; }
  void reset_counters() { counters_ = {}; }

 private:
  void adopt_rate(Instant now);
  bool is_lost(Rng& rng);
  Instant arrival(Rng& rng);

  LinkSettings settings_;
  LinkCounters counters_;
  std::int64_t queue_rate_;  // bits per second, at which free_at_ was reckoned
  Instant free_at_;          // when the last queued frame has left
  Instant last_arrival_;     // of the frames that keep their order
  bool bad_ = false;         // the state of LossModel::bursts
};

}  // namespace gradplane::lab
