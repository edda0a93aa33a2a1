// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/rounds.h"

#include <algorithm>
#include <bit>

#include "dataplane/base/assert.h"

namespace gradplane::job {

Rounds::Rounds(State& state)
    : state_(state),
      local_work_(std::max<std::size_t>(1, state.ranks.size()) * kRoundSlots * kMaxTrees) {}

bool Rounds::fits(const Geometry& g) const {
  return std::size_t{g.elements} * element_bytes(g.type) <= state_.config.round_bytes &&
         g.blocks <= state_.config.max_blocks();
}

std::optional<Geometry> Rounds::geometry_of(const Statement& said) const {
  const std::uint16_t ranks = state_.plans.newest().world_size();
  // Shards and sources are ranks, named by their numbers. Plans with other ranks, or with only some
  // of the job's, would cut a round differently.
  const bool names_ranks =
      said.operation != Operation::kAllReduce && said.operation != Operation::kExchange;
  if (names_ranks && !state_.plans.have_same_ranks()) return std::nullopt;
  if (said.operation == Operation::kExchange && !state_.plans.have_selection(said.source)) {
    return std::nullopt;
  }
  const Geometry geometry = Geometry::of(said, state_.config.block_bytes, ranks);
  if (!geometry.is_sound(ranks) || !fits(geometry)) return std::nullopt;
  return geometry;
}

bool Rounds::add_bucket(aggregate::Bucket* bucket) {
  aggregate::Bucket*& place = state_.buckets[bucket->id()];
  if (place != nullptr || !fits(bucket->geometry())) return false;
  place = bucket;
  ++bucket_count_;
  return true;
}

aggregate::Bucket* Rounds::bucket_of(const Geometry& geometry) const {
  aggregate::Bucket* bucket = state_.buckets[geometry.bucket];
  return bucket != nullptr && bucket->geometry().is_cut_like(geometry) ? bucket : nullptr;
}

void Rounds::open(Round& round, const Geometry& geometry) {
  const std::uint32_t id = round.id;
  round = {};
  round.id = id;
  round.open = true;
  round.geometry = geometry;
  round.bucket = bucket_of(geometry);
  round.streamed = is_streamed(geometry);
  ++state_.open_rounds;
  if (!is_older(id, state_.next_round)) state_.next_round = id + 1;
  state_.plan_of(round).open(round);
  announce(round);
}

void Rounds::announce(const Round& round) {
  const std::size_t slot = round.slot();
  const std::span<const aggregate::Tree> trees = state_.plan_of(round).trees();
  std::uint32_t coming = 0;
  for (const aggregate::Tree& tree : trees) {
    for (const hop::InEdge& edge : tree.in()) coming += edge.receivers[slot].missing();
  }
  state_.incoming.on_round(slot, round.geometry.bucket, coming);
  if (!state_.iteration) return;
  const bool begins = state_.iteration->on_round(slot, round.geometry.bucket);
  for (const aggregate::Tree& tree : trees) {
    for (const hop::OutEdge& edge : tree.out()) {
      const hop::BlockSender& sender = edge.senders[slot];
      state_.iteration->on_announced(edge.peer, sender.range().size() - sender.settled_count());
    }
  }
  if (!begins) return;
  for (hop::Peer& peer : state_.peers.all()) peer.flow.on_phase(0);
}

SubmitResult Rounds::submit(std::size_t local_rank, std::uint32_t id, const Statement& said) {
  const std::optional<Geometry> fitting = geometry_of(said);
  if (!fitting) return SubmitResult::kRejected;
  const Geometry& geometry = *fitting;
  Round& round = state_.slot_of(id);
  const LocalRankBits bit = LocalRankBits{1} << local_rank;
  if (round.id != id) {
    return is_older(round.id, id) ? SubmitResult::kBusy : SubmitResult::kRejected;
  }
  if (geometry.bucket != 0 && has_in_hand(geometry.bucket, id)) return SubmitResult::kBusy;
  if (!round.open && !state_.plans.may_open(id)) return SubmitResult::kBusy;
  if (!state_.plans.may_submit(id)) return SubmitResult::kBusy;
  // The plan does not have this node's ranks. Control tells them so; until then they wait.
  Plan& plan = state_.plans.of(id);
  if (!plan.has_own_ranks()) return SubmitResult::kBusy;
  aggregate::ExchangesDone* exchanges = nullptr;
  if (is_streamed(geometry)) {
    if (const aggregate::Bucket* other = other_bucket(geometry)) {
      Round known = round;
      known.geometry = other->geometry();
      report_mismatch(state_.config.self, known, geometry);
      return SubmitResult::kMismatch;
    }
    // The session adds the bucket soon.
    exchanges = exchanges_of(plan, geometry);
    if (exchanges == nullptr) return SubmitResult::kBusy;
  }
  if (!round.open) open(round, geometry);
  if ((round.submitted & bit) != 0) return SubmitResult::kRejected;
  if (round.geometry != geometry) {
    report_mismatch(state_.config.self, round, geometry);
    return SubmitResult::kMismatch;
  }
  if (differs_from_streams(round)) return SubmitResult::kMismatch;
  round.submitted |= bit;
  if (exchanges != nullptr) {
    ++exchanges->submitted;
    plan.await_updates();
  }
  state_.watch.moved();
  if (local_rank == 0) restore_residual(round);
  contribute(round, local_rank);
  // A small round may have no block in this core's trees, and then nothing else would end it.
  if (state_.config.core.count > 1 && state_.all_submitted(round)) finish_if_done(round);
  return SubmitResult::kAccepted;
}

/// Whether local ranks have submitted an older round of the bucket that is not done here. The next
/// round waits for it, because it adds the residual that the older one leaves. So when a round of a
/// bucket begins anywhere, all results of the one before exist, and each root has gathered it: a
/// root may allow relays to close rounds of the bucket early, and still gather each of them under
/// bounds. A daemon that knows no bounds yet waits as well, or it would begin a round while roots
/// still gather the one before.
bool Rounds::has_in_hand(std::uint32_t bucket, std::uint32_t id) const {
  return std::any_of(state_.rounds.begin(), state_.rounds.end(), [=](const Round& other) {
    return other.open && other.submitted != 0 && !other.told && other.geometry.bucket == bucket &&
           is_older(other.id, id);
  });
}

/// Adds the blocks that did not enter earlier rounds to the first local rank's contribution.
void Rounds::restore_residual(Round& round) {
  if (round.bucket == nullptr || round.bucket->residual() == nullptr) return;
  aggregate::Residual& residual = *round.bucket->residual();
  for (std::size_t b = residual.next(0); b != Bitmap::kNone; b = residual.next(b + 1)) {
    const auto block = static_cast<std::uint32_t>(b);
    residual.move_to(block, state_.ranks.at(0, round, block));
    ++state_.counters.blocks_carried;
  }
}

void Rounds::contribute(Round& round, std::size_t local_rank) {
  Plan& plan = state_.plan_of(round);
  const std::span<aggregate::Tree> trees = plan.trees();
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const BlockRange range = trees[t].range(round.slot());
    if (!trees[t].config().member || range.size() == 0) continue;
    // It stays in the rank's memory until delivery.
    if (round.streamed && trees[t].config().is_root()) continue;
    if (!trees[t].sums()) {
      trees[t].offer_all(round);
      // Until then no other node could take it; see Streams::must_wait().
      if (round.streamed && lacks_exact_before(round.id)) trees[t].push().hold(round.slot());
      trees[t].push().refresh(round.slot());
      continue;
    }
    const bool queued = local_work_.push({.round = round.id,
                                          .local_rank = static_cast<std::uint16_t>(local_rank),
                                          .tree = static_cast<std::uint8_t>(t),
                                          // A node always gathers the first block of its range.
                                          .block = range.begin});
    GP_ASSERT(queued);
  }
  if (hop::Group* group = plan.receivers_of(round)) group->offer_all(round.slot());
}

