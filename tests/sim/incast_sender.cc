// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/incast_sender.h"

#include <algorithm>

namespace gradplane::sim::incast {

void SenderState::begin(std::uint32_t blocks) {
  blocks_ = blocks;
  fresh_ = 0;
  ++iteration;
  lost_.clear();
  if (flow) flow->on_forgotten(flow->in_flight());
  if (flow) flow->on_phase(0);
  acked_ = 0;
  in_flight_.clear();
  probes_ = false;
  probes = 0;
}

Instant SenderState::may_send_at(bool granted) const {
  Instant at;
  if (granted && !probes_) at = credit.next_send(static_cast<std::uint32_t>(in_flight_.size()));
  if (flow) at = std::max(at, flow->next_send());
  return at;
}

bool SenderState::next(Packet& packet, bool granted, Instant now) {
  if (waiting() == 0 || may_send_at(granted) > now) return false;
  probes_ = false;
  packet.iteration = iteration;
  packet.sent_at = now;
  packet.round_trip = round_trip_;
  packet.again = !lost_.empty();
  if (packet.again) {
    packet.block = lost_.front();
    lost_.pop_front();
    ++sent_again;
  } else {
    packet.block = fresh_++;
  }
  packet.sent = credit.sent() + 1;
  packet.waiting = waiting();
  if (in_flight_.empty()) heard_at = now;
  in_flight_.push_back({packet.sent, packet.block, now});
  return true;
}

void SenderState::on_sent(const Packet& packet, Instant now) {
  credit.on_sent(now, packet.wire_bytes);
  if (flow) flow->on_sent(now, packet.wire_bytes, packet.again);
  if (flow && waiting() == 0) flow->note_app_limited();
}

Instant SenderState::next_time(bool granted, Instant now) const {
  if (idle()) return Instant::never();
  const Instant tick = flow ? flow->controller().next_tick() : Instant::never();
  const Instant send = waiting() > 0 ? may_send_at(granted) : Instant::never();
  return send > now ? std::min(send, tick) : tick;
}

void SenderState::on_credit(std::uint32_t total, std::uint32_t unscheduled) {
  if (credit.on_total(total)) credit.on_unscheduled(unscheduled);
}

/// The network keeps the order of packets, so an ack proves that packets sent before are lost.
void SenderState::on_ack(const Packet& acked, Instant now) {
  heard_at = now;
  probes = 0;
  round_trip_ = now - acked.sent_at;
  std::uint32_t lost = 0;
  Instant newest_lost;
  while (!in_flight_.empty() &&
         static_cast<std::int32_t>(in_flight_.front().sent - acked.sent) < 0) {
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
  if (in_flight_.empty()) return;
  probes_ = true;
  lost_.push_front(in_flight_.front().block);
  in_flight_.pop_front();
  if (!flow) return;
  flow->on_forgotten(1);
  flow->on_silence(now);
  flow->on_probe();
}

}  // namespace gradplane::sim::incast
