// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Auxiliary routes of a job: which blocks take one, what happens to the blocks on a route that does
// not answer, and how packets of other nodes are relayed.
#include <algorithm>
#include <bit>
#include <cstring>

#include "dataplane/hop/clock.h"
#include "dataplane/job/transmitter.h"
#include "dataplane/wire/seal.h"

namespace gradplane::job {

/// Whether the next block of `work` can take a route at all. A packet with a coverage set has no
/// room for a route. A copy takes none, because its first packet may have been lost on it.
bool Transmitter::may_take_route(const Work& work) const {
  const hop::OutEdge& edge = *work.edge;
  const std::optional<std::uint32_t> block = edge.senders[work.slot].peek();
  if (!block) return false;
  const Round& round = state_.rounds[work.slot];
  Plan& plan = state_.plan_of(round);
  return plan.trees()[edge.id.tree]
      .bytes_to_send(plan.context(), round, edge.is_push(), *block)
      .hosts.empty();
}

/// When route `r` of the edge may send its next block if nothing changes before; never() if the
/// direct path is better.
Instant Transmitter::route_opens(const hop::Peer& peer, const hop::OutEdge& edge, std::size_t r,
                                 std::uint32_t queued) const {
  const hop::Detour& detour = (*peer.detours)[r];
  const hop::Peer& relay = state_.peers[state_.peers.find(edge.routes[r].first_relay())];
  const Duration wait_of_relay = hop::wait_of(relay.flow, state_.blocks_waiting(relay));
  if (!hop::is_worth_a_route(peer.flow, queued, detour.flow, wait_of_relay)) {
    return Instant::never();
  }
  Instant at = std::max({detour.flow.next_send(), detour.rests_until, peer.flow.link_free_at()});
  if (state_.config.grants) at = std::max(at, peer.credit.next_send(peer.in_flight()));
  return at;
}

/// The route that can send a block first, for a peer whose direct path has no room.
Transmitter::Detouring Transmitter::next_detour(const hop::Peer& peer) const {
  Detouring best;
  if (peer.detours == nullptr) return best;
  const Work work = next_work(peer);
  if (work.edge == nullptr || work.edge->routes.empty() || !may_take_route(work)) return best;
  const std::uint32_t queued = state_.blocks_waiting(peer);
  for (std::size_t r = 0; r < work.edge->routes.size(); ++r) {
    const Instant at = route_opens(peer, *work.edge, r, queued);
    if (at < best.at) best = {.work = work, .path = r + 1, .at = at};
  }
  return best;
}

/// Takes blocks back that are in flight on a route that does not answer; they go another way. If a
/// relay is dead, no later block proves that they are lost.
void Transmitter::reclaim(hop::Peer& peer, Instant now) {
  for (std::size_t r = 0; r < kMaxRoutes; ++r) {
    hop::Detour& detour = (*peer.detours)[r];
    detour.flow.on_tick(now);
    const Duration timeout = hop::route_timeout(peer.flow, detour.flow);
    if (detour.flow.in_flight() == 0 || now - detour.heard_at < timeout) continue;
    hop::PathBlocks lost;
    for (hop::OutEdge* edge : peer.edges) {
      for (unsigned bits = edge->waiting; bits != 0; bits &= bits - 1) {
        const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
        const auto found = edge->senders[slot].find_lost(hop::clock_us(now), timeout, r + 1);
        lost.all += found.blocks;
        if (found.blocks > 0) edge->refresh(slot);
      }
    }
    if (lost.all == 0) continue;
    lost.over_route[r] = lost.all;
    peer.on_forgotten(lost);
    state_.counters.blocks_suspected_lost += lost.all;
    detour.on_silence(now);
  }
}

bool Transmitter::has_relayed() const {
  const auto live = state_.plans.live();
  return std::any_of(live.begin(), live.end(),
                     [](const auto& plan) { return !plan->relayed().empty(); });
}

std::optional<Outgoing> Transmitter::poll_relayed(std::span<std::byte> out) {
  for (const auto& plan : state_.plans.live()) {
    RelayQueue& queue = plan->relayed();
    // A packet may be longer than this node's port sends, if the port receives longer ones.
    while (!queue.empty() && queue.front().length_bytes > out.size()) {
      queue.pop();
      state_.counters.drop(hop::Drop::kRelayFull);
    }
    if (queue.empty()) continue;
    const RelayQueue::Waiting& waiting = queue.front();
    const std::span<const std::byte> bytes = queue.bytes_of(waiting);
    const std::span<std::byte> packet = out.first(bytes.size());
    std::memcpy(packet.data(), bytes.data(), bytes.size());
    wire::set_route_next(packet, waiting.envelope, waiting.next);
    hop::Peer& next = state_.peers[state_.peers.find(waiting.to)];
    queue.pop();
    ++state_.counters.blocks_relayed;
    return finish(next, packet);
  }
  return std::nullopt;
}

}  // namespace gradplane::job
