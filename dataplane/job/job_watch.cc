// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds in which nothing moves any more, whatever the cause.
#include <array>
#include <bit>

#include "dataplane/base/assert.h"
#include "dataplane/job/job.h"

namespace gradplane::job {

void Job::watch_rounds(Instant now) {
  if (!is_watching() || now < watch_.next_look()) return;
  watch_.look(now);
  for (OutEdge& edge : edges_.out) {
    if (edge.type == wire::PacketType::kPush) ask(edge, now);
  }
  if (!watch_.is_stalled()) return;
  if (const auto stall = find_stall()) {
    report_stall(stall->reason, stall->peer, stall->round, stall->blocks);
  } else {
    watch_.postpone();
  }
}

/// The oldest round in which a push edge has nothing left to do but to wait for results.
const Round* Job::oldest_waiting(const OutEdge& push) const {
  const InEdge& results = results_in_of(push);
  const Round* oldest = nullptr;
  for (const Round& round : rounds_) {
    const std::size_t slot = round.id % kRoundSlots;
    if (!round.open || !all_submitted(round) || round.local_left[push.tree] > 0) continue;
    if (!push.senders[slot].settled() || results.receivers[slot].complete()) continue;
    if (oldest == nullptr || is_older(round.id, oldest->id)) oldest = &round;
  }
  return oldest;
}

const InEdge& Job::results_in_of(const OutEdge& push) const {
  return edges_.in[edges_.find_in(wire::PacketType::kResult, push.tree, push.peer)];
}

/// Sends the parent a block again that it has said to have: another one each time, and only one
/// whose result has not come, because a result may stand where the contribution was. While blocks
/// wait to go to the parent, a question of an older round would take their turn, and of a path that
/// carries a block a second it would take all; their own acks show whether the parent answers. A
/// question that has not gone yet is one of these.
void Job::ask(OutEdge& push, Instant now) {
  const Round* round = oldest_waiting(push);
  if (round == nullptr || waiting_for(push.peer) > 0) return push.inquiry.rest();
  if (!push.inquiry.is_due(round->id, now)) return;
  const std::size_t slot = round->id % kRoundSlots;
  const hop::BlockReceiver& results = results_in_of(push).receivers[slot];
  const BlockRange range = results.range();
  for (std::uint32_t n = 0; n < range.size(); ++n) {
    const std::uint32_t block = range.begin + (push.next_question + n) % range.size();
    if (results.has(block) || !push.senders[slot].repeat(block)) continue;
    push.next_question = block - range.begin + 1;
    push.inquiry.on_asked(hop::clock_us(now), now);
    return refresh(push, slot);
  }
}

/// An ack of pushes has come. Whatever made us believe it, the parent may never take back what it
/// has acknowledged, nor end a round before we have its results.
void Job::check_answer(const Round& round, OutEdge& push, const wire::Header& h,
                       std::span<const std::uint64_t> words, std::uint32_t echo_us, Instant now) {
  if (!is_watching() || !round.open || round.id != h.round) return;
  const std::size_t slot = round.id % kRoundSlots;
  const hop::BlockReceiver& results = results_in_of(push).receivers[slot];
  if ((h.flags & wire::kFlagEnded) != 0) {
    if (results.complete()) return;
    return report_stall(Stall::Reason::kDisputed, push.peer, round.id, results.missing());
  }
  if (!push.inquiry.is_answered_by(round.id, echo_us)) return;
  push.inquiry.on_answer(now);
  const hop::BlockSender& sender = push.senders[slot];
  const bool complete = (h.flags & wire::kFlagComplete) != 0;
  const std::uint32_t disputed = complete ? 0 : sender.acked_beyond(h.block, words);
  const bool reopened = sender.excluded() > 0 && (h.flags & wire::kFlagClosed) == 0;
  if (disputed == 0 && !reopened) return;
  report_stall(Stall::Reason::kDisputed, push.peer, round.id,
               disputed > 0 ? disputed : sender.excluded());
}

/// Who keeps the oldest round from moving that somebody does. A child of which nothing has come in
/// the round is never to blame: its ranks compute, or have lost a daemon that liveness will miss.
/// Its results are held (OutEdge::held), so none of them is queued or waits.
std::optional<Job::StalledRound> Job::find_stall() const {
  std::optional<StalledRound> found;
  const auto blame = [&](std::uint32_t round, Stall::Reason reason, std::uint16_t peer,
                         std::uint32_t blocks) {
    if (found && !is_older(round, found->round)) return;
    found = {round, reason, peer, blocks};
  };
  for (const OutEdge& edge : edges_.out) {
    const bool is_push = edge.type == wire::PacketType::kPush;
    for (unsigned bits = edge.queued | edge.waiting; bits != 0; bits &= bits - 1) {
      const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
      const hop::BlockSender& sender = edge.senders[slot];
      if (sender.settled()) continue;
      blame(rounds_[slot].id,
            is_push ? Stall::Reason::kPushesUnacked : Stall::Reason::kResultsUnacked, edge.peer,
            sender.in_flight() + sender.queued());
    }
    const bool unanswered =
        is_push && edge.inquiry.waits() && edge.inquiry.unanswered_for() >= watch_.limit();
    if (unanswered) {
      const std::size_t slot = edge.inquiry.round() % kRoundSlots;
      blame(edge.inquiry.round(), Stall::Reason::kUnanswered, edge.peer,
            results_in_of(edge).receivers[slot].missing());
    }
  }
  for (const InEdge& edge : edges_.in) {
    if (edge.type != wire::PacketType::kPush) continue;
    for (const Round& round : rounds_) {
      const hop::BlockReceiver& receiver = edge.receivers[round.id % kRoundSlots];
      if (!round.open || !receiver.has_heard()) continue;
      if (receiver.complete() || receiver.closed()) continue;
      blame(round.id, Stall::Reason::kBlocksMissing, edge.peer, receiver.missing());
    }
  }
  return found;
}

/// Told once for each time that the limit passes: if the word is lost, another follows.
void Job::report_stall(Stall::Reason reason, std::uint16_t peer, std::uint32_t round,
                       std::uint32_t blocks) {
  if (stall_is_told_) return;
  stall_is_told_ = true;
  const bool queued =
      events_.push({.kind = Event::Kind::kStalled,
                    .node = config_.peers[peer].node,
                    .round = round,
                    .ours = {},
                    .theirs = {},
                    .stall = {.reason = reason, .blocks = blocks, .quiet = watch_.quiet()}});
  GP_ASSERT(queued);
  watch_.moved();
}

}  // namespace gradplane::job
