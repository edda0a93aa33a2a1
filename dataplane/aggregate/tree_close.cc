// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds that may lack blocks: when they close, and what becomes of what is missing.
#include <array>

#include "dataplane/aggregate/tree.h"
#include "dataplane/base/assert.h"

namespace gradplane::aggregate {

/// A bucket gathers one round at a time in each tree. Another round that opens before that one has
/// closed is gathered exactly.
void Tree::open_gather(Round& round) {
  Slot& own = slots_[round.slot()];
  own.gather = nullptr;
  Gather* gather = round.bucket == nullptr ? nullptr : round.bucket->gather(number_);
  if (gather == nullptr || gather->is_open() || own.range.size() == 0) return;
  gather->open(own.range);
  round.bucket->reset_parts(own.range);
  own.gather = gather;
  gathering_ = static_cast<std::uint16_t>(gathering_ | 1U << round.slot());
}

void Tree::close_if_full(Context& job, Round& round) {
  const Slot& own = slots_[round.slot()];
  if (own.gather == nullptr || own.local_left > 0 || own.gather->missing_blocks() > 0) return;
  end_gather(job, round, CloseReason::kFull, own.gather->last_arrival());
}

std::optional<CloseReason> Tree::may_close(std::size_t slot, Instant now) {
  const Slot& own = slots_[slot];
  if (own.gather == nullptr || own.local_left > 0) return std::nullopt;
  return own.gather->may_close(now);
}

/// A child that has pushed something is told at once what entered, the others when they push. A
/// child that heard it before would push nothing, and nobody could tell when it has come to the
/// round and takes results.
std::uint32_t Tree::close_partial(Context& job, Round& round, CloseReason reason, Instant now) {
  const std::size_t slot = round.slot();
  std::uint32_t missing = 0;
  for (hop::InEdge& edge : child_pushes()) {
    hop::BlockReceiver& receiver = edge.receivers[slot];
    if (receiver.complete()) continue;
    missing += receiver.missing();
    receiver.close();
    if (receiver.has_heard()) job.acks.request(edge.id, round.id, true, now);
  }
  end_gather(job, round, reason, now);
  Accumulator& sums = slots_[slot].sums;
  const BlockRange range = slots_[slot].range;
  for (std::uint32_t b = range.begin; b < range.end; ++b) {
    if (sums.is_gathered(b)) continue;
    const std::uint16_t came = sums.contributors(b);
    const bool rescale = job.compensation == Compensation::kRescale && came > 0;
    sums.end_partial(b, rescale ? static_cast<double>(job.world_size) / came : 1);
    on_result(job, round, b, sums.seal(b), came);
  }
  return missing;
}

void Tree::end_gather(Context& job, Round& round, CloseReason reason, Instant now) {
  Gather& gather = *slots_[round.slot()].gather;
  gather.close(reason, now);
  round.bucket->count_close(reason, gather);
  job.counters.blocks_missing += gather.missing_blocks();
  job.counters.rounds_closed_early += reason == CloseReason::kEarly ? 1 : 0;
  job.counters.rounds_closed_deadline += reason == CloseReason::kDeadline ? 1 : 0;
  job.counters.rounds_closed_absent += reason == CloseReason::kAbsent ? 1 : 0;
  RoundReport report = gather.last_round(reason, now);
  report.round = round.id;
  report.bucket = round.geometry.bucket;
  report.tree = number_;
  job.reports.push(report);
  slots_[round.slot()].gather = nullptr;
  gathering_ = static_cast<std::uint16_t>(gathering_ & ~(1U << round.slot()));
}

void Tree::repeat_closing(Context& job, std::size_t edge, std::size_t slot, std::uint32_t round,
                          Instant now) {
  hop::BlockReceiver& receiver = in_[edge].receivers[slot];
  if (!receiver.closed()) return;
  receiver.close();
  job.acks.request(in_[edge].id, round, true, now);
}

/// A result is about to take the place of our contribution. Where the contribution is not known to
/// have entered it is kept, until the closing bitmap says whether it did.
void Tree::keep_contribution(Context& job, Round& round, std::uint32_t block) {
  if (round.bucket == nullptr || !has_parent()) return;
  Residual* residual = round.bucket->residual();
  const std::size_t slot = round.slot();
  if (residual == nullptr || push().senders[slot].is_acked(block)) return;
  std::array<const std::byte*, kMaxLocalRanks> parts;
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    parts[r] = job.ranks.at(r, slot, round.geometry, block);
  }
  const bool kept = residual->keep(block, {parts.data(), job.ranks.size()});
  if (!kept) ++job.counters.carry_dropped;
}

void Tree::on_settled(Context& job, Round& round, bool was_settled, Instant now) {
  const std::size_t slot = round.slot();
  if (was_settled || !push().senders[slot].settled()) return;
  --round.pushes_unsettled;
  settle_residual(job, round);
  // The last ack of the results has waited for this: the node that gives the results gathers the
  // pushes.
  if (results().receivers[slot].owes_ack()) {
    job.acks.request(results().id, round.id, true, now);
  }
}

void Tree::settle_residual(Context& job, Round& round) {
  const hop::BlockSender& sender = push().senders[round.slot()];
  job.counters.blocks_excluded += sender.excluded();
  if (round.bucket == nullptr) return;
  Residual* residual = round.bucket->residual();
  for (std::uint32_t b = sender.range().begin; b < sender.range().end; ++b) {
    if (!sender.is_acked(b)) {
      round.bucket->count_excluded(b);
    } else if (residual != nullptr) {
      residual->forget(b);
    }
  }
}

}  // namespace gradplane::aggregate
