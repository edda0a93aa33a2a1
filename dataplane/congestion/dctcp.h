// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/congestion/additive_window.h"

namespace gradplane::congestion {

/// DCTCP (RFC 8257). It works as Reno does, but a round trip with marks reduces the window only in
/// proportion to the recent share of marked packets. Our receiver counts blocks in marked packets,
/// so the share is exact however many blocks one ack reports.
class Dctcp final : public Controller {
 public:
  std::string_view name() const override { return "dctcp"; }
  void on_sent(Instant now, std::uint32_t wire_bytes, std::uint32_t in_flight_blocks) override;
  void on_ack(const AckEvent& event) override;
  void on_loss(const LossEvent& event) override;
  void set_gain(double gain) override { window_.set_gain(gain); }
  Decision decide(Instant now) const override;
  Stats stats() const override { return window_.stats(); }

  /// DCTCP.Alpha: the smoothed share of blocks that are marked, 0 to 1. For tests.
  double alpha() const { return alpha_; }

 private:
  void observe(const AckEvent& event);

  AdditiveWindow window_;
  double alpha_ = 1;          // RFC 8257 section 4.2: the first mark counts as in Reno
  std::uint64_t acked_ = 0;   // blocks in this observation window
  std::uint64_t marked_ = 0;  // marked blocks among these
  Instant observed_until_;
  bool observing_ = false;
};

}  // namespace gradplane::congestion
