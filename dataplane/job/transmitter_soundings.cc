// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What a job does so that receivers can measure links, and how a flow hears of what is sent.
#include "dataplane/job/transmitter.h"

namespace gradplane::job {

/// Whether blocks that wait for window or pace may go now all the same, because the peer asks for a
/// train of them. Only where nobody has said how much this node may send: neither the receiver nor
/// an operator.
bool Transmitter::begin_sounding(hop::Peer& peer, Instant now) {
  hop::Flow& flow = peer.flow;
  if (!peer.wants_sounding || flow.sounding().is_on() || now < flow.sounding().next) return false;
  const bool is_free =
      !state_.config.grants && state_.config.congestion.controller != ControllerKind::kFixed;
  return is_free && flow.is_worth_sounding() &&
         state_.soundings.begin(now, flow.sounding(), peer.blocks_queued());
}

/// send = min(grant, window), and a probe goes whatever they say (docs/protocol.md, section 6).
/// Neither holds back a sounding.
Instant Transmitter::next_send_to(const hop::Peer& peer) const {
  if (peer.flow.sounding().is_on()) return peer.flow.link_free_at();
  if (!state_.config.grants || peer.flow.has_probe_due()) return peer.flow.next_send();
  return std::max(peer.flow.next_send(), peer.credit.next_send(peer.in_flight()));
}

/// The flow of the path takes a block that goes now.
void Transmitter::note_sent(hop::Peer& peer, const hop::BlockSender::Pick& pick, std::size_t path,
                            std::size_t wire_bytes, Instant now) {
  hop::Flow& flow = peer.flow_of(path);
  if (flow.sounding().is_on()) {
    flow.note_sounding(now);
    ++state_.counters.blocks_of_soundings;
  }
  state_.soundings.on_sent(flow.sounding());
  if (pick.copy) return flow.on_copy_sent(now, wire_bytes);
  if (path != hop::kDirectPath) {
    hop::Detour& detour = (*peer.detours)[path - 1];
    if (detour.flow.in_flight() == 0) detour.heard_at = now;
    peer.flow.charge_link(now, wire_bytes);
    ++state_.counters.blocks_routed;
  }
  flow.on_sent(now, wire_bytes, pick.retransmission);
}

}  // namespace gradplane::job
