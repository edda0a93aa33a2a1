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

/// The oldest round in which the push has nothing left to do but to wait for results.
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

/// Sends the parent a block again that it has said to have: another one each time, and only one
/// whose result has not come, because a result may stand where the contribution was. While blocks
/// wait to go to the parent, a question of an older round would take their turn, and of a path that
/// carries a block a second it would take all; their own acks show whether the parent answers. A
/// question that is still queued is one of these.
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

/// Counts for how long a receiver of exchanges has answered nothing while pushes of rounds of which
/// it has not been heard wait for it.
void Watchdog::count_silence(const Plan& plan, hop::OutEdge& push) {
  const bool waits = plan.has_selection(0) && ((push.queued | push.waiting) & ~push.heard) != 0;
  push.silent_looks = waits ? push.silent_looks + 1 : 0;
}

/// A node of a plan with exchanges that has taken nothing of a round may be at an earlier one: its
/// ranks compute. Exchanges do not keep ranks within the rounds that a node holds open, so this
/// holds of exact rounds behind them, too. But it answers each push that it cannot take. If it
/// answers none, nothing goes through.
bool Watchdog::awaits_receiver(const Plan& plan, const hop::OutEdge& edge, std::size_t slot) const {
  return plan.has_selection(0) && edge.is_push() && (edge.heard & hop::OutEdge::bit(slot)) == 0 &&
         hop::kLookInterval * edge.silent_looks < state_.watch.limit();
}

/// The peer that keeps the oldest round from moving. A child that has sent nothing of the round is
/// never to blame: its ranks compute, or it has lost a daemon that liveness will miss. Its results
/// are held (OutEdge::held), so none of them is queued or waits.
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
      // Where one rank alone contributes to a block, its blocks come without the ranks that
      // compute. Only the first block of the range waits for all ranks below the child.
      const bool all_are_there =
          all_contribute(round.geometry.operation) || receiver.has(receiver.range().begin);
      if (!all_are_there) continue;
      blame(round.id, Stall::Reason::kBlocksMissing, edge.peer, receiver.missing());
    }
  }
}

/// Told once for each time that the limit passes: if the word is lost, another follows.
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
