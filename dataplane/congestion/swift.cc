// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/swift.h"

#include <cmath>

namespace gradplane::congestion {
namespace {

// Section 3.2, algorithm 1, with the constants of the authors' reference simulations: ai in blocks
// in a round trip, beta, max_mdf.
constexpr double kAdditive = 1.0;
constexpr double kBeta = 0.8;
constexpr double kMaxDecrease = 0.5;
// Section 3.5, flow-based scaling: many flows have small windows, and tolerate a longer queue.
constexpr double kScaledFrom = 0.1;
constexpr double kScaledTo = 100;
constexpr double kScaledRange = 5;  // times the queue that is tolerated anyway
// Section 3.6: after this many consecutive silences the window is the smallest one.
constexpr std::uint32_t kSilencesToReset = 5;
// The paper's base target assumes hardware timestamps; this one also covers a poll loop. On a slow
// link it is the time of this many blocks.
constexpr Duration kMinQueue = Duration::us(500);
constexpr double kQueueBlocks = 16;
// If the rate of the link is not known, the queue may be as long as the path, up to this time. The
// round trip contains the time of one block on the slowest link, so there is room for one block.
// Without that room, a second block would halve the window again and again.
constexpr Duration kMaxUnknownQueue = Duration::ms(10);
constexpr double kFirstWindow = 16;

}  // namespace

Swift::Swift(Path path) : path_(path), blocks_(kFirstWindow) {
  set_link_rate(path.link_bits_per_second);
}

void Swift::set_link_rate(std::uint64_t bits_per_second) {
  path_.link_bits_per_second = bits_per_second;
  queue_ = kMinQueue;
  const double rate = path_.blocks_per_second(static_cast<double>(bits_per_second));
  if (rate <= 0) return;
  queue_ = std::max(queue_, Duration::ns(static_cast<std::int64_t>(kQueueBlocks / rate * 1e9)));
}

Duration Swift::target(Duration min_rtt) const {
  const bool is_known = path_.link_bits_per_second > 0;
  const Duration queue = is_known ? queue_ : std::max(queue_, std::min(min_rtt, kMaxUnknownQueue));
  const double range = kScaledRange * queue.to_seconds();
  const double alpha = range / (1 / std::sqrt(kScaledFrom) - 1 / std::sqrt(kScaledTo));
  const double beta = -alpha / std::sqrt(kScaledTo);
  const double scaled = std::clamp(alpha / std::sqrt(blocks_) + beta, 0.0, range);
  return min_rtt + queue + Duration::ns(static_cast<std::int64_t>(scaled * 1e9));
}

/// Section 3.2, algorithm 1.
void Swift::on_ack(const AckEvent& event) {
  if (event.smoothed_rtt > Duration()) rtt_ = event.smoothed_rtt;
  // The flow can do nothing about a queue on the way back. If two directions took each other's
  // blocks for a queue, both would stop.
  if (event.rtt > Duration()) {
    delay_ = event.queueing ? event.min_rtt + *event.queueing : event.rtt;
  }
  if (event.acked_blocks > 0) silences_ = 0;
  const Duration limit = target(event.min_rtt);
  if (delay_ < limit) {
    if (event.acked_blocks == 0 || !window_is_used(event, blocks_)) return;
    const double share = blocks_ >= 1 ? event.acked_blocks / blocks_ : event.acked_blocks;
    blocks_ = std::min(blocks_ + gain_ * kAdditive * share, kMaxWindow);
    reactions_.set_reason(Reason::kGrowth);
  } else if (event.rtt > Duration()) {
    const double excess = (delay_ - limit).to_seconds() / delay_.to_seconds();
    reduce(event.now, rtt_, 1 - kBeta * excess, Reason::kDelay);
  }
}

void Swift::reduce(Instant now, Duration rtt, double factor, Reason why) {
  if (!reactions_.may_react(now)) return;
  blocks_ = std::max(blocks_ * std::max(factor, 1 - kMaxDecrease), kMinWindow);
  reactions_.reacted(now, rtt, why);
}

/// Section 3.6.
void Swift::on_loss(const LossEvent& event) {
  if (event.why == LossEvent::Why::kGap) {
    const bool counts = event.lost_blocks > 0 && reactions_.is_news(event);
    if (counts) reduce(event.now, rtt_, 1 - kMaxDecrease, Reason::kLoss);
    return;
  }
  if (!reactions_.may_react(event.now)) return;
  reduce(event.now, rtt_, 1 - kMaxDecrease, Reason::kSilence);
  if (++silences_ >= kSilencesToReset) blocks_ = kMinWindow;
}

/// Section 3.4: below one block, the pause between two blocks is rtt / cwnd.
Decision Swift::decide(Instant /*now*/) const {
  const double rtt_s = std::max(rtt_, kShortestRoundTrip).to_seconds();
  const double paced = blocks_ < 1 ? path_.bits_per_second(blocks_ / rtt_s) : 0;
  return {.window_blocks = blocks_, .pacing_bits_per_second = blocks_ < 1 ? pacing_of(paced) : 0};
}

}  // namespace gradplane::congestion
