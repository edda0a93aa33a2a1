// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/streams.h"

#include <algorithm>

#include "dataplane/job/statement.h"
#include "dataplane/model/staleness.h"

namespace gradplane::job {
namespace {

/// Whether the peer on this edge sends its update to this node, and not only an empty block.
bool sends_update(const Plan& plan, const hop::InEdge& edge, std::size_t selection) {
  const aggregate::Partition& partition = plan.partition();
  const aggregate::HostSet senders =
      partition.selections().senders_to(selection, partition.root_host(edge.id.tree));
  return aggregate::meets(plan.trees()[edge.id.tree].hosts_of(edge.id.index), senders);
}

/// Whether the peer is sending another round of the bucket: a rank has only one at a time.
bool has_begun_bucket(const hop::InEdge& edge, std::uint16_t bucket) {
  return std::any_of(edge.stream.begin(), edge.stream.end(), [bucket](const auto& slot) {
    return slot.used && !slot.is_over() && slot.geometry.bucket == bucket;
  });
}

/// The child on an edge. Trees rooted here have no parent, so the edge's index is that of the
/// child.
std::size_t child_of(const hop::InEdge& edge) {
  return edge.id.index.index();
}

}  // namespace

Streams::Streams(State& state, Rounds& rounds)
    : state_(state), rounds_(rounds), only_first_(state.config.max_blocks()) {}

aggregate::GatherSet* Streams::part_of(const Plan& plan, const Geometry& geometry) const {
  aggregate::Bucket* bucket = rounds_.bucket_of(geometry);
  const bool has_inbox = bucket != nullptr && bucket->inbox() != nullptr;
  return has_inbox ? bucket->part_of(plan.epoch()) : nullptr;
}

hop::StreamSlot* Streams::slot_of(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet,
                                  Instant now) {
  const wire::BlockHeader& h = packet.header;
  const auto drop = [this](Drop why) {
    state_.counters.drop(why);
    return nullptr;
  };
  hop::StreamSlot& slot = edge.stream[h.round % kRoundSlots];
  if (slot.used && is_older(h.round, slot.round)) {
    // The sender has not heard that this node has everything, so the ack is sent again.
    plan.acks().request(edge.id, h.round, now);
    return drop(Drop::kPastRound);
  }
  if (slot.is_of(h.round) && !says_the_same(h, slot.geometry)) return drop(Drop::kMismatch);
  const auto geometry = slot.is_of(h.round) ? slot.geometry : rounds_.geometry_of(statement_of(h));
  if (!geometry) return drop(Drop::kBadGeometry);
  const BlockRange range = plan.range_of(h.tree, h.round, *geometry);
  const bool has_update = sends_update(plan, edge, h.source);
  if (h.is_empty() == has_update) return drop(Drop::kBadContributors);
  const bool is_sent = has_update ? range.contains(h.block) : h.block == range.begin;
  if (!is_sent || packet.payload.size() != (has_update ? geometry->bytes_in(h.block) : 0))
    return drop(Drop::kBadGeometry);
  if (slot.is_of(h.round)) return &slot;
  return begin(plan, edge, packet, slot, *geometry);
}

/// A rank that has joined with this plan counts from its own first round, and does not know how far
/// others are behind that round. So nobody takes any of its pushes before having submitted all
/// rounds of the older plan: its first result waits for them.
bool Streams::is_too_early(const Plan& plan, const hop::InEdge& edge) const {
  if (!state_.plans.is_switching() || &plan == state_.plans.live()[0].get()) return false;
  const aggregate::HostSet sender = plan.trees()[edge.id.tree].hosts_of(edge.id.index);
  if (aggregate::meets(sender, plan.hosts_of_plan_before())) return false;
  const std::uint32_t activation = state_.plans.activation();
  return std::any_of(state_.rounds.begin(), state_.rounds.end(), [activation](const Round& round) {
    return is_older(round.id, activation) && !(round.open && round.submitted != 0);
  });
}

/// The most rounds by which a stream may be ahead. Without a limit, a packet could move the horizon
/// of a further plan beyond what a rank may soon reach.
std::uint32_t Streams::most_lead() const {
  return stream_lead_rounds(state_.config.staleness_steps, rounds_.bucket_count());
}

/// Begins a round of a stream. The slot is free, because a sender begins a round only when this
/// node has acked everything that was in the slot.
hop::StreamSlot* Streams::begin(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet,
                                hop::StreamSlot& slot, const Geometry& geometry) {
  const std::uint32_t id = packet.header.round;
  const Round& own = state_.slot_of(id);
  if (own.open && own.id == id && own.geometry != geometry) {
    rounds_.report_mismatch(packet.envelope->sender, own, geometry);
    return nullptr;
  }
  if (const aggregate::Bucket* other = rounds_.other_bucket(geometry)) {
    Round known;
    known.id = id;
    known.geometry = other->geometry();
    rounds_.report_mismatch(packet.envelope->sender, known, geometry);
    return nullptr;
  }
  aggregate::GatherSet* part = part_of(plan, geometry);
  // A rank that waits for this node gets no further ahead than the bound. This limits what an inbox
  // must count.
  const auto most_ahead = std::int64_t{state_.config.staleness_steps};
  const bool may_begin = (!slot.used || slot.is_over()) && state_.plans.may_open(id) &&
                         !is_older(state_.oldest_round() + most_lead(), id) &&
                         !has_begun_bucket(edge, geometry.bucket) && part != nullptr &&
                         -rounds_.lag_of(geometry, edge.peer) <= most_ahead &&
                         !is_too_early(plan, edge);
  if (!may_begin) {
    state_.refuse_for_now(plan, edge.peer, packet);
    return nullptr;
  }
  slot.used = true;
  slot.round = id;
  slot.geometry = geometry;
  const BlockRange range = plan.range_of(edge.id.tree, id, geometry);
  slot.receiver.open(range);
  if (!is_older(id, state_.next_round)) state_.next_round = id + 1;
  if (!sends_update(plan, edge, geometry.source)) {
    only_first_.reset(range.size());
    only_first_.set(0);
    slot.receiver.carry_only(only_first_);
    return &slot;
  }
  aggregate::Gather& gather = part->stream(child_of(edge));
  slot.gathers = !gather.is_open();
  if (!slot.gathers) return &slot;
  gather.open(range);
  ++gathering_;
  return &slot;
}

bool Streams::must_wait(const hop::StreamSlot& slot, std::uint32_t block) const {
  return block == slot.receiver.range().begin && !slot.receiver.has(block) &&
         rounds_.lacks_exact_before(slot.round);
}

void Streams::add(Plan& plan, hop::InEdge& edge, hop::StreamSlot& slot,
                  const wire::BlockPacket& packet, Instant now) {
  const wire::BlockHeader& h = packet.header;
  if (!h.is_empty()) rounds_.bucket_of(slot.geometry)->inbox()->add(h.block, packet.payload);
  if (slot.gathers) {
    const std::uint8_t flags = packet.envelope->flags;
    aggregate::Gather& gather = part_of(plan, slot.geometry)->stream(child_of(edge));
    gather.on_block(0,
                    {.block = h.block,
                     .last = (flags & wire::kFlagLast) != 0,
                     .bounded = (flags & wire::kFlagBounded) != 0,
                     .rtt = state_.peers[edge.peer].flow.min_rtt()},
                    now);
    if (gather.all_arrived()) end_gather(plan, edge, slot, CloseReason::kFull, now);
  }
  if (slot.is_over()) end(plan, edge, slot);
}

void Streams::end(Plan& plan, const hop::InEdge& edge, const hop::StreamSlot& slot) {
  ++part_of(plan, slot.geometry)->done().received[child_of(edge)];
  plan.on_update();
  if (sends_update(plan, edge, slot.geometry.source)) {
    const Round& own = state_.slot_of(slot.round);
    const bool is_late = own.id == slot.round ? own.told : is_older(slot.round, own.id);
    ++state_.counters.updates_received;
    state_.counters.updates_late += is_late ? 1 : 0;
  }
  rounds_.on_update(slot.geometry.bucket);
}

void Streams::end_gather(Plan& plan, const hop::InEdge& edge, hop::StreamSlot& slot,
                         CloseReason reason, Instant now) {
  aggregate::Gather& gather = part_of(plan, slot.geometry)->stream(child_of(edge));
  slot.gathers = false;
  gather.close(reason, now);
  aggregate::count_close(state_.counters, reason);
  aggregate::report_close(plan.context(), *rounds_.bucket_of(slot.geometry), gather, reason,
                          {slot.round, plan.epoch(), edge.id.tree}, now);
}

void Streams::close_due(Instant now) {
  if (gathering_ == 0) return;
  gathering_ = 0;
  for (const auto& plan : state_.plans.live()) {
    aggregate::Tree* tree = plan->rooted_here();
    if (tree == nullptr) continue;
    for (hop::InEdge& edge : tree->child_pushes()) close_due(*plan, edge, now);
  }
}

void Streams::close_due(Plan& plan, hop::InEdge& edge, Instant now) {
  for (hop::StreamSlot& slot : edge.stream) {
    if (!slot.gathers) continue;
    aggregate::Gather& gather = part_of(plan, slot.geometry)->stream(child_of(edge));
    const auto reason = gather.may_close(now, aggregate::Gather::Absence::kIgnored);
    if (!reason || must_wait(slot, slot.receiver.range().begin)) {
      ++gathering_;
      continue;
    }
    slot.receiver.close();
    plan.acks().request(edge.id, slot.round, now);
    state_.watch.moved();
    end_gather(plan, edge, slot, *reason, now);
    end(plan, edge, slot);
  }
}

}  // namespace gradplane::job
