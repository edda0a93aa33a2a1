// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/job/state.h"
#include "dataplane/wire/ack.h"

namespace gradplane::job {

/// Finds rounds in which nothing moves any more, whatever the cause, and the peer that causes it.
class Watchdog {
 public:
  explicit Watchdog(State& state) : state_(state) {}

  /// Checks whether anything has moved, and asks parents that have not answered for long.
  void look(Instant now);
  /// When look() is due; Instant::never() while no round is open.
  Instant next_look() const;
  /// Checks an ack of pushes. A parent may never take back what it has acknowledged, nor end a
  /// round before this node has its results. If it does, the round is stalled, whatever made this
  /// node believe the first ack.
  void check_answer(const Round& round, aggregate::Tree& tree, const wire::AckPacket& ack,
                    std::span<const std::uint64_t> words, Instant now);
  /// The host has taken the event about a stall.
  void on_told() { is_told_ = false; }

 private:
  struct StalledRound {
    std::uint32_t round = 0;
    Stall::Reason reason = Stall::Reason::kPushesUnacked;
    hop::PeerIndex peer;
    std::uint32_t blocks = 0;
  };

  bool is_watching() const { return state_.watch.is_on() && state_.open_rounds > 0; }
  const Round* oldest_waiting(const Plan& plan, const aggregate::Tree& tree) const;
  void ask(const Plan& plan, aggregate::Tree& tree, Instant now);
  static void count_silence(const Plan& plan, hop::OutEdge& push);
  bool awaits_receiver(const Plan& plan, const hop::OutEdge& edge, std::size_t slot) const;
  void find_in(const Plan& plan, const aggregate::Tree& tree,
               std::optional<StalledRound>& found) const;
  void report(const StalledRound& stalled);

  State& state_;
  bool is_told_ = false;  // an event about a stall has not been taken yet
};

}  // namespace gradplane::job
