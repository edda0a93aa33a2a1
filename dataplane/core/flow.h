// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"

namespace gradplane::core {

/// What a paced flow may send at once after a pause.
inline constexpr Duration kPacerBurst = Duration::ms(1);

/// A token bucket. Tokens pile up to `burst_bytes`, so that a poll loop that naps still fills its
/// rate.
class Pacer {
 public:
  /// `rate_bits_per_second` 0 means: never wait.
  Pacer(std::uint64_t rate_bits_per_second, std::size_t burst_bytes);

  bool may_send(Instant now) const { return rate_ == 0 || free_at_ <= now; }
  /// When may_send() becomes true; not later than now when it is.
  Instant next_send() const { return free_at_; }
  void on_sent(Instant now, std::size_t bytes);

 private:
  std::uint64_t rate_;  // bits per second
  Duration burst_;
  Instant free_at_ = Instant::from_ns(INT64_MIN / 4);
};

/// Congestion and timing state towards one peer, for all rounds of a job.
///
/// The window follows the delay (Kumar et al., Swift, SIGCOMM 2020, section 3.1, simplified): it
/// grows while the round trip is under its target, shrinks in proportion to the excess, at most
/// once per round trip. Random loss alone does not shrink it; losing a quarter of a window does.
class Flow {
 public:
  struct Limits {
    std::uint64_t rate_bits_per_second = 0;  // 0: not paced
    std::size_t block_wire_bytes = 1500;
  };
  explicit Flow(Limits limits);

  bool may_send(Instant now) const { return has_room() && pacer_.may_send(now); }
  /// When pacing lets the next block go; Instant::never() while the window is full.
  Instant next_send() const;

  void on_sent(Instant now, std::size_t wire_bytes, bool retransmission);
  /// Of a block that is in flight already.
  void on_copy_sent(Instant now, std::size_t wire_bytes);
  void on_acked(Instant now, std::uint32_t blocks);
  void on_rtt(Instant now, Duration rtt);
  void on_lost(Instant now, std::uint32_t blocks);
  /// Whether an echo is later than all before: then it measures a round trip, whatever it acks.
  bool is_newer_echo(std::uint32_t echo_us) const {
    return static_cast<std::int32_t>(echo_us - newest_echo_us_) > 0;
  }
  void note_echo(std::uint32_t echo_us) { newest_echo_us_ = echo_us; }
  /// Blocks that are no longer waited for, without a word from the peer about the network.
  void on_forgotten(std::uint32_t blocks);

  /// The next block is a probe: it goes whatever the window says. A window full of blocks that a
  /// dead link swallowed would else keep the link from being seen to live again.
  void on_probe() { probe_due_ = true; }

  /// A peer has not answered several probes in a row.
  void on_silence(Instant now);

  /// How long to wait for an ack before probing (RFC 6298 with a floor for ack delay and
  /// scheduling).
  Duration probe_timeout() const;
  /// A later packet must have been sent this much later before an earlier one counts as lost.
  Duration reorder_window() const;

  struct Counts {
    std::uint64_t sent = 0;  // blocks, with retransmissions
    std::uint64_t retransmitted = 0;
    std::uint64_t suspected_lost = 0;
  };
  const Counts& counts() const { return counts_; }
  /// Whether more than a thousandth of all blocks were lost so far.
  bool is_lossy() const { return counts_.suspected_lost * 1000 > counts_.sent; }
  std::uint32_t window() const { return static_cast<std::uint32_t>(window_); }
  std::uint32_t in_flight() const { return in_flight_; }
  Duration smoothed_rtt() const { return smoothed_; }
  Duration min_rtt() const { return min_rtt_; }

 private:
  void shrink(Instant now, double factor);
  double delay_floor() const;  // blocks
  void cover_path(Instant now);
  bool has_room() const { return probe_due_ || in_flight_ < window(); }

  Pacer pacer_;
  double paced_blocks_per_second_;
  double window_ = 0;  // blocks
  bool slow_start_ = true;
  std::uint32_t in_flight_ = 0;
  bool probe_due_ = false;
  std::uint32_t newest_echo_us_ = 0;
  bool has_rtt_ = false;
  Duration smoothed_;
  Duration variance_;
  Duration min_rtt_;
  Duration next_min_rtt_;
  Instant min_rtt_until_;
  Instant shrink_again_at_;
  Instant cover_again_at_;
  std::uint32_t epoch_acked_ = 0;
  std::uint32_t epoch_lost_ = 0;
  Instant epoch_end_;
  Counts counts_;
};

}  // namespace gradplane::core
