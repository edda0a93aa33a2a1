// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/congestion/additive_window.h"

namespace gradplane::congestion {

/// TCP Reno (RFC 5681): it adds one block per round trip, and halves the window upon a loss or a
/// mark (RFC 3168 section 6.1.2).
class Reno final : public Controller {
 public:
  std::string_view name() const override { return "reno"; }
  void on_sent(Instant now, std::uint32_t wire_bytes, std::uint32_t in_flight_blocks) override;
  void on_ack(const AckEvent& event) override;
  void on_loss(const LossEvent& event) override;
  void set_gain(double gain) override { window_.set_gain(gain); }
  Decision decide(Instant now) const override;
  Stats stats() const override { return window_.stats(); }

 private:
  AdditiveWindow window_;
};

}  // namespace gradplane::congestion
