// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/congestion/path.h"
#include "dataplane/congestion/reactions.h"

namespace gradplane::congestion {

/// DCQCN (Zhu et al., SIGCOMM 2015, section 3.1). A congestion notification cuts the rate by the
/// smoothed share of notifications; a timer and a byte counter raise it again. A notification is an
/// ack with a mark, at most one in a round trip, or a loss, because our networks lose packets. The
/// published constants are for 40 Gbit/s; here they scale with the link.
class Dcqcn final : public Controller {
 public:
  explicit Dcqcn(Path path);

  std::string_view name() const override { return "dcqcn"; }
  void on_sent(Instant now, std::uint32_t wire_bytes, std::uint32_t in_flight_blocks) override;
  void on_ack(const AckEvent& event) override;
  void on_loss(const LossEvent& event) override;
  void on_tick(Instant now) override;
  Instant next_tick() const override;
  void set_gain(double gain) override { gain_ = gain; }
  /// A rate that was never reduced follows the line rate. Otherwise it stays, within the limits
  /// that the line sets.
  void set_link_rate(std::uint64_t bits_per_second) override;
  Decision decide(Instant now) const override;
  Stats stats() const override { return reactions_.stats(); }

  /// For tests.
  double alpha() const { return alpha_; }
  double rate_bits_per_second() const { return rate_; }

 private:
  void notify(Instant now, double alpha, Reason why);
  void raise();
  Duration period() const;

  Path path_;
  double line_;    // bits per second: the largest rate, and the first
  double rate_;    // R_C, bits per second
  double target_;  // R_T, bits per second
  double alpha_ = 1;
  double gain_ = 1;
  Duration rtt_;
  bool limited_ = false;  // true since the first notification: timers run
  Instant next_alpha_;
  Instant next_raise_;
  double bytes_ = 0;                // sent since the byte counter last wrapped
  std::uint32_t timer_rounds_ = 0;  // T
  std::uint32_t byte_rounds_ = 0;   // BC
  Reactions reactions_;
};

}  // namespace gradplane::congestion
