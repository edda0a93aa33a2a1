// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "dataplane/base/time.h"
#include "dataplane/hop/credit_line.h"
#include "dataplane/hop/flow.h"

namespace gradplane::sim::incast {

struct Packet {
  std::uint32_t sender = 0;
  std::uint32_t iteration = 0;
  std::uint32_t block = 0;
  std::uint32_t sent = 0;     // the sender's count, with this one
  std::uint32_t waiting = 0;  // what it still has queued
  std::size_t wire_bytes = 0;
  Instant sent_at;
  Duration round_trip;  // that the sender measured last; zero: none yet
  bool again = false;   // the block was sent before
  bool marked = false;  // on the way; its ack tells of it
  // In its ack, as in a grant.
  std::uint32_t total = 0;
  std::uint32_t unscheduled = 0;
};

/// One sender, with the production rules of credit (hop::CreditLine) and, where it has one, a
/// production controller. What later packets prove lost goes first.
class SenderState {
 public:
  /// `blocks` are to be sent.
  void begin(std::uint32_t blocks);
  /// The next packet, without what the network knows; false when the sender may not send.
  /// `granted`: whether it takes credit to send.
  bool next(Packet& packet, bool granted, Instant now);
  /// A grant, or an ack that says the same.
  void on_credit(std::uint32_t total, std::uint32_t unscheduled);
  void on_ack(const Packet& acked, Instant now);
  /// `packet`, which next() gave, has left.
  void on_sent(const Packet& packet, Instant now);
  /// When next() should be asked again, if nothing happens before.
  Instant next_time(bool granted, Instant now) const;
  /// Nothing was heard: the oldest block goes again, whatever the credit.
  void probe(Instant now);
  bool idle() const { return fresh_ == blocks_ && lost_.empty() && in_flight_.empty(); }

  hop::CreditLine credit{0};
  std::optional<hop::Flow> flow;  // none: credit alone limits
  double phase_blocks = 0;        // that the controller is told an iteration brings
  Instant wake_at = Instant::never();
  std::uint32_t iteration = 0;
  std::uint64_t sent_again = 0;
  Instant uplink_free;
  Instant heard_at;          // of what is in flight; grants say nothing about it
  std::uint32_t probes = 0;  // since then

 private:
  struct Flight {
    std::uint32_t sent = 0;
    std::uint32_t block = 0;
    Instant sent_at;
  };
  std::uint32_t waiting() const {
    return blocks_ - fresh_ + static_cast<std::uint32_t>(lost_.size());
  }
  /// In the past: now.
  Instant may_send_at(bool granted) const;

  std::uint32_t blocks_ = 0;
  std::uint32_t fresh_ = 0;  // the first block that was never sent
  bool probes_ = false;
  std::uint32_t acked_ = 0;  // packets of this iteration
  Duration round_trip_;
  std::deque<std::uint32_t> lost_;
  std::deque<Flight> in_flight_;
};

}  // namespace gradplane::sim::incast
