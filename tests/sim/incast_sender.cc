// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/incast_sender.h"

namespace gradplane::sim::incast {

void SenderState::begin(std::uint32_t blocks, std::uint32_t unscheduled) {
  blocks_ = blocks;
  fresh_ = 0;
  ++iteration;
  lost_.clear();
  in_flight_.clear();
  unscheduled_blocks_ = unscheduled;
  probes_ = false;
  probes = 0;
  begin_burst();
}

/// There was nothing to send, and now there is.
void SenderState::begin_burst() {
  burst_from_ = sent;
  unscheduled_until_ = sent + unscheduled_blocks_;
  announces_ = unscheduled_blocks_ == 0;
  known_ = false;
}

bool SenderState::may_send() const {
  if (probes_) return true;
  return static_cast<std::int32_t>(total - sent) > 0 ||
         static_cast<std::int32_t>(unscheduled_until_ - sent) > 0;
}

bool SenderState::next(Packet& packet, bool ignores_grants, Instant now) {
  packet.iteration = iteration;
  if (announces_) {
    announces_ = false;
    packet.announcement = true;
    packet.sent = sent;
    packet.waiting = waiting();
    return true;
  }
  if (waiting() == 0 || !(ignores_grants || may_send())) return false;
  probes_ = false;
  if (lost_.empty()) {
    packet.block = fresh_++;
  } else {
    packet.block = lost_.front();
    lost_.pop_front();
    ++sent_again;
  }
  packet.sent = ++sent;
  packet.waiting = waiting();
  if (in_flight_.empty()) heard_at = now;
  in_flight_.push_back({packet.sent, packet.block});
  return true;
}

void SenderState::on_grant(std::uint32_t new_total) {
  if (static_cast<std::int32_t>(new_total - total) <= 0) return;
  total = new_total;
  known_ = true;
}

/// The network keeps the order, so what was sent before is lost.
void SenderState::on_ack(std::uint32_t acked, Instant now) {
  heard_at = now;
  probes = 0;
  if (static_cast<std::int32_t>(acked - burst_from_) > 0) known_ = true;
  while (!in_flight_.empty() && static_cast<std::int32_t>(in_flight_.front().sent - acked) < 0) {
    if (waiting() == 0) begin_burst();
    lost_.push_back(in_flight_.front().block);
    in_flight_.pop_front();
  }
  if (!in_flight_.empty() && in_flight_.front().sent == acked) in_flight_.pop_front();
}

void SenderState::probe(Instant now) {
  heard_at = now;
  ++probes;
  if (in_flight_.empty()) {
    announces_ = !known_;
    return;
  }
  probes_ = true;
  lost_.push_front(in_flight_.front().block);
  in_flight_.pop_front();
}

}  // namespace gradplane::sim::incast
