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

/// Bytes that Ethernet adds to a frame without checksum: preamble 8, checksum 4, gap 12.
inline constexpr std::size_t kFrameOverheadBytes = 24;
/// Shorter frames are padded to this on the wire.
inline constexpr std::size_t kMinFrameBytes = 60;

/// The bytes on the wire for a frame.
constexpr std::size_t wire_bytes(std::size_t frame_bytes) {
  return (frame_bytes < kMinFrameBytes ? kMinFrameBytes : frame_bytes) + kFrameOverheadBytes;
}

/// Losses in bursts: a link is in a good or a bad state, which may change with every frame.
struct GilbertElliott {
  double enter = 0;  // probability per frame of going from good to bad
  double leave = 1;  // probability per frame of going from bad to good
  double loss_in_bad = 1;
  double loss_in_good = 0;
  bool operator==(const GilbertElliott&) const = default;
};

struct LossModel {
  double random = 0;  // probability per frame, independent of other frames
  std::optional<GilbertElliott> bursts;
  bool operator==(const LossModel&) const = default;
};

struct Reordering {
  double share = 0;      // share of the frames
  Duration extra_delay;  // delay of these frames, so that others overtake them
  bool operator==(const Reordering&) const = default;
};

/// One direction of one link.
struct LinkSettings {
  std::int64_t rate_bits_per_second = 0;  // of wire_bytes(); 0: infinite, without a queue
  Duration delay;
  Duration jitter;  // uniform from 0 to this, added to the delay; frames keep their order
  // Length of the queue, with the frame that is being sent; a full queue drops.
  std::int64_t queue_bytes = 256 << 10;
  // A frame that finds more in the queue is marked; 0: no marks.
  std::int64_t ecn_threshold_bytes = 0;
  LossModel loss;
  Reordering reorder;
  double duplicate_share = 0;
  bool operator==(const LinkSettings&) const = default;
};

struct LinkCounters {
  std::uint64_t frames = 0;           // all offered frames, whether they arrived or not
  std::uint64_t bytes = 0;            // of these frames, without kFrameOverheadBytes
  std::uint64_t sent_wire_bytes = 0;  // wire_bytes() of the frames that the queue took
  std::uint64_t queue_drops = 0;
  std::uint64_t random_drops = 0;
  std::uint64_t marks = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t reordered = 0;
  std::int64_t deepest_queue_bytes = 0;
};

/// What happens to a frame: it arrives never, once or twice.
struct Passage {
  std::size_t arrival_count = 0;
  Instant arrivals[2];
  bool mark = false;  // mark congestion in the frame (only for frames that can be marked)
};

/// Model of one direction of a link: a drop-tail queue, a wire with a rate and a delay, and what
/// the wire does to frames. A frame is lost after the queue, so a lost frame has used the rate. The
/// model depends only on calls and random numbers. It needs no event per queued frame: the length
/// of the queue follows from the time at which the wire will be free.
class Link {
 public:
  explicit Link(const LinkSettings& settings)
      : settings_(settings), queue_rate_(settings.rate_bits_per_second) {}

  /// `now` should not decrease. If it does, the frame still waits for all frames before it.
  Passage offer(Instant now, std::size_t frame_bytes, bool can_be_marked, Rng& rng);

  /// Changes the settings for later frames. Frames on their way keep theirs and are not overtaken.
  /// What is still queued when the next frame comes is sent at the new rate.
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
  std::int64_t queue_rate_;  // in bit/s, with which free_at_ was computed
  Instant free_at_;          // when the last queued frame will have been sent
  Instant last_arrival_;     // of the frames that keep their order
  bool bad_ = false;         // the state of LossModel::bursts
};

}  // namespace gradplane::lab
