// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/congestion/path.h"
#include "dataplane/congestion/reactions.h"

namespace gradplane::congestion {

/// The default controller. The window follows the delay (Kumar et al., Swift, SIGCOMM 2020, section
/// 3.2, simplified). When the queueing delay exceeds its target, the window shrinks in proportion
/// to the excess, at most once per round trip. Acks make it grow as long as the flow uses it,
/// except in the round trip after it has shrunk. Random loss alone does not shrink it; the loss of
/// a quarter of a window does. If the rate of the peer's link is known, this rate paces the flow,
/// and the window covers the path whatever the delay is.
class Delay final : public Controller {
 public:
  explicit Delay(Path path);

  std::string_view name() const override { return "delay"; }
  void on_ack(const AckEvent& event) override;
  void on_loss(const LossEvent& event) override;
  void set_gain(double gain) override { gain_ = gain; }
  void set_link_rate(std::uint64_t bits_per_second) override;
  Decision decide(Instant now) const override;
  Stats stats() const override { return reactions_.stats(); }

 private:
  void measure(const AckEvent& event);
  void grow(const AckEvent& event);
  void shrink(Instant now, double factor, Reason why);
  void cover_path(Instant now);
  double floor() const { return window_of_rate(paced_blocks_per_second_, rtt_); }

  Path path_;
  double paced_blocks_per_second_;
  double blocks_;
  double gain_ = 1;
  bool slow_start_ = true;
  bool has_rtt_ = false;
  Duration rtt_;  // smoothed
  Instant cover_again_at_;
  std::uint32_t epoch_acked_ = 0;
  std::uint32_t epoch_lost_ = 0;
  Instant epoch_end_;
  Reactions reactions_;
};

}  // namespace gradplane::congestion
