// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds that may lack blocks: when they close, and what happens to missing blocks.
#include <array>

#include "dataplane/aggregate/tree.h"
#include "dataplane/base/assert.h"

namespace gradplane::aggregate {

/// A bucket gathers one round at a time in each tree. A round that opens while another one is
/// gathered under bounds is itself gathered exactly.
void Tree::open_gather(Round& round) {
  Slot& own = slots_[round.slot()];
  own.gather = nullptr;
  own.bounded = own.allowed = false;
  own.patience = {};
  Gather* gather = round.bucket == nullptr ? nullptr : round.bucket->gather(epoch_, number_);
  if (gather == nullptr || gather->is_open() || own.range.size() == 0) return;
  GP_ASSERT(!round.streamed);
  HostSet senders;
  if (round.geometry.operation == Operation::kExchange) {
    senders = round.partition->selections().senders_to(round.geometry.source, own_host_);
    if (is_empty(senders)) return;
  }
  gather->open(own.range, senders);
  round.bucket->reset_parts(own.range);
  own.gather = gather;
  gathering_ = static_cast<std::uint16_t>(gathering_ | 1U << round.slot());
}

void Tree::close_if_arrived(Context& job, Round& round) {
  const Slot& own = slots_[round.slot()];
  if (own.gather == nullptr || own.local_left > 0 || !own.gather->all_arrived()) return;
  end_gather(job, round, own.gather->reason_when_arrived(), own.gather->last_arrival());
}

void Tree::allow(const Round& round) {
  Gather* gather = slots_[round.slot()].gather;
  if (gather == nullptr && round.bucket != nullptr) {
    gather = round.bucket->gather(epoch_, number_);
  }
  if (gather != nullptr) gather->allow();
}

Duration Tree::patience(const Round& round, Instant now) const {
  const Slot& own = slots_[round.slot()];
  const Gather::Patience patience =
      own.gather != nullptr ? own.gather->patience(now) : own.patience;
  if (patience.until_close <= Duration{}) return {};
  const std::int64_t unsent = push().senders[round.slot()].unsent();
  return patience.until_close + patience.transfer * unsent / own.range.size();
}

std::optional<CloseReason> Tree::may_close(std::size_t slot, Instant now, Gather::Absence absence) {
  const Slot& own = slots_[slot];
  if (own.gather == nullptr || own.local_left > 0) return std::nullopt;
  if (has_parent() && local_ranks_ > 0) own.gather->begin(now);
  return own.gather->may_close(now, absence);
}

void Tree::note_row(std::size_t slot, hop::EdgeIndex edge, bool is_last, Instant now) {
  Gather* gather = slots_[slot].gather;
  if (gather != nullptr) gather->on_row(source_of(edge), is_last, now);
}

bool Tree::has_live_absentee(std::size_t slot, const hop::PeerTable& peers, Instant now) const {
  const Gather& gather = *slots_[slot].gather;
  for (const hop::InEdge& edge : child_pushes()) {
    const hop::EdgeIndex index = edge.id.index;
    const std::size_t source = source_of(index);
    const Instant heard =
        gather.has_begun(source) ? peers[edge.peer].heard_at : out()[index.index()].ended_at;
    if (gather.is_spared(source, heard, now)) return true;
  }
  return false;
}

/// Closes the edges of children that lack blocks. A child that has pushed something is told at once
/// that nothing more enters; the others are told when they push. A child that heard it earlier
/// would push nothing, and then this node could not tell when the child has begun the round and
/// takes results.
std::uint32_t Tree::close_children(Context& job, Round& round, Instant now) {
  const std::size_t slot = round.slot();
  std::uint32_t missing = 0;
  for (hop::InEdge& edge : child_pushes()) {
    hop::BlockReceiver& receiver = edge.receivers[slot];
    if (receiver.complete()) continue;
    missing += receiver.missing();
    receiver.close();
    if (receiver.has_heard()) job.acks.request(edge.id, round.id, now);
  }
  return missing;
}

std::uint32_t Tree::close_partial(Context& job, Round& round, CloseReason reason, Instant now) {
  const std::uint32_t missing = close_children(job, round, now);
  end_gather(job, round, reason, now);
  Slot& own = slots_[round.slot()];
  for (std::uint32_t b = own.range.begin; b < own.range.end; ++b) {
    if (own.sums.is_gathered(b)) continue;
    own.sums.stop_waiting(b);
    on_gathered(job, round, b);
  }
  return missing;
}

void Tree::end_gather(Context& job, Round& round, CloseReason why, Instant now) {
  Slot& own = slots_[round.slot()];
  Gather& gather = *own.gather;
  const CloseReason reason = gather.with_absent(why);
  own.patience = gather.patience(now);
  own.allowed = gather.allows_below();
  gather.close(reason, now);
  own.bounded = gather.all_bounded();
  own.gather = nullptr;
  gathering_ = static_cast<std::uint16_t>(gathering_ & ~(1U << round.slot()));
  count_close(job.counters, reason);
  if (has_parent()) return;  // the root tells what was missing of the whole tree
  report_close(job, *round.bucket, gather, reason, {round.id, epoch_, number_}, now);
}

void count_close(hop::Counters& counters, CloseReason reason) {
  counters.rounds_closed_early += reason == CloseReason::kEarly ? 1 : 0;
  counters.rounds_closed_deadline += reason == CloseReason::kDeadline ? 1 : 0;
  counters.rounds_closed_absent += reason == CloseReason::kAbsent ? 1 : 0;
}

void report_close(Context& job, Bucket& bucket, const Gather& gather, CloseReason reason,
                  const RoundPlace& place, Instant now) {
  bucket.count_close(reason, gather);
  job.counters.blocks_missing += gather.missing_blocks();
  RoundReport report = gather.last_round(reason, now);
  report.round = place.round;
  report.epoch = place.epoch;
  report.bucket = static_cast<std::uint16_t>(bucket.id());
  report.tree = place.tree;
  job.reports.push(report);
}

void Tree::repeat_closing(Context& job, hop::EdgeIndex edge, std::size_t slot, std::uint32_t round,
                          Instant now) {
  hop::BlockReceiver& receiver = in(edge).receivers[slot];
  if (!receiver.closed()) return;
  receiver.close();
  job.acks.request(in(edge).id, round, now);
}

/// A result without this host is about to overwrite its contribution. If the job carries, the
/// contribution is kept for the next gradient.
void Tree::keep_contribution(Context& job, Round& round, std::uint32_t block) {
  ++job.counters.blocks_excluded;
  if (round.bucket == nullptr) return;
  round.bucket->count_excluded(block);
  Residual* residual = round.bucket->residual();
  if (residual == nullptr) return;
  std::array<const std::byte*, kMaxLocalRanks> parts;
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    parts[r] = job.ranks.at(r, round, block);
  }
  const bool kept = residual->keep(block, {parts.data(), job.ranks.size()});
  if (!kept) ++job.counters.carry_dropped;
}

}  // namespace gradplane::aggregate
