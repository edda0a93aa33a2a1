// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/train_meter.h"

#include <algorithm>

namespace gradplane::awareness {
namespace {

/// The difference of two 32-bit clocks in microseconds, modulo 2^32.
Duration difference_us(std::uint32_t later, std::uint32_t earlier) {
  return Duration::us(static_cast<std::int32_t>(later - earlier));
}

std::uint32_t clock_us(Instant at) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(at.count_ns()) / 1000);
}

std::uint64_t bits_per_second(std::uint64_t bytes, Duration time) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * 8 / time.to_seconds());
}

}  // namespace

/// Handles a packet that was sent before the newest one. If it was overtaken, it tells nothing
/// about the queue now, but its bytes went over the link.
void TrainMeter::note_sent_before(std::uint32_t sent_us) {
  if (difference_us(sent_us, newest_us_) + kMaxOvertaken > Duration{}) return;
  least_delay_.reset();
  train_from_.reset();
  train_to_.reset();
  bound_from_.reset();
  newest_us_ = sent_us;
  has_newer_ = true;
}

/// A poll that left packets in the receive queue is no checkpoint, because nobody knows how many
/// had arrived by then.
Measured TrainMeter::end_of_poll() {
  if (!poll_.took_all || !has_newer_) return {};
  has_newer_ = false;
  const Checkpoint here{
      .at = poll_.at, .bytes = bytes_, .packets = packets_, .sent_us = newest_us_};
  const bool waited = has_waited(here);
  const bool has_ended = !waited || (train_from_ && here.at - train_from_->at > kMaxTrainTime);
  const std::uint64_t ended = has_ended ? end_train() : 0;
  Measured measured = waited ? measure_train(here) : Measured{};
  measured.bound = std::max(ended, measure_bound(here));
  return measured;
}

/// Whether the newest packet of the poll certainly waited in a queue, however late the poll was.
bool TrainMeter::has_waited(const Checkpoint& here) {
  const std::uint32_t delay_us = clock_us(here.at) - here.sent_us;
  if (!least_delay_ ||
      here.at - least_delay_used_ > kLeastDelayLifetime) {  // the clocks have drifted meanwhile
    least_delay_.emplace(kLeastDelayLifetime);
    delay_base_us_ = delay_us;
  }
  least_delay_used_ = here.at;
  const Duration delay = difference_us(delay_us, delay_base_us_);
  least_delay_->add(delay, here.at);
  return delay - poll_.waited > least_delay_->value() + kClockSlack;
}

TrainMeter::Span TrainMeter::between(const Checkpoint& from, const Checkpoint& to) {
  return {.bytes = to.bytes - from.bytes,
          .packets = to.packets - from.packets,
          .came_in = to.at - from.at,
          .sent_in = difference_us(to.sent_us, from.sent_us)};
}

/// Ends the train. If it has ended before it was long enough to be exact, it gives a lower bound.
std::uint64_t TrainMeter::end_train() {
  const bool has_span = train_from_ && train_to_;
  const Span span = has_span ? between(*train_from_, *train_to_) : Span{};
  train_from_.reset();
  train_to_.reset();
  return span.packets < kSlowTrainPackets ? 0 : bound_of(span);
}

/// Measures the train without its last poll, because the link may have been idle between that
/// poll's packets and the poll. A later packet that waited proves that it was not.
Measured TrainMeter::measure_train(const Checkpoint& here) {
  if (!train_from_) {
    train_from_ = here;
    train_begins_ = true;
  }
  if (!train_to_) {
    train_to_ = here;
    return {};
  }
  const Span span = between(*train_from_, *train_to_);
  const bool is_long = span.packets >= kTrainPackets && span.came_in >= kMinTrainTime;
  // If packets are small, such as acks, few of them are too few bytes for that precision.
  const bool is_short = !is_long && train_begins_ && span.packets >= kSlowTrainPackets &&
                        span.bytes >= std::uint64_t{kSlowTrainPackets} * largest_ &&
                        span.came_in >= kSlowTrainTime;
  Measured measured{.is_short = is_short};
  if (is_long || is_short) {
    if (span.sent_in * 100 <= span.came_in * kMaxSentPercent) {
      measured.train = bits_per_second(span.bytes, span.came_in);
    }
    train_begins_ = false;
  }
  if (is_long) train_from_ = train_to_;
  train_to_ = here;
  return measured;
}

std::uint64_t TrainMeter::measure_bound(const Checkpoint& here) {
  if (!bound_from_ || here.at - bound_from_->at > kMaxTrainTime) {
    bound_from_ = here;
    return 0;
  }
  const Span span = between(*bound_from_, here);
  if (span.packets < kTrainPackets || span.came_in < kMinTrainTime) return 0;
  bound_from_ = here;
  return bound_of(span);
}

/// Bytes that arrived within less than kMinTrainTime certainly arrived within that time.
std::uint64_t TrainMeter::bound_of(const Span& span) const {
  return bits_per_second(span.bytes - std::min<std::uint64_t>(span.bytes, largest_),
                         std::max({span.came_in, span.sent_in, kMinTrainTime}));
}

}  // namespace gradplane::awareness
