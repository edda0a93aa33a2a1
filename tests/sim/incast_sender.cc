// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/incast_sender.h"

#include <algorithm>

namespace gradplane::sim::incast {

void SenderState::begin(std::uint32_t blocks, std::uint32_t unscheduled) {
  blocks_ = blocks;
  fresh_ = 0;
  ++iteration;
  lost_.clear();
  if (flow) flow->on_forgotten(flow->in_flight());
  if (flow) flow->on_phase(0);
  acked_ = 0;
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

bool SenderState::next(Packet& packet, bool granted, Instant now) {
  packet.iteration = iteration;
  packet.sent_at = now;
  if (announces_ && granted) {
    announces_ = false;
    packet.announcement = true;
    packet.sent = sent;
    packet.waiting = waiting();
    return true;
  }
  if (waiting() == 0 || (granted && !may_send())) return false;
  if (flow && !flow->may_send(now)) return false;
  probes_ = false;
  packet.again = !lost_.empty();
  if (packet.again) {
    packet.block = lost_.front();
    lost_.pop_front();
    ++sent_again;
  } else {
    packet.block = fresh_++;
  }
  packet.sent = ++sent;
  packet.waiting = waiting();
  if (in_flight_.empty()) heard_at = now;
  in_flight_.push_back({packet.sent, packet.block, now});
  return true;
}

void SenderState::on_sent(const Packet& packet, Instant now) {
  if (flow && !packet.announcement) flow->on_sent(now, packet.wire_bytes, packet.again);
  if (flow && waiting() == 0) flow->note_app_limited();
}

Instant SenderState::next_time(Instant now) const {
  if (!flow || idle()) return Instant::never();
  const Instant tick = flow->controller().next_tick();
  const bool held_up = waiting() > 0 && !flow->may_send(now);
  return held_up ? std::min(flow->next_send(), tick) : tick;
}

void SenderState::on_grant(std::uint32_t new_total) {
  if (static_cast<std::int32_t>(new_total - total) <= 0) return;
  total = new_total;
  known_ = true;
}

/// The network keeps the order, so what was sent before is lost.
void SenderState::on_ack(const Packet& acked, Instant now) {
  heard_at = now;
  probes = 0;
  if (static_cast<std::int32_t>(acked.sent - burst_from_) > 0) known_ = true;
  std::uint32_t lost = 0;
  Instant newest_lost;
  while (!in_flight_.empty() &&
         static_cast<std::int32_t>(in_flight_.front().sent - acked.sent) < 0) {
    if (waiting() == 0) begin_burst();
    lost_.push_back(in_flight_.front().block);
    newest_lost = in_flight_.front().sent_at;
    in_flight_.pop_front();
    ++lost;
  }
  const bool was_in_flight = !in_flight_.empty() && in_flight_.front().sent == acked.sent;
  if (was_in_flight) in_flight_.pop_front();
  if (!flow) return;
  flow->on_rtt(now, now - acked.sent_at);
  flow->on_acked(now, was_in_flight ? 1 : 0, acked.marked ? 1 : 0);
  if (lost > 0) flow->on_lost(now, lost, newest_lost);
  flow->on_phase(++acked_ / phase_blocks);
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
  if (!flow) return;
  flow->on_forgotten(1);
  flow->on_silence(now);
  flow->on_probe();
}

}  // namespace gradplane::sim::incast
