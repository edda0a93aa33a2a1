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
  std::uint32_t sent = 0;     // the sender's count, including this block
  std::uint32_t waiting = 0;  // blocks that the sender still has queued
  std::size_t wire_bytes = 0;
  Instant sent_at;
  Duration round_trip;  // the sender's latest measurement; zero: none yet
  bool again = false;   // the block is a retransmission
  bool marked = false;  // the network has marked it; its ack reports that
  // Fields of its ack, as in a grant.
  std::uint32_t total = 0;
  std::uint32_t unscheduled = 0;
};

/// One sender, with the production rules for credit (hop::CreditLine) and, if set, a production
/// controller. Lost blocks go before new ones.
class SenderState {
 public:
  /// Begins an iteration of `blocks` blocks.
  void begin(std::uint32_t blocks);
  /// Fills in the next packet, but not the network's fields. Returns false if the sender may not
  /// send. `granted`: whether it needs credit to send.
  bool next(Packet& packet, bool granted, Instant now);
  /// Takes the credit from a grant or an ack.
  void on_credit(std::uint32_t total, std::uint32_t unscheduled);
  void on_ack(const Packet& acked, Instant now);
  /// A packet that next() returned has left.
  void on_sent(const Packet& packet, Instant now);
  /// When to call next() again, unless something happens before.
  Instant next_time(bool granted, Instant now) const;
  /// After a silence, sends the oldest block again, even without credit.
  void probe(Instant now);
  bool idle() const { return fresh_ == blocks_ && lost_.empty() && in_flight_.empty(); }

  hop::CreditLine credit{0};
  std::optional<hop::Flow> flow;  // none: only credit limits the sender
  double phase_blocks = 0;        // the blocks of an iteration, as the controller is told
  Instant wake_at = Instant::never();
  std::uint32_t iteration = 0;
  std::uint64_t sent_again = 0;
  Instant uplink_free;
  // When the silence about blocks in flight began. A grant does not end it.
  Instant heard_at;
  std::uint32_t probes = 0;  // in this silence

 private:
  struct Flight {
    std::uint32_t sent = 0;
    std::uint32_t block = 0;
    Instant sent_at;
  };
  std::uint32_t waiting() const {
    return blocks_ - fresh_ + static_cast<std::uint32_t>(lost_.size());
  }
  /// When the sender may send next. A time in the past means now.
  Instant may_send_at(bool granted) const;

  std::uint32_t blocks_ = 0;
  std::uint32_t fresh_ = 0;  // the first block that has not been sent yet
  bool probes_ = false;
  std::uint32_t acked_ = 0;  // acked packets in this iteration
  Duration round_trip_;
  std::deque<std::uint32_t> lost_;
  std::deque<Flight> in_flight_;
};

}  // namespace gradplane::sim::incast
