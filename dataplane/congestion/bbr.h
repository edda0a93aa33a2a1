// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>

#include "dataplane/congestion/path.h"
#include "dataplane/congestion/reactions.h"

namespace gradplane::congestion {

/// The controller that LTP uses (Chen et al., IWQoS 2023). It derives window and pacing rate from
/// the maximum delivery rate and the minimum round trip of recent rounds, as BBR does (Cardwell et
/// al., ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00). No loss shrinks the
/// window; only silence does. Acks here report many blocks at once and may be held back. So
/// delivery rates are measured over whole round trips, and the window has room for the blocks that
/// are sent while an ack is held back.
class Bbr final : public Controller {
 public:
  explicit Bbr(Path path) : path_(path) {}

  std::string_view name() const override { return "bbr"; }
  void on_sent(Instant now, std::uint32_t wire_bytes, std::uint32_t in_flight_blocks) override;
  void on_ack(const AckEvent& event) override;
  void on_loss(const LossEvent& event) override;
  /// Scales how far it probes above the measured rate; MLTCP over BBR is not published.
  void set_gain(double gain) override { gain_ = gain; }
  Decision decide(Instant now) const override;
  Stats stats() const override { return reactions_.stats(); }

  /// BtlBw, in blocks per second; 0: not measured.
  double bottleneck_rate() const;
  /// RTprop. For tests.
  Duration round_trip() const { return rtprop_; }

 private:
  enum class State : std::uint8_t { kStartup, kDrain, kProbe, kProbeRtt };

  void measure_round_trip(const AckEvent& event);
  void begin_round(Instant now);
  void count_round(const AckEvent& event);
  void end_round(Instant now, Duration elapsed);
  void note_rate(double blocks_per_second);
  void advance(const AckEvent& event);
  double pacing_gain() const;
  double path_blocks() const { return bottleneck_rate() * rtprop_.to_seconds(); }
  /// The blocks that pacing sends while an ack is held back.
  double held_blocks() const { return bottleneck_rate() * kAckHolding.to_seconds(); }

  static constexpr std::size_t kRateRounds = 10;

  Path path_;
  State state_ = State::kStartup;
  double gain_ = 1;
  std::array<double, kRateRounds> rates_{};  // blocks per second, of the last rounds
  std::size_t next_rate_ = 0;
  Duration rtprop_;  // zero: not measured
  Instant rtprop_at_;
  // The round lasts from one ack, or the end of a pause, to the first ack a round trip later.
  bool in_round_ = false;
  bool pipe_was_empty_ = false;
  bool round_is_app_limited_ = false;
  Instant round_start_;
  std::uint64_t round_acked_ = 0;
  std::uint64_t round_sent_ = 0;
  double previous_send_rate_ = 0;  // blocks per second
  double full_rate_ = 0;           // in startup: the largest rate that was worth going on for
  int full_rounds_ = 0;
  std::size_t cycle_ = 0;  // the step of kProbe
  Instant state_until_;
  bool silent_ = false;
  Reactions reactions_;
};

}  // namespace gradplane::congestion
