// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/link.h"

#include <algorithm>
#include <cmath>

namespace gradplane::lab {
namespace {

constexpr std::int64_t kBitNsPerByteSecond = 8 * 1'000'000'000LL;

/// Uniform in [0, 1). Unlike the standard distributions, it is the same with every library.
double uniform(Rng& rng) {
  return static_cast<double>(rng() >> 11) * 0x1.0p-53;
}

bool chance(double probability, Rng& rng) {
  return probability > 0 && uniform(rng) < probability;
}

Duration sending_time(std::size_t bytes, std::int64_t rate_bits_per_second) {
  if (rate_bits_per_second == 0) return {};
  const std::int64_t bit_ns = static_cast<std::int64_t>(bytes) * kBitNsPerByteSecond;
  return Duration::ns((bit_ns + rate_bits_per_second / 2) / rate_bits_per_second);
}

}  // namespace

std::int64_t Link::queued_bytes(Instant now) const {
  if (queue_rate_ == 0 || free_at_ <= now) return 0;
  const double bits = (free_at_ - now).to_seconds() * static_cast<double>(queue_rate_);
  return std::llround(bits / 8);
}

void Link::set(const LinkSettings& settings) {
  settings_ = settings;
}

void Link::adopt_rate(Instant now) {
  if (queue_rate_ == settings_.rate_bits_per_second) return;
  const std::int64_t queued = queued_bytes(now);
  queue_rate_ = settings_.rate_bits_per_second;
  free_at_ = now + sending_time(static_cast<std::size_t>(queued), queue_rate_);
}

bool Link::is_lost(Rng& rng) {
  const LossModel& loss = settings_.loss;
  bool lost = chance(loss.random, rng);
  if (loss.bursts) {
    bad_ = bad_ ? !chance(loss.bursts->leave, rng) : chance(loss.bursts->enter, rng);
    lost |= chance(bad_ ? loss.bursts->loss_in_bad : loss.bursts->loss_in_good, rng);
  }
  return lost;
}

Instant Link::arrival(Rng& rng) {
  Instant at = free_at_ + settings_.delay;
  const std::int64_t jitter_ns = settings_.jitter.count_ns();
  if (jitter_ns > 0) {
    at =
        at + Duration::ns(static_cast<std::int64_t>(uniform(rng) * static_cast<double>(jitter_ns)));
  }
  if (chance(settings_.reorder.share, rng)) {
    ++counters_.reordered;
    return at + settings_.reorder.extra_delay;
  }
  last_arrival_ = std::max(last_arrival_, at);
  return last_arrival_;
}

Passage Link::offer(Instant now, std::size_t frame_bytes, bool can_be_marked, Rng& rng) {
  ++counters_.frames;
  counters_.bytes += frame_bytes;
  adopt_rate(now);
  const std::size_t occupied = wire_bytes(frame_bytes);
  const std::int64_t queued = queued_bytes(now);
  const std::int64_t with_this = queued + static_cast<std::int64_t>(occupied);
  Passage passage;
  if (settings_.rate_bits_per_second != 0) {
    if (with_this > settings_.queue_bytes) {
      ++counters_.queue_drops;
      return passage;
    }
    counters_.deepest_queue_bytes = std::max(counters_.deepest_queue_bytes, with_this);
  }
  counters_.sent_wire_bytes += occupied;
  free_at_ = std::max(free_at_, now) + sending_time(occupied, settings_.rate_bits_per_second);
  if (is_lost(rng)) {
    ++counters_.random_drops;
    return passage;
  }
  if (can_be_marked && settings_.ecn_threshold_bytes > 0 &&
      queued > settings_.ecn_threshold_bytes) {
    passage.mark = true;
    ++counters_.marks;
  }
  passage.arrivals[passage.arrival_count++] = arrival(rng);
  if (chance(settings_.duplicate_share, rng)) {
    ++counters_.duplicates;
    passage.arrivals[passage.arrival_count++] = arrival(rng);
  }
  return passage;
}

}  // namespace gradplane::lab
