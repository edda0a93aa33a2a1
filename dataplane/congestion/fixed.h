// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/congestion/path.h"
#include "dataplane/congestion/reactions.h"

namespace gradplane::congestion {

/// A constant rate, whatever happens. It is for a path that the operator has reserved, and a
/// baseline for all other controllers.
class Fixed final : public Controller {
 public:
  /// `rate_bits_per_second` 0: the rate of the link; if that is not known, kMaxWindow is the only
  /// limit.
  Fixed(Path path, std::uint64_t rate_bits_per_second);

  std::string_view name() const override { return "fixed"; }
  void on_ack(const AckEvent& event) override;
  void on_loss(const LossEvent& /*event*/) override {}
  void set_link_rate(std::uint64_t bits_per_second) override {
    if (follows_link_) rate_ = bits_per_second;
  }
  Decision decide(Instant now) const override;
  Stats stats() const override { return {.reason = Reason::kRate, .reductions = 0}; }

 private:
  Path path_;
  bool follows_link_;
  std::uint64_t rate_;  // bits per second
  Duration rtt_;
};

}  // namespace gradplane::congestion