bool Rounds::sum_local(std::size_t max_blocks) {
  for (std::size_t n = 0; n < max_blocks && !local_work_.empty(); ++n) {
    LocalWork& work = local_work_.front();
    Round& round = state_.slot_of(work.round);
    GP_ASSERT(round.open && round.id == work.round);
    Plan& plan = state_.plan_of(round);
    aggregate::Tree& tree = plan.trees()[work.tree];
    const LocalWork one = work;
    const bool adds = one.kind == LocalWork::Kind::kAdd;
    work.block = adds ? tree.next_local(round.slot(), one.block + 1) : one.block + 1;
    const bool is_last = work.block == tree.range(round.slot()).end;
    if (is_last) local_work_.pop();
    state_.watch.moved();
    if (adds) {
      tree.add_local(plan.context(), round, one.block, one.local_rank);
    } else {
      tree.deliver(plan.context(), round, one.block);
      round.delivered = is_last;
    }
    finish_if_done(round);
  }
  return !local_work_.empty();
}

void Rounds::finish_if_done(Round& round) {
  if (!round.open) return;
  const bool delivers = round.geometry.operation == Operation::kExchange && !round.delivered;
  if (!round.told && is_done(round)) {
    if (!delivers) {
      tell(round);
    } else if (!round.delivering) {
      begin_delivery(round);
    }
  }
  if (round.told && round.results_unacked == 0) end(round);
}

