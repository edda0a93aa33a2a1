// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Invariants that hold between any two calls of a job. For tests.
#include <algorithm>
#include <span>

#include "dataplane/job/state.h"

namespace gradplane::job {
namespace {

/// What an open round waits for, recounted from the edges of its trees.
struct Counts {
  std::uint32_t results_awaited = 0;
  std::uint32_t results_unacked = 0;
};

Counts count_anew(const Plan& plan, const Round& round) {
  Counts counts;
  const std::size_t slot = round.slot();
  for (const aggregate::Tree& tree : plan.trees()) {
    if (!tree.config().member || tree.range(slot).size() == 0) continue;
    counts.results_awaited += tree.results_awaited(slot);
    for (const hop::OutEdge& edge : tree.out()) {
      const hop::BlockSender& sender = edge.senders[slot];
      if (!edge.is_push()) counts.results_unacked += sender.complete() ? 0 : 1;
    }
  }
  return counts;
}

const char* broken_in(const Plan& plan, const Round& round) {
  for (const aggregate::Tree& tree : plan.trees()) {
    for (const hop::OutEdge& edge : tree.out()) {
      if (edge.rounds[round.slot()] != round.id) return "an edge was not opened for an open round";
    }
  }
  const Counts counts = count_anew(plan, round);
  if (counts.results_awaited != round.results_awaited) return "a count of results is wrong";
  if (counts.results_unacked != round.results_unacked) return "a count of acks is wrong";
  return nullptr;
}

const char* broken_in(const hop::OutEdge& edge) {
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
    const hop::BlockSender& sender = edge.senders[slot];
    const unsigned bit = hop::OutEdge::bit(slot);
    const bool may_go = sender.has_queued() && (edge.held & bit) == 0;
    if (((edge.queued & bit) != 0) != may_go) return "a bit of queued blocks is wrong";
    if (((edge.waiting & bit) != 0) != (sender.in_flight() > 0)) {
      return "a bit of blocks in flight is wrong";
    }
  }
  return nullptr;
}

/// Whether a slot whose round has ended still has rows.
template <typename Edge>
bool keeps_parity(const Edge& edge, std::span<const Round> rounds) {
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
    if (!rounds[slot].open && edge.parity[slot] != nullptr) return true;
  }
  return false;
}

/// Whether a block waits for a group that will not send it.
bool waits_in_vain(const hop::OutEdge& edge) {
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
    const hop::BlockSender& sender = edge.senders[slot];
    const std::uint32_t left = sender.left_to_group();
    if (left == 0) continue;
    const hop::Group* group = edge.seats[slot].group;
    if (group == nullptr || group->all_sent(slot)) return true;
    const bool is_member = sender.way() == hop::BlockSender::Way::kMember;
    if (is_member && left > group->ready(slot)) return true;
  }
  return false;
}

/// Whether every flow to the peer counts exactly the blocks that are in flight on its path.
bool flows_are_right(const hop::Peer& peer) {
  hop::PathBlocks blocks;
  for (const hop::OutEdge* edge : peer.edges) {
    for (const hop::BlockSender& sender : edge->senders) blocks += sender.in_flight_by_path();
  }
  if (peer.flow.in_flight() != blocks.direct()) return false;
  for (std::size_t r = 0; peer.detours != nullptr && r < kMaxRoutes; ++r) {
    if ((*peer.detours)[r].flow.in_flight() != blocks.over_route[r]) return false;
  }
  return peer.in_flight() == blocks.all;
}

}  // namespace

const char* State::broken_invariant() const {
  std::uint32_t open = 0;
  for (const Round& round : rounds) {
    if (!round.open) continue;
    ++open;
    if (const char* broken = broken_in(plan_of(round), round)) return broken;
  }
  if (open != open_rounds) return "the count of open rounds is wrong";
  if (plans.live().size() > kMaxLivePlans) return "too many plans are alive";
  std::size_t edges = 0;
  for (const auto& plan : plans.live()) {
    for (const aggregate::Tree& tree : std::as_const(*plan).trees()) {
      for (const hop::OutEdge& edge : tree.out()) {
        const auto& listed = peers[edge.peer].edges;
        if (std::count(listed.begin(), listed.end(), &edge) != 1) return "a peer lacks an edge";
        if (const char* broken = broken_in(edge)) return broken;
        if (waits_in_vain(edge)) return "a block waits for no group";
        if (keeps_parity(edge, rounds)) return "a round that has ended has parity";
        ++edges;
      }
      for (const hop::InEdge& edge : tree.in()) {
        if (keeps_parity(edge, rounds)) return "a round that has ended has parity";
      }
    }
  }
  for (std::size_t p = 0; p < peers.size(); ++p) {
    const hop::Peer& peer = peers.all()[p];
    const bool has_work = peer.has_queued() || peer.flow.sounding().is_on();
    if (has_work && !peers.to_poll().test(p)) return "a peer with blocks to send is not polled";
    if (!peers.to_poll().test(p) && !peer.flow.is_noted_as_app_limited())
      return "a flow does not know that nothing waits for it";
    edges -= peer.edges.size();
    if (!flows_are_right(peer)) return "a flow counts blocks of nobody";
  }
  return edges == 0 ? nullptr : "a peer has an edge of a plan that has gone";
}

}  // namespace gradplane::job
