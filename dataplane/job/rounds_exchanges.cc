// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Exchanges, and how far ranks have come in those under bounded staleness.
#include <algorithm>
#include <utility>

#include "dataplane/base/assert.h"
#include "dataplane/job/rounds.h"

namespace gradplane::job {

const aggregate::Bucket* Rounds::other_bucket(const Geometry& geometry) const {
  const aggregate::Bucket* bucket = state_.buckets[geometry.bucket];
  return bucket != nullptr && !bucket->geometry().is_cut_like(geometry) ? bucket : nullptr;
}

bool Rounds::is_streamed(const Geometry& geometry) const {
  return state_.config.staleness_steps > 0 && geometry.operation == Operation::kExchange &&
         geometry.bucket != 0;
}

/// How far ranks have come in the round's bucket under the plan; nullptr if this node does not know
/// the bucket yet.
aggregate::ExchangesDone* Rounds::exchanges_of(const Plan& plan, const Geometry& geometry) const {
  aggregate::Bucket* bucket = bucket_of(geometry);
  if (bucket == nullptr || bucket->inbox() == nullptr) return nullptr;
  aggregate::GatherSet* part = bucket->part_of(plan.epoch());
  return part == nullptr ? nullptr : &part->done();
}

/// Whether another rank states something else about this round. Its pushes may have come before the
/// round was submitted here.
bool Rounds::differs_from_streams(const Round& round) {
  const aggregate::Tree* tree = state_.plan_of(round).rooted_here();
  if (tree == nullptr) return false;
  for (const hop::InEdge& edge : tree->in()) {
    if (edge.stream.empty()) return false;
    const hop::StreamSlot& slot = edge.stream[round.slot()];
    if (!slot.is_of(round.id) || slot.geometry == round.geometry) continue;
    report_mismatch(state_.peers[edge.peer].node, round, slot.geometry);
    return true;
  }
  return false;
}

std::int64_t Rounds::lag_of(const Geometry& geometry, hop::PeerIndex peer) const {
  std::int64_t lag = 0;
  for (const auto& plan : state_.plans.live()) {
    const aggregate::ExchangesDone* done = exchanges_of(*plan, geometry);
    const aggregate::Tree* tree = plan->rooted_here();
    if (done == nullptr || tree == nullptr) continue;
    const hop::EdgeIndex child = tree->find_in(wire::PacketType::kPush, peer);
    if (child != hop::kNoEdge) lag += done->lag_of(child.index());
  }
  return lag;
}

/// Whether no rank is so far behind that the result of this round must wait for it.
bool Rounds::is_fresh(const Round& round) const {
  const std::span<const hop::InEdge> edges =
      std::as_const(state_.plan_of(round)).rooted_here()->in();
  return std::all_of(edges.begin(), edges.end(), [&](const hop::InEdge& edge) {
    return lag_of(round.geometry, edge.peer) <= std::int64_t{state_.config.staleness_steps};
  });
}

bool Rounds::lacks_exact_before(std::uint32_t round) const {
  return std::any_of(state_.rounds.begin(), state_.rounds.end(), [round](const Round& other) {
    return other.open && !other.told && other.geometry.operation != Operation::kExchange &&
           is_older(other.id, round);
  });
}

/// Releases pushes of exchanges that have waited for an older exact round.
void Rounds::release_updates() {
  for (Round& round : state_.rounds) {
    if (!round.open || !round.streamed || lacks_exact_before(round.id)) continue;
    for (aggregate::Tree& tree : state_.plan_of(round).trees()) {
      if (tree.has_parent()) tree.push().release(round.slot());
    }
  }
}

void Rounds::on_update(std::uint16_t bucket) {
  for (Round& round : state_.rounds) {
    if (round.open && round.streamed && round.geometry.bucket == bucket) finish_if_done(round);
  }
}

/// Called when every result of an exchange is here and nobody needs the ranks' contributions any
/// more.
void Rounds::begin_delivery(Round& round) {
  round.delivering = true;
  const std::span<aggregate::Tree> trees = state_.plan_of(round).trees();
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const BlockRange range = trees[t].range(round.slot());
    if (!trees[t].config().is_root() || range.size() == 0) continue;
    const bool queued = local_work_.push({.kind = LocalWork::Kind::kDeliver,
                                          .round = round.id,
                                          .tree = static_cast<std::uint8_t>(t),
                                          .block = range.begin});
    GP_ASSERT(queued);
  }
}

}  // namespace gradplane::job
