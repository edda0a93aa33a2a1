// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/congestion/path.h"
#include "dataplane/congestion/reactions.h"

namespace gradplane::congestion {

/// Swift (Kumar et al., SIGCOMM 2020, section 3). The window grows additively while the delay is
/// below its target, and shrinks in proportion to the excess at most once in a round trip. A window
/// below one block is paced, so that many senders can share a short queue. Samples exclude the time
/// for which the peer held an ack back. So there is one delay, which covers the network and the
/// queues of both hosts. Swift ignores marks.
class Swift final : public Controller {
 public:
  explicit Swift(Path path);

  std::string_view name() const override { return "swift"; }
  void on_ack(const AckEvent& event) override;
  void on_loss(const LossEvent& event) override;
  void set_gain(double gain) override { gain_ = gain; }
  /// The target of the delay follows the link. The window stays.
  void set_link_rate(std::uint64_t bits_per_second) override;
  Decision decide(Instant now) const override;
  Stats stats() const override { return reactions_.stats(); }

  /// Section 3.5: the target of the delay for a path with this minimum round trip; zero means never
  /// measured.
  Duration target(Duration min_rtt) const;

 private:
  void reduce(Instant now, Duration rtt, double factor, Reason why);

  Path path_;
  Duration queue_;  // the part of the target that is not the path's own
  double blocks_;
  double gain_ = 1;
  Duration delay_;  // the newest sample; zero: none
  Duration rtt_;
  std::uint32_t silences_ = 0;  // consecutive silences
  Reactions reactions_;
};

}  // namespace gradplane::congestion