/// Whether every result for this node is here, and nobody needs its pushes any more, which are read
/// from its ranks' memory. The result of a block usually settles the push of it, but in some
/// operations a node pushes blocks of which others get the results.
bool Rounds::is_done(const Round& round) const {
  if (round.results_awaited > 0) return false;
  if (round.streamed && !is_fresh(round)) return false;
  const std::span<const aggregate::Tree> trees = state_.plan_of(round).trees();
  return std::all_of(trees.begin(), trees.end(), [&](const aggregate::Tree& tree) {
    return !tree.has_parent() || tree.push().senders[round.slot()].settled();
  });
}

void Rounds::tell(Round& round) {
  round.told = true;
  if (state_.config.staleness_steps > 0 && round.geometry.operation != Operation::kExchange)
    release_updates();
  // If cores share the job, each of them completes the round, but only one counts it.
  if (state_.config.core.index == 0) {
    ++state_.counters.rounds_completed;
    state_.counters.payload_bytes_reduced +=
        std::size_t{round.geometry.elements} * element_bytes(round.geometry.type);
  }
  for (std::size_t r = 0; r < state_.ranks.size(); ++r) {
    const bool queued = state_.events.push({.kind = Event::Kind::kRoundDone,
                                            .local_rank = static_cast<std::uint16_t>(r),
                                            .contributors = round.min_contributors,
                                            .partial_blocks = round.partial_blocks,
                                            .node = state_.config.self,
                                            .round = round.id,
                                            .ours = round.geometry,
                                            .theirs = {}});
    GP_ASSERT(queued);
  }
}

void Rounds::end(Round& round) {
  const std::size_t slot = round.slot();
  Plan& plan = state_.plan_of(round);
  for (hop::Group* group : plan.groups()) group->end(slot);
  for (aggregate::Tree& tree : plan.trees()) {
    for (hop::OutEdge& edge : tree.out()) {
      state_.peers[edge.peer].on_forgotten(edge.senders[slot].close());
      edge.end_parity(slot);
      edge.refresh(slot);
    }
    for (hop::InEdge& edge : tree.in()) hop::ParityTable::release(edge.parity[slot]);
  }
  round.open = false;
  --state_.open_rounds;
  round.id += kRoundSlots;
}

bool Rounds::any_gathering() const {
  const auto plans = state_.plans.live();
  return std::any_of(plans.begin(), plans.end(), [](const auto& plan) {
    const auto trees = plan->trees();
    return std::any_of(trees.begin(), trees.end(),
                       [](const aggregate::Tree& tree) { return tree.gathering() != 0; });
  });
}

void Rounds::close_due(Instant now) {
  for (const auto& plan : state_.plans.live()) close_due(*plan, now);
}

void Rounds::close_due(Plan& plan, Instant now) {
  for (aggregate::Tree& tree : plan.trees()) {
    for (unsigned bits = tree.gathering(); bits != 0; bits &= bits - 1) {
      Round& round = state_.rounds[static_cast<std::size_t>(std::countr_zero(bits))];
      auto reason = tree.may_close(round.slot(), now);
      if (reason == CloseReason::kAbsent &&
          (!may_leave_behind(tree, round) ||
           tree.has_live_absentee(round.slot(), state_.peers, now))) {
        reason = tree.may_close(round.slot(), now, aggregate::Gather::Absence::kIgnored);
      }
      if (!reason) continue;
      close(tree, round, *reason, now);
    }
  }
}

void Rounds::close(aggregate::Tree& tree, Round& round, CloseReason reason, Instant now) {
  state_.watch.moved();
  for (const hop::InEdge& edge : tree.child_pushes()) {
    if (!edge.receivers[round.slot()].complete()) state_.incoming.withdraw(edge.peer, now);
  }
  const std::uint32_t missing =
      tree.close_partial(state_.plan_of(round).context(), round, reason, now);
  state_.incoming.on_blocks(round.slot(), missing);
  finish_if_done(round);
}

