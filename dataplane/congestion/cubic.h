// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/congestion/additive_window.h"

namespace gradplane::congestion {

/// CUBIC (RFC 9438). The window grows as a cubic function of the time since the last reduction:
/// first towards the window before that reduction, then away from it. It never grows more slowly
/// than Reno's. Slow start is that of RFC 5681, without HyStart++.
class Cubic final : public Controller {
 public:
  std::string_view name() const override { return "cubic"; }
  void on_sent(Instant now, std::uint32_t wire_bytes, std::uint32_t in_flight_blocks) override;
  void on_ack(const AckEvent& event) override;
  void on_loss(const LossEvent& event) override;
  void set_gain(double gain) override { gain_ = gain; }
  Decision decide(Instant now) const override;
  Stats stats() const override { return reactions_.stats(); }

  /// RFC 9438 equation 1: the window, in blocks, at this time after the last reduction.
  double cubic_window(Duration since) const;

 private:
  void reduce(Instant now, Duration rtt, Reason why);
  void begin_epoch(Instant now);
  void stop_clock(Instant now);
  void avoid(const AckEvent& event);

  double blocks_ = kInitialWindow;
  double threshold_ = kMaxWindow;
  double gain_ = 1;
  double last_max_ = 0;          // W_max, blocks; 0: none
  double k_seconds_ = 0;         // K: when the curve is back at W_max
  double reno_blocks_ = 0;       // W_est
  double before_reduction_ = 0;  // cwnd_prior
  bool in_epoch_ = false;
  Instant epoch_;
  Instant counted_until_;  // until when it is decided which time belongs to the epoch
  RestClock rest_;
  Reactions reactions_;
};

}  // namespace gradplane::congestion
