// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/state.h"

#include <algorithm>
#include <bit>

#include "dataplane/base/assert.h"
#include "dataplane/hop/clock.h"

namespace gradplane::job {
namespace {

/// The number of gatherings that a round may have here: one in each tree that gathers, or one for
/// each child whose rounds are a stream.
std::size_t gatherings(const Plan& plan, const JobConfig& job) {
  std::size_t count = 0;
  for (const aggregate::Tree& tree : plan.trees()) {
    const bool has_streams = job.staleness_steps > 0 && plan.rooted_here() == &tree;
    count += has_streams ? tree.in().size() : tree.gathers() ? 1 : 0;
  }
  return count;
}

}  // namespace

State::State(JobConfig settings)
    : config(std::move(settings)),
      ranks(config.local_ranks, config.round_bytes),
      plans(std::make_unique<Plan>(config, config), config.joins),
      rounds(kRoundSlots),
      reports(std::max<std::size_t>(1, gatherings(plans.newest(), config)) * kRoundSlots),
      events(std::max<std::size_t>(1, config.local_ranks.size()) * kRoundSlots * 2 + 2),
      watch(config.stall_after),
      buckets(kMaxBuckets + 1),
      parities(config.block_bytes, config.max_blocks()) {
  GP_ASSERT(config.local_ranks.size() <= kMaxLocalRanks);
  // In an exchange every tree has all blocks, so cores cannot share it.
  GP_ASSERT(config.core.is_sane() && (config.core.count == 1 || config.selections.empty()));
  GP_ASSERT(config.block_bytes % kBlockAlignBytes == 0 && config.block_bytes <= kMaxBlockBytes);
  // Otherwise an ack of the round would not fit into its packet.
  GP_ASSERT(config.block_bytes > 0 && config.max_blocks() <= kMaxBlocksPerRound);
  begin_at(config.first_round);
  if (config.congestion.mltcp || config.forward_order) iteration.emplace(0, kMaxNodes);
  connect(plans.newest());
}

void State::begin_at(std::uint32_t round) {
  GP_ASSERT(open_rounds == 0);
  next_round = round;
  for (std::uint32_t n = 0; n < kRoundSlots; ++n) slot_of(round + n).id = round + n;
}

void State::connect(Plan& plan) {
  plan.connect(peers, {.ranks = ranks,
                       .world_size = plan.world_size(),
                       .compensation = config.compensation,
                       .measure_energy = config.measure_energy,
                       .counters = counters,
                       .acks = plan.acks(),
                       .reports = reports});
  if (iteration) iteration->grow(peers.size());
}

bool State::all_submitted(const Round& round) const {
  return static_cast<std::size_t>(std::popcount(round.submitted)) == ranks.size();
}

std::uint32_t State::oldest_round() const {
  // A node without ranks may never hear of a round that has no block for it, so its free slots tell
  // nothing. But a round at most kRoundSlots before the newest one has ended if it is not open.
  std::uint32_t oldest = rounds[0].id;
  std::uint32_t newest = rounds[0].id;
  for (const Round& round : rounds) {
    if (is_older(round.id, oldest)) oldest = round.id;
    if (is_older(newest, round.id)) newest = round.id;
  }
  if (!ranks.empty()) return oldest;
  oldest = newest - static_cast<std::uint32_t>(kRoundSlots) + 1;
  for (const Round& round : rounds) {
    if (round.open && is_older(round.id, oldest)) oldest = round.id;
  }
  return oldest;
}

std::uint32_t State::blocks_waiting(const hop::Peer& peer) const {
  std::uint32_t blocks = 0;
  for (const hop::OutEdge* edge : peer.edges) {
    for (unsigned bits = edge->queued; bits != 0; bits &= bits - 1) {
      const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
      const hop::BlockSender& sender = edge->senders[slot];
      const std::uint32_t copies = sender.copies();
      const bool withheld = copies > 0 && withholds_copies(edge->rounds[slot]);
      blocks += sender.queued() - (withheld ? copies : 0);
    }
  }
  return blocks;
}

void State::on_granted(std::uint32_t total_blocks, std::uint32_t unscheduled_blocks,
                       hop::Peer& peer) {
  if (!config.grants || !peer.credit.on_total(total_blocks)) {
    return counters.drop(hop::Drop::kBadGrant);
  }
  peer.credit.on_unscheduled(unscheduled_blocks);
}

void State::refuse_for_now(const Plan& plan, hop::PeerIndex index,
                           const wire::BlockPacket& packet) {
  counters.drop(hop::Drop::kFutureRound);
  if (!plan.own_tree() || packet.envelope->type != wire::PacketType::kPush) return;
  hop::Peer::Refused& word = peers[index].refused;
  const bool is_owed = word.is_owed || refused.push(index);
  word = {plan.epoch(), *plan.own_tree(), packet.header.round, is_owed};
}

void State::on_acked(hop::OutEdge& edge, std::size_t slot, const hop::PathBlocks& acked,
                     Instant now, std::size_t path, std::uint32_t marked) {
  edge.active_us[slot] = hop::clock_us(now);
  edge.backoff[slot] = 0;
  peers[edge.peer].on_acked(now, acked, path, marked);
}

/// A receiver that lacks an exact round refuses only the first block of a later exchange. Under
/// bounded staleness that may last long, and it tells nothing about the path.
bool State::may_be_refused(const hop::OutEdge& edge, std::size_t slot,
                           const hop::BlockSender::Lost& lost) const {
  return rounds[slot].streamed && edge.is_push() && lost.blocks == 1 &&
         lost.last == edge.senders[slot].range().begin;
}

bool State::find_lost(hop::OutEdge& edge, std::size_t slot, std::size_t path, std::uint32_t echo_us,
                      Duration window, Instant now) {
  const hop::BlockSender::Lost lost = edge.senders[slot].find_lost(echo_us, window, path);
  if (lost.blocks == 0) return false;
  hop::Flow& flow = peers[edge.peer].flow_of(path);
  if (path != hop::kGroupPath && may_be_refused(edge, slot, lost)) {
    flow.on_forgotten(lost.blocks);
    return true;
  }
  counters.blocks_suspected_lost += lost.blocks;
  const auto ago = Duration::us(static_cast<std::int32_t>(hop::clock_us(now) - lost.newest_us));
  flow.on_lost(now, lost.blocks, now - ago);
  const hop::Seat seat = edge.seats[slot];
  if (path == hop::kGroupPath) seat.group->on_lost(*seat.member, lost.blocks);
  return true;
}

void State::on_group_unanswered(hop::OutEdge& edge, std::size_t slot, Instant now) {
  const hop::Seat seat = edge.seats[slot];
  const bool heard = seat.member->hears;
  seat.group->on_unanswered(*seat.member);
  if (seat.member->hears) return;
  counters.group_members_deaf += heard ? 1 : 0;
  for (std::size_t other = 0; other < kRoundSlots; ++other) {
    if (edge.seats[other].group != seat.group) continue;
    const hop::BlockSender::Lost rest =
        edge.senders[other].find_lost(hop::clock_us(now) + 1, {}, hop::kGroupPath);
    peers[edge.peer].on_forgotten({.all = rest.blocks});
    edge.refresh(other);
  }
}

void State::on_settled(const hop::OutEdge& edge, std::size_t slot, std::uint32_t before) {
  const std::uint32_t settled = edge.senders[slot].settled_count() - before;
  if (settled > 0) watch.moved();
  if (!iteration || settled == 0) return;
  iteration->on_settled(slot, edge.peer, settled);
  peers[edge.peer].flow.on_phase(iteration->ratio(edge.peer));
}

}  // namespace gradplane::job
