// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "dataplane/base/time.h"
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
  bool announcement = false;
  bool again = false;   // the block was sent before
  bool marked = false;  // on the way; its ack tells of it
};

/// The sender's side of the rules of grants: send while fewer were sent than granted, and as many
/// unscheduled ones at the start of a burst; what later packets prove lost goes first.
class SenderState {
 public:
  /// `blocks` are to be sent, and `unscheduled` of them may go without a grant; with none the
  /// sender announces itself.
  void begin(std::uint32_t blocks, std::uint32_t unscheduled);
  /// The next packet, without what the network knows; false when the sender may not send.
  /// `granted`: whether it takes credit to send.
  bool next(Packet& packet, bool granted, Instant now);
  void on_grant(std::uint32_t new_total);
  void on_ack(const Packet& acked, Instant now);
  /// `packet`, which next() gave, has left.
  void on_sent(const Packet& packet, Instant now);
  /// When the controller should be asked again, if nothing happens before.
  Instant next_time(Instant now) const;
  /// Nothing was heard: the oldest block goes again, whatever the credit; who has none in flight
  /// and was never heard announces itself again. To lack credit is no reason to send.
  void probe(Instant now);
  bool idle() const { return fresh_ == blocks_ && lost_.empty() && in_flight_.empty(); }

  std::optional<hop::Flow> flow;  // none: credit alone limits
  double phase_blocks = 0;        // that the controller is told an iteration brings
  Instant wake_at = Instant::never();
  std::uint32_t sent = 0;   // packets, modulo 2^32
  std::uint32_t total = 0;  // granted
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
  bool may_send() const;
  void begin_burst();

  std::uint32_t blocks_ = 0;
  std::uint32_t fresh_ = 0;  // the first block that was never sent
  std::uint32_t unscheduled_blocks_ = 0;
  std::uint32_t burst_from_ = 0;         // what was sent before
  std::uint32_t unscheduled_until_ = 0;  // may be sent up to this count
  bool announces_ = false;
  bool probes_ = false;
  bool known_ = false;       // the receiver has answered to this burst, by credit or by acks
  std::uint32_t acked_ = 0;  // packets of this iteration
  std::deque<std::uint32_t> lost_;
  std::deque<Flight> in_flight_;
};

}  // namespace gradplane::sim::incast