/// Whether a round may be summed without a host that has sent nothing of it. That host may be dead.
/// Then the other ranks hand it every result that it lacks, so none of them may be further ahead of
/// it than kMaxLeadRounds.
///
/// The first rounds of a further plan are never summed without a host, because only the roots of
/// the older plan know of its rounds. A child is judged by what it has not acked, since that keeps
/// a round from ending; the hosts below a child by what its acks say of them. Only the roots of
/// other trees know what the host lacks of their trees, so every tree must have blocks of this
/// round.
bool Rounds::may_leave_behind(const aggregate::Tree& tree, const Round& round) {
  const Plan& plan = state_.plan_of(round);
  if (plan.follows_other_plan(round.id)) return false;
  for (std::size_t t = 0; t < plan.trees().size(); ++t) {
    const aggregate::Partition& blocks = plan.partition();
    if (blocks.range_at_all_cores(t, round.id, round.geometry).size() == 0) return false;
  }
  for (auto lead = static_cast<std::uint32_t>(kMaxLeadRounds); lead < kRoundSlots; ++lead) {
    if (!has_ended(round.id - lead)) return false;
  }
  const std::uint32_t ended = round.id - static_cast<std::uint32_t>(kMaxLeadRounds) + 1;
  return !is_older(tree.oldest_round(ended), ended);
}

/// Whether round `id` has ended, if ranks have submitted a round at least kMaxInFlightRounds later.
/// A node without ranks never hears of a round that has no block for it. If it had a block of such
/// a round, whoever submitted the later round got that block's result from this node.
bool Rounds::has_ended(std::uint32_t id) const {
  const Round& slot = state_.slot_of(id);
  if (is_older(id, slot.id)) return true;
  return !slot.open && state_.ranks.empty();
}

void Rounds::report_mismatch(std::uint16_t node, const Round& round, const Geometry& theirs) {
  state_.counters.drop(hop::Drop::kMismatch);
  if (mismatch_reported_) return;  // the first mismatch ends the job
  mismatch_reported_ = true;
  const bool queued = state_.events.push({.kind = Event::Kind::kMismatch,
                                          .local_rank = 0,
                                          .contributors = 0,
                                          .partial_blocks = 0,
                                          .node = node,
                                          .round = round.id,
                                          .ours = round.geometry,
                                          .theirs = theirs});
  GP_ASSERT(queued);
}

Waiting Rounds::waiting() const {
  Waiting w;
  const Round* oldest = nullptr;
  for (const Round& round : state_.rounds) {
    if (!round.open) continue;
    // The contribution to an exchange stays in its slot until all receivers have it.
    const bool may_wait_for_acks =
        round.geometry.operation == Operation::kExchange && !round.delivering && !round.told;
    if (round.results_awaited == 0 && !may_wait_for_acks) continue;
    ++w.open_rounds;
    if (oldest == nullptr || is_older(round.id, oldest->id)) oldest = &round;
  }
  if (oldest == nullptr) return w;
  w.any = true;
  w.round = oldest->id;
  const LocalRankBits all = all_local_ranks(state_.ranks.size());
  w.local_missing = all & ~oldest->submitted;
  const auto name = [&w](std::uint16_t node) {
    const auto named = std::min<std::size_t>(w.silent_count, Waiting::kMaxSilentNamed);
    const auto end = w.silent_nodes.begin() + static_cast<std::ptrdiff_t>(named);
    if (std::find(w.silent_nodes.begin(), end, node) != end) return;
    if (named < Waiting::kMaxSilentNamed) w.silent_nodes[named] = node;
    ++w.silent_count;
  };
  // While updates are awaited, the round does not wait for acks.
  const bool waits_for_acks = oldest->results_awaited == 0 && oldest->submitted == all;
  for (const aggregate::Tree& tree : std::as_const(state_.plan_of(*oldest)).trees()) {
    const bool is_unacked =
        waits_for_acks && tree.has_parent() && !tree.push().senders[oldest->slot()].settled();
    if (is_unacked) name(state_.peers[tree.push().peer].node);
    for (const hop::InEdge& edge : tree.child_pushes()) {
      if (oldest->streamed) {
        const bool is_behind =
            lag_of(oldest->geometry, edge.peer) > std::int64_t{state_.config.staleness_steps};
        if (is_behind) name(state_.peers[edge.peer].node);
        continue;
      }
      const hop::BlockReceiver& receiver = edge.receivers[oldest->slot()];
      const bool silent = !receiver.has_heard() && receiver.missing() > 0;
      if (silent) name(state_.peers[edge.peer].node);
    }
  }
  return w;
}

}  // namespace gradplane::job
