// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// The part of GroupSession in which the ranks of a group repair the rounds of a lost session.
// docs/decisions/0007-absent-hosts-and-recovery.md gives the reason for each step.
#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "dataplane/reduce/kernels.h"
#include "dataplane/reduce/partial.h"
#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/group_session.h"

namespace gradplane::shim {
namespace {

/// Which ranks had not submitted the round: "rank 2 had not", "ranks 2, 4 had not".
std::string who_lacks(const std::vector<Statement>& statements, std::uint64_t round) {
  std::string names;
  int count = 0;
  for (std::size_t rank = 0; rank < statements.size(); ++rank) {
    if (statements[rank].next_round > round) continue;
    names += (count++ == 0 ? "" : ", ") + std::to_string(rank);
  }
  if (count == 0) return "all ranks had";
  return (count == 1 ? "rank " : "ranks ") + names + " had not";
}

/// Multiplies elements by a factor. Each product is rounded once.
void multiply(ElementType type, std::span<std::byte> elements, double factor) {
  const std::size_t count = elements.size() / element_bytes(type);
  std::vector<std::byte> products(count * accumulator_bytes(type));
  const reduce::Kernels& kernels = reduce::kernels_for(type);
  kernels.set(products.data(), elements.data(), count);
  reduce::scale(type, products.data(), factor, count);
  kernels.finish(elements.data(), products.data(), count);
}

}  // namespace

/// While this object lives, the end of the group waits, because other ranks may need this rank.
class GroupSession::Helping {
 public:
  explicit Helping(GroupSession& session) : session_(session) { set(true); }
  ~Helping() { set(false); }
  Helping(const Helping&) = delete;
  Helping& operator=(const Helping&) = delete;

 private:
  void set(bool helping) {
    const std::lock_guard lock(session_.bell_->mutex);
    session_.helping_ = helping;
  }

  GroupSession& session_;
};

void GroupSession::recover() {
  const std::string cause = carrier_.cause();
  try {
    recover_from(cause);
  } catch (...) {
    lost_because_ = cause;
    throw;
  }
}

void GroupSession::recover_from(const std::string& cause) {
  const Helping helping(*this);
  Statement mine;
  // No rank says which rounds it has completed before all have stopped. A daemon that lives may
  // complete another round here, and a rank that still submits may reuse the slots of the oldest
  // results.
  carrier_.leave();
  exchange(mine, Stage::kStopped, false, cause);
  const std::vector<Statement> statements = repair(false, cause);
  for (Op& op : ops_) {
    op.collective.submitted_bytes = op.collective.completed_bytes;
    op.deadline_ns = 0;
  }
  fall_back(judge(statements));
}

/// Ends a rank that has all its results. Another rank may lack some of them, or may not notice that
/// this one has gone. Then this rank stays in the session until all have ended, and helps to repair
/// if the session is lost before that. Its own training is over, so a failure here is not reported.
void GroupSession::end_in_step() {
  if (mode_ != Mode::kCarried) return;
  if (!carrier_.left_a_rank_behind() && side_->closing_ends_waits()) return;
  const Helping helping(*this);
  try {
    Statement mine;
    if (judge(exchange(mine, Stage::kStopped, true, "")).all_able) return;
    carrier_.leave();
    repair(true, "");
  } catch (...) {
    say_verbose("rank " + std::to_string(rank_) + " waits no longer for the others to end");
    side_->close();  // so that no peer waits for this rank until its timeout
  }
}

/// The second half of a recovery, when all ranks have stopped. The ranks exchange which rounds they
/// have completed, and each gets the results that it lacks. Returns the statements of all ranks.
std::vector<Statement> GroupSession::repair(bool able, const std::string& cause) {
  Statement mine;
  mine.required = carrier_.required() ? 1 : 0;
  carrier_.drain();
  finish_completed();
  carrier_.describe(mine);
  Recovery recovery;
  recovery.kept = carrier_.release_all();
  recovery.statements = exchange(mine, Stage::kRecover, able, cause);
  const RecoveryPlan plan = plan_recovery(recovery.statements);
  if (!plan.possible) {
    throw std::runtime_error(
        "gradplane: the results of a lost session cannot be repaired: " + plan.obstacle +
        "; it was lost because " + judge(recovery.statements).cause);
  }
  recovery.round = plan.first;
  for (const int holder : plan.holders) {
    if (holder == kEachItsOwn) {
      repair_exchange(recovery);
    } else {
      repair_round(recovery, holder);
    }
    ++recovery.round;
    finish_completed();  // the trainer may need this result before it issues the next operation
  }
  return recovery.statements;
}

/// Completes an exchange that this rank lacks with the mean over only its own update. It asks no
/// other rank: those that have completed the exchange may have forgotten it, and their results are
/// not this rank's. The parameters will be averaged soon.
void GroupSession::repair_exchange(const Recovery& recovery) {
  const Statement& mine = recovery.statements[static_cast<std::size_t>(rank_)];
  if (has_completed(mine, recovery.round)) return;
  const Round& slice = slice_of(recovery.round);
  const Collective& collective = *slice.collective;
  multiply(collective.type, {collective.data + slice.offset_bytes, slice.bytes}, size_);
  carrier_.complete(recovery.round);
  counters().recovered_rounds += 1;
}

/// Gives the result of a round to every rank that lacks it: a copy of the holder's, or a new one
/// from Gloo.
void GroupSession::repair_round(Recovery& recovery, int holder) {
  const std::uint64_t round = recovery.round;
  Round& slice = slice_of(round);
  const auto say = [&](std::int64_t seconds) {
    std::fprintf(stderr,
                 "gradplane: rank %d of %d has waited %lld s for all ranks to repair round %llu of "
                 "the lost session, which %s issued\n",
                 rank_, size_, static_cast<long long>(seconds),
                 static_cast<unsigned long long>(round),
                 who_lacks(recovery.statements, round).c_str());
  };
  if (slice.operation == Operation::kReduceScatter) {
    repair_shards(recovery, slice, say);
  } else if (holder == kNobody) {
    const Collective& collective = *slice.collective;
    wait_for(*side_->start(collective, slice.offset_bytes, slice.bytes, memory_of(collective)),
             say);
  } else if (holder == rank_) {
    wait_for(*side_->broadcast(kept_result(recovery).bytes, rank_), say);
  } else {
    std::vector<std::byte> bytes(slice.slot_bytes());
    wait_for(*side_->broadcast(bytes, holder), say);
    if (!slice.completed) slice.take(bytes.data(), static_cast<std::uint32_t>(rank_));
  }
  if (slice.completed) return;
  carrier_.complete(round);
  counters().recovered_rounds += 1;
}

/// Repairs a round of shards: the ranks sum the round once more, because each shard of the result
/// is on one rank only. In the kept slot of a rank that has its result, the rank's own shard holds
/// this result instead of the contribution. So the new sum of this shard is wrong, but no rank
/// lacks it.
void GroupSession::repair_shards(Recovery& recovery, Round& slice, const StillWaiting& say) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(slice.slot_bytes());
  if (slice.completed) {
    *bytes = kept_result(recovery).bytes;
  } else {
    slice.give(bytes->data(), static_cast<std::uint32_t>(rank_));
  }
  Collective sum;
  sum.data = bytes->data();
  sum.bytes = bytes->size();
  sum.type = slice.type;
  sum.reduction = slice.reduction;
  const auto memory = std::make_shared<HostMemory<decltype(bytes)>>(bytes);
  wait_for(*side_->start(sum, 0, sum.bytes, memory), say);
  if (!slice.completed) slice.take(bytes->data(), static_cast<std::uint32_t>(rank_));
}

