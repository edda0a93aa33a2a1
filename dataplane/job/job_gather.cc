// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rounds that may lack blocks: when they close, what becomes of what is missing.
#include <array>
#include <bit>

#include "dataplane/base/assert.h"
#include "dataplane/job/job.h"
#include "dataplane/reduce/partial.h"

namespace gradplane::job {
namespace {

/// One block of so many is measured, another one in each round.
constexpr std::uint32_t kEnergySampling = 16;

}  // namespace

bool Job::add_bucket(aggregate::Bucket* bucket) {
  aggregate::Bucket*& place = buckets_[bucket->id()];
  if (place != nullptr || !geometry_fits(bucket->geometry())) return false;
  place = bucket;
  return true;
}

aggregate::Bucket* Job::bounds_of(const Geometry& geometry) const {
  aggregate::Bucket* bucket = buckets_[geometry.bucket];
  return bucket != nullptr && bucket->geometry() == geometry ? bucket : nullptr;
}

/// A bucket gathers one round at a time; another that comes before that one has closed is gathered
/// exactly.
void Job::open_gathers(Round& round) {
  if (round.bucket == nullptr) return;
  for (std::size_t t = 0; t < config_.trees.size(); ++t) {
    aggregate::Gather* gather = round.bucket->gather(t);
    const BlockRange range = range_of(t, round.id, round.geometry);
    if (gather == nullptr || gather->is_open() || range.size() == 0) continue;
    gather->open(range);
    round.bucket->reset_parts(range);
    round.lossy_trees |= std::uint64_t{1} << t;
    lossy_slots_ = static_cast<std::uint16_t>(lossy_slots_ | 1U << (round.id % kRoundSlots));
  }
}

/// False while another round of the bucket is not done here.
bool Job::is_free(const aggregate::Bucket* bucket, std::uint32_t round) {
  if (bucket == nullptr) return true;
  const auto in_hand = bucket->round_in_hand();
  return !in_hand || *in_hand == round;
}

/// What earlier rounds did not take in becomes part of the first local rank's contribution.
void Job::restore_residual(Round& round) {
  if (round.bucket == nullptr || round.bucket->residual() == nullptr) return;
  aggregate::Residual& residual = *round.bucket->residual();
  std::byte* slot = config_.local_ranks[0].arena + (round.id % kRoundSlots) * config_.round_bytes;
  for (std::size_t b = residual.next(0); b != Bitmap::kNone; b = residual.next(b + 1)) {
    const auto block = static_cast<std::uint32_t>(b);
    residual.move_to(block, slot + round.geometry.offset_bytes(block));
    ++counters_.blocks_carried;
  }
}

void Job::note_arrival(Round& round, const InEdge& edge, const wire::Header& h, Instant now) {
  if (!is_lossy(round, edge.tree)) return;
  round.bucket->gather(edge.tree)->on_block(edge.source,
                                            {.block = h.block,
                                             .last = (h.flags & wire::kFlagLast) != 0,
                                             .bounded = (h.flags & wire::kFlagBounded) != 0,
                                             .rtt = flows_[edge.peer].min_rtt()},
                                            now);
}

void Job::note_energy(Round& round, std::uint32_t block, std::span<const std::byte> bytes) {
  if (!is_measured(round, block)) return;
  round.bucket->add_part(
      block, reduce::energy(round.geometry.type, bytes.data(), round.geometry.elements_in(block)));
}

/// Every contribution to a block is in: `bytes` is their sum.
void Job::note_sum_energy(Round& round, std::uint32_t block, std::span<const std::byte> bytes) {
  if (!is_measured(round, block)) return;
  round.bucket->end_parts(
      block, reduce::energy(round.geometry.type, bytes.data(), round.geometry.elements_in(block)));
}

bool Job::is_measured(const Round& round, std::uint32_t block) const {
  return config_.measure_energy && round.lossy_trees != 0 &&
         block % kEnergySampling == round.id % kEnergySampling;
}

void Job::close_if_full(Round& round, std::size_t tree) {
  if (!is_lossy(round, tree) || round.local_left[tree] > 0) return;
  const aggregate::Gather& gather = *round.bucket->gather(tree);
  if (gather.missing_blocks() == 0) {
    end_gather(round, tree, CloseReason::kFull, gather.last_arrival());
  }
}

void Job::close_due_rounds(Instant now) {
  for (unsigned bits = lossy_slots_; bits != 0; bits &= bits - 1) {
    Round& round = rounds_[static_cast<std::size_t>(std::countr_zero(bits))];
    for (std::uint64_t trees = round.lossy_trees; trees != 0; trees &= trees - 1) {
      const auto tree = static_cast<std::size_t>(std::countr_zero(trees));
      if (round.local_left[tree] > 0) continue;
      const auto reason = round.bucket->gather(tree)->may_close(now);
      if (!reason || (*reason == CloseReason::kAbsent && !may_leave_behind(round))) continue;
      close_partial(round, tree, *reason, now);
    }
  }
}

/// Whether a round may be summed without a host that has sent nothing of it. That host may be dead,
/// and then the other ranks hand it every result that it lacks: none may get further ahead of it
/// than that (kMaxLeadRounds). Here the host is known by what it has not acked, which keeps a round
/// from ending. Of what it lacks of other trees only their roots know, so each of these must have a
/// say in this round.
bool Job::may_leave_behind(const Round& round) const {
  for (std::size_t t = 0; t < config_.trees.size(); ++t) {
    if (range_of(t, round.id, round.geometry).size() == 0) return false;
  }
  for (auto lead = static_cast<std::uint32_t>(kMaxLeadRounds); lead < kRoundSlots; ++lead) {
    if (!has_ended(round.id - lead)) return false;
  }
  return true;
}

/// Of a round that ranks have submitted another round kMaxInFlightRounds after. A node without
/// ranks never hears of a round that has no block for it; had this one a block here, then whoever
/// submitted the other would have had its result from us.
bool Job::has_ended(std::uint32_t id) const {
  const Round& slot = rounds_[id % kRoundSlots];
  if (static_cast<std::int32_t>(slot.id - id) > 0) return true;
  return !slot.open && config_.local_ranks.empty();
}

/// Sums what has come. From here on nothing more enters, and everybody is told what did: a child
/// that has pushed something at once, the others when they do. A child that heard it before would
/// push nothing, and nobody could tell when it has come to the round and takes results.
void Job::close_partial(Round& round, std::size_t tree, CloseReason reason, Instant now) {
  const std::size_t slot = round.id % kRoundSlots;
  watch_.moved();
  for (std::size_t e = 0; e < edges_.in.size(); ++e) {
    InEdge& edge = edges_.in[e];
    if (edge.type != wire::PacketType::kPush || edge.tree != tree) continue;
    if (edge.receivers[slot].complete()) continue;
    note_come(slot, edge.receivers[slot].missing());
    edge.receivers[slot].close();
    if (edge.receivers[slot].has_heard()) request_ack(e, round.id, true, now);
    if (grants_ != nullptr) grants_->withdraw(sources_[edge.peer], now);
  }
  const std::uint32_t round_id = round.id;
  const BlockRange range = range_of(tree, round.id, round.geometry);
  end_gather(round, tree, reason, now);
  aggregate::Accumulator& sums = round.accumulators[tree];
  for (std::uint32_t b = range.begin; b < range.end; ++b) {
    if (sums.is_gathered(b)) continue;
    const std::uint16_t came = sums.contributors(b);
    const bool rescale = config_.compensation == Compensation::kRescale && came > 0;
    sums.end_partial(b, rescale ? static_cast<double>(config_.world_size) / came : 1);
    result_known(round, tree, b, sums.seal(b), came);
  }
  GP_ASSERT(round.id == round_id || !round.open);
}

void Job::end_gather(Round& round, std::size_t tree, CloseReason reason, Instant now) {
  aggregate::Gather& gather = *round.bucket->gather(tree);
  gather.close(reason, now);
  round.bucket->count_close(reason, gather);
  counters_.blocks_missing += gather.missing_blocks();
  counters_.rounds_closed_early += reason == CloseReason::kEarly ? 1 : 0;
  counters_.rounds_closed_deadline += reason == CloseReason::kDeadline ? 1 : 0;
  counters_.rounds_closed_absent += reason == CloseReason::kAbsent ? 1 : 0;
  report_close(round, tree, gather.last_round(reason, now));
  round.lossy_trees &= ~(std::uint64_t{1} << tree);
  if (round.lossy_trees == 0) {
    lossy_slots_ = static_cast<std::uint16_t>(lossy_slots_ & ~(1U << (round.id % kRoundSlots)));
  }
}

void Job::report_close(const Round& round, std::size_t tree, RoundReport report) {
  report.number = ++rounds_reported_;
  report.round = round.id;
  report.bucket = round.geometry.bucket;
  report.tree = static_cast<std::uint8_t>(tree);
  // Reports are for people: when nobody takes them they are lost, and the numbers show how many.
  (void)reports_.push(report);
}

bool Job::poll_report(RoundReport& out) {
  if (reports_.empty()) return false;
  out = reports_.front();
  reports_.pop();
  return true;
}

/// A child may take no result because it has not heard that the round has closed without it: then
/// results fill the window, and it can be told in no other way.
void Job::repeat_closing(const OutEdge& results, std::size_t slot, Instant now) {
  const std::size_t push = edges_.find_in(wire::PacketType::kPush, results.tree, results.peer);
  hop::BlockReceiver& receiver = edges_.in[push].receivers[slot];
  if (!receiver.closed()) return;
  receiver.close();
  request_ack(push, rounds_[slot].id, true, now);
}

/// A result is about to take the place of our contribution. Where it is not known to have entered
/// it is kept, until the closing bitmap says whether it did.
void Job::keep_contribution(Round& round, std::size_t tree, std::uint32_t block) {
  if (round.bucket == nullptr || config_.trees[tree].parent == kNoPeer) return;
  aggregate::Residual* residual = round.bucket->residual();
  const std::size_t slot = round.id % kRoundSlots;
  const hop::BlockSender& push = edges_.out[edges_.push_out_of_tree[tree]].senders[slot];
  if (residual == nullptr || push.is_acked(block)) return;
  std::array<const std::byte*, kMaxLocalRanks> parts;
  for (std::size_t r = 0; r < config_.local_ranks.size(); ++r) {
    parts[r] = config_.local_ranks[r].arena + slot * config_.round_bytes +
               round.geometry.offset_bytes(block);
  }
  const bool kept = residual->keep(block, {parts.data(), config_.local_ranks.size()});
  if (!kept) ++counters_.carry_dropped;
}

/// After anything that may have been the last word about a push.
void Job::on_settled(Round& round, OutEdge& push, bool was_settled, Instant now) {
  const hop::BlockSender& sender = push.senders[round.id % kRoundSlots];
  if (was_settled || !sender.settled()) return;
  --round.pushes_unsettled;
  settle_residual(round, sender);
  // Our last ack of the results has waited for this: who gives the results gathers the pushes.
  const std::size_t results = edges_.find_in(wire::PacketType::kResult, push.tree, push.peer);
  if (edges_.in[results].receivers[round.id % kRoundSlots].owes_ack()) {
    request_ack(results, round.id, true, now);
  }
  tell_if_done(round);
  finish_if_done(round);
}

void Job::settle_residual(Round& round, const hop::BlockSender& sender) {
  counters_.blocks_excluded += sender.excluded();
  if (round.bucket == nullptr) return;
  aggregate::Residual* residual = round.bucket->residual();
  for (std::uint32_t b = sender.range().begin; b < sender.range().end; ++b) {
    if (!sender.is_acked(b)) {
      round.bucket->count_excluded(b);
    } else if (residual != nullptr) {
      residual->forget(b);
    }
  }
}

}  // namespace gradplane::job
