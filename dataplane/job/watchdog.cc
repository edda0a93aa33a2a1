// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/watchdog.h"

#include <bit>

#include "dataplane/base/assert.h"
#include "dataplane/hop/clock.h"

namespace gradplane::job {

void Watchdog::look(Instant now) {
  if (!is_watching() || now < state_.watch.next_look()) return;
  state_.watch.look(now);
  for (const auto& plan : state_.plans.live()) {
    for (aggregate::Tree& tree : plan->trees()) {
      if (!tree.has_parent()) continue;
      ask(*plan, tree, now);
      count_silence(*plan, tree.push());
    }
  }
  if (!state_.watch.is_stalled()) return;
  std::optional<StalledRound> stalled;
  for (const auto& plan : state_.plans.live()) {
    for (const aggregate::Tree& tree : plan->trees()) find_in(*plan, tree, stalled);
  }
  if (stalled) {
    report(*stalled);
  } else {
    state_.watch.postpone();
  }
}

Instant Watchdog::next_look() const {
  return is_watching() ? state_.watch.next_look() : Instant::never();
}

/// The oldest round in which all pushes are settled and only results are missing.
const Round* Watchdog::oldest_waiting(const Plan& plan, const aggregate::Tree& tree) const {
  const Round* oldest = nullptr;
  for (const Round& round : state_.rounds) {
    const std::size_t slot = round.slot();
    if (!state_.has_open(plan, round) || !state_.all_submitted(round)) continue;
    if (tree.local_left(slot) > 0) continue;
    if (!tree.push().senders[slot].settled() || tree.results().receivers[slot].complete()) continue;
    if (oldest == nullptr || is_older(round.id, oldest->id)) oldest = &round;
  }
  return oldest;
}

/// Sends a block again that the parent has acknowledged: another block each time, and only one
/// whose result has not come, because a result may have replaced the contribution.
///
/// No question goes while other blocks wait to go to the parent. A question of an older round would
/// take their turn, and take all of a path that carries one block a second. The acks of those
/// blocks show whether the parent answers. A question that is still queued is one of them.
void Watchdog::ask(const Plan& plan, aggregate::Tree& tree, Instant now) {
  hop::OutEdge& push = tree.push();
  const Round* round = oldest_waiting(plan, tree);
  if (round == nullptr || state_.blocks_waiting(state_.peers[push.peer]) > 0) {
    return push.inquiry.rest();
  }
  if (!push.inquiry.is_due(round->id, now)) return;
  const std::size_t slot = round->slot();
  const hop::BlockReceiver& results = tree.results().receivers[slot];
  const BlockRange range = results.range();
  for (std::uint32_t n = 0; n < range.size(); ++n) {
    const std::uint32_t block = range.begin + (push.next_question + n) % range.size();
    if (results.has(block) || !push.senders[slot].repeat(block)) continue;
    push.next_question = block - range.begin + 1;
    push.inquiry.on_asked(hop::clock_us(now), now);
    return push.refresh(slot);
  }
}

void Watchdog::check_answer(const Round& round, aggregate::Tree& tree, const wire::AckPacket& ack,
                            std::span<const std::uint64_t> words, Instant now) {
  if (!is_watching() || !round.open || round.id != ack.header.round) return;
  const std::size_t slot = round.slot();
  hop::OutEdge& push = tree.push();
  const hop::BlockReceiver& results = tree.results().receivers[slot];
  const auto dispute = [&](std::uint32_t blocks) {
    report({round.id, Stall::Reason::kDisputed, push.peer, blocks});
  };
  if ((ack.envelope->flags & wire::kFlagEnded) != 0) {
    if (!results.complete()) dispute(results.missing());
    return;
  }
  if (!push.inquiry.is_answered_by(round.id, ack.body.echo_us)) return;
  push.inquiry.on_answer(now);
  const hop::BlockSender& sender = push.senders[slot];
  const bool complete = (ack.envelope->flags & wire::kFlagComplete) != 0;
  const std::uint32_t disputed = complete ? 0 : sender.acked_beyond(ack.header.first_word, words);
  const bool reopened = sender.excluded() > 0 && (ack.envelope->flags & wire::kFlagClosed) == 0;
  if (disputed == 0 && !reopened) return;
  dispute(disputed > 0 ? disputed : sender.excluded());
}

/// Counts the looks during which a receiver of exchanges has answered nothing, although pushes wait
/// for it of rounds of which it has not been heard.
void Watchdog::count_silence(const Plan& plan, hop::OutEdge& push) {
  const bool waits = plan.has_selection(0) && ((push.queued | push.waiting) & ~push.heard) != 0;
  push.silent_looks = waits ? push.silent_looks + 1 : 0;
}

/// Whether the receiver may be at an earlier round, because its ranks compute. In a plan with
/// exchanges that is so if it has taken nothing of the round: exchanges do not keep ranks within
/// the rounds that a node holds open, so exact rounds behind them may be early, too. But a live
/// receiver answers each push that it cannot take. If it answers none, nothing gets through.
bool Watchdog::awaits_receiver(const Plan& plan, const hop::OutEdge& edge, std::size_t slot) const {
  return plan.has_selection(0) && edge.is_push() && (edge.heard & hop::OutEdge::bit(slot)) == 0 &&
         hop::kLookInterval * edge.silent_looks < state_.watch.limit();
}

/// Finds the peer that keeps the oldest round from moving. A child that has sent nothing of the
/// round is never the cause: its ranks compute, or its daemon is lost, which liveness will notice.
/// Results for such a child are held (OutEdge::held), so none of them is queued or in flight.
void Watchdog::find_in(const Plan& plan, const aggregate::Tree& tree,
                       std::optional<StalledRound>& found) const {
  const auto blame = [&](std::uint32_t round, Stall::Reason reason, hop::PeerIndex peer,
                         std::uint32_t blocks) {
    if (found && !is_older(round, found->round)) return;
    found = {round, reason, peer, blocks};
  };
  for (const hop::OutEdge& edge : tree.out()) {
    for (unsigned bits = edge.queued | edge.waiting; bits != 0; bits &= bits - 1) {
      const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
      const hop::BlockSender& sender = edge.senders[slot];
      if (sender.settled() || awaits_receiver(plan, edge, slot)) continue;
      blame(state_.rounds[slot].id,
            edge.is_push() ? Stall::Reason::kPushesUnacked : Stall::Reason::kResultsUnacked,
            edge.peer, sender.in_flight() + sender.queued());
    }
    const bool unanswered = edge.is_push() && edge.inquiry.waits() &&
                            edge.inquiry.unanswered_for() >= state_.watch.limit();
    if (!unanswered) continue;
    blame(edge.inquiry.round(), Stall::Reason::kUnanswered, edge.peer,
          tree.results().receivers[edge.inquiry.round() % kRoundSlots].missing());
  }
  for (const hop::InEdge& edge : tree.child_pushes()) {
    for (const Round& round : state_.rounds) {
      const hop::BlockReceiver& receiver = edge.receivers[round.slot()];
      if (!state_.has_open(plan, round) || !receiver.has_heard()) continue;
      if (receiver.complete() || receiver.closed()) continue;
      // If only one rank contributes to each block, blocks come although other ranks still compute.
      // Only the first block of the range waits for all ranks below the child.
      const bool all_are_there =
          all_contribute(round.geometry.operation) || receiver.has(receiver.range().begin);
      if (!all_are_there) continue;
      blame(round.id, Stall::Reason::kBlocksMissing, edge.peer, receiver.missing());
    }
  }
}

/// Reports a stall once each time that the limit passes. If the event is lost, another one follows.
void Watchdog::report(const StalledRound& stalled) {
  if (is_told_) return;
  is_told_ = true;
  const bool queued = state_.events.push(
      {.kind = Event::Kind::kStalled,
       .node = state_.peers[stalled.peer].node,
       .round = stalled.round,
       .ours = {},
       .theirs = {},
       .stall = {
           .reason = stalled.reason, .blocks = stalled.blocks, .quiet = state_.watch.quiet()}});
  GP_ASSERT(queued);
  state_.watch.moved();
}

}  // namespace gradplane::job