Carrier::Kept& GroupSession::kept_result(Recovery& recovery) {
  const auto own = std::find_if(recovery.kept.begin(), recovery.kept.end(),
                                [&](const Carrier::Kept& k) { return k.round == recovery.round; });
  if (own == recovery.kept.end()) throw std::runtime_error("gradplane: a kept result is gone");
  return *own;
}

/// The slice of a round. If the other ranks have gone on without this one, the slice is cut from
/// the next operation as they have cut it, when the trainer has issued that operation.
Round& GroupSession::slice_of(std::uint64_t round) {
  Round* const submitted = carrier_.find(round);
  if (submitted) return *submitted;
  if (round != carrier_.next_round()) {
    throw std::runtime_error("gradplane: a round to repair is not known any more");
  }
  return carrier_.skip_next(next_unsubmitted(round));
}

const StagingPtr& GroupSession::memory_of(const Collective& collective) const {
  return std::find_if(ops_.begin(), ops_.end(),
                      [&](const Op& op) { return &op.collective == &collective; })
      ->memory;
}

/// The next operation that is not submitted. It waits until the trainer has issued it, at most for
/// the group's timeout.
Collective& GroupSession::next_unsubmitted(std::uint64_t round) {
  const auto begun = std::chrono::steady_clock::now();
  auto next_word = kFirstWord;
  for (;;) {
    take_inbox();
    const auto op = std::find_if(ops_.begin(), ops_.end(), [](const Op& o) {
      return o.completion && !o.collective.all_submitted();
    });
    const bool is_called = op != ops_.end();
    if (is_called && op->memory->is_in()) return op->collective;
    const std::string awaited =
        "for its program to call the collective that other ranks have completed without it "
        "(round " +
        std::to_string(round) + " of the lost session)";
    std::unique_lock lock(bell_->mutex);
    if (!is_called && stopping_ && inbox_.empty()) {
      throw std::runtime_error("gradplane: rank " + std::to_string(rank_) +
                               " ended its group; the others waited " + awaited);
    }
    const auto until = std::min<std::chrono::steady_clock::duration>(next_word, side_->timeout());
    const auto may_be_there = [&] {
      return !inbox_.empty() || (is_called ? bell_->changed : stopping_);
    };
    if (bell_->rung.wait_until(lock, begun + until, may_be_there)) {
      bell_->changed = false;
      continue;
    }
    lock.unlock();
    if (std::chrono::steady_clock::now() - begun >= side_->timeout()) {
      throw std::runtime_error("gradplane: timed out after " +
                               std::to_string(side_->timeout().count()) + " ms: rank " +
                               std::to_string(rank_) + " waited " + awaited);
    }
    std::fprintf(stderr, "gradplane: rank %d of %d has waited %lld s %s\n", rank_, size_,
                 static_cast<long long>(next_word.count()), awaited.c_str());
    next_word *= 2;
  }
}

}  // namespace gradplane::shim
