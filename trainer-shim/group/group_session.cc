// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/group_session.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer-shim/group/completer.h"
#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/threads.h"

namespace gradplane::shim {
namespace {

constexpr int kLongestWaitMs = 1000;
/// How long the thread of a closed group may take to notice that.
constexpr auto kGrace = std::chrono::milliseconds(1000);
/// How often the end of a group checks whether there is still a reason to wait.
constexpr auto kLook = std::chrono::milliseconds(100);
/// The progress thread needs some microseconds to leave the remains of a finished operation. A
/// thread of the program checks so many times whether it has.
constexpr int kLeavingTurns = 1000;
/// How long a rank that has ended keeps results that others may lack. It is at most half of the
/// group's timeout, so that operations elsewhere that wait for this rank do not time out meanwhile.
constexpr std::int64_t kHelpLimitMs = 60 * 1000;

/// Copies results out. Returns the failure, or null.
std::exception_ptr brought_out(Staging& memory) {
  try {
    memory.bring_out();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

GroupSession::GroupSession(std::unique_ptr<SideGroup> side, int rank, int size)
    : rank_(rank),
      size_(size),
      side_(std::move(side)),
      carrier_({static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(size)},
               side_->timeout().count()) {}

void GroupSession::start() {
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
}

void GroupSession::enqueue(CompletionPtr completion, const Collective& collective,
                           StagingPtr memory, Gradient gradient) {
  Op op;
  op.completion = std::move(completion);
  op.memory = std::move(memory);
  op.collective = collective;
  op.gradient = std::move(gradient);
  op.called_ns = now_ns();
  std::vector<Remains> remains;
  {
    const std::lock_guard lock(bell_->mutex);
    remains.swap(bell_->remains);
    // The list is cleaned only when it is full or all have ended, because it may be long.
    if (pending_count_ == 0 || unfinished_.size() == unfinished_.capacity()) {
      std::erase_if(unfinished_, [](const auto& weak) { return weak.expired(); });
      unfinished_.reserve(2 * unfinished_.size() + 1);
    }
    unfinished_.emplace_back(op.completion);
    ++pending_count_;
    inbox_.push_back(std::move(op));
  }
  bell_->rung.notify_one();
  carrier_.wake();
}

void GroupSession::free_leftovers(Leaving leaving) {
  std::vector<Remains> remains;
  std::unique_lock lock(bell_->mutex);
  for (int turn = 0; turn < kLeavingTurns && leaving == Leaving::kAll; ++turn) {
    if (bell_->leaving_count == 0) break;
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  remains.swap(bell_->remains);
  lock.unlock();
}

void GroupSession::wake() {
  ring(*bell_);
  carrier_.wake();
}

void GroupSession::ring(Bell& bell) {
  {
    const std::lock_guard lock(bell.mutex);
    bell.changed = true;
  }
  bell.rung.notify_one();
}

std::vector<CompletionPtr> GroupSession::unfinished() {
  std::vector<CompletionPtr> found;
  const std::lock_guard lock(bell_->mutex);
  for (const auto& weak : unfinished_) {
    if (auto completion = weak.lock()) found.push_back(std::move(completion));
  }
  return found;
}

void GroupSession::request_stop() {
  {
    const std::lock_guard lock(bell_->mutex);
    if (!stopping_) {
      const auto limit_ms = std::min<std::int64_t>(kHelpLimitMs, side_->timeout().count() / 2);
      help_until_ns_ = now_ns() + limit_ms * 1000000;
    }
    stopping_ = true;
  }
  bell_->rung.notify_one();
  carrier_.wake();
}

bool GroupSession::has_ended() {
  const std::lock_guard lock(bell_->mutex);
  return ended_;
}

void GroupSession::shut_down(std::int64_t limit_ms, Leftovers leftovers) {
  request_stop();
  const std::int64_t begun_ns = now_ns();
  const std::int64_t grace_ends_ns = begun_ns + std::chrono::nanoseconds(kGrace).count();
  std::unique_lock lock(bell_->mutex);
  const auto ended = [this] { return ended_; };
  while (!thread_ended_.wait_for(lock, kLook, ended)) {
    if (now_ns() < grace_ends_ns || is_awaited(begun_ns + limit_ms * 1000000)) continue;
    lock.unlock();
    side_->close();
    lock.lock();
    thread_ended_.wait_for(lock, kGrace, ended);
    break;
  }
  const bool join = ended_;
  std::vector<Remains> remains;
  // Callbacks of a group end before the group, as with Gloo's own threads.
  bell_->completed.wait_for(lock, kGrace, [this] { return bell_->completing_count == 0; });
  if (leftovers == Leftovers::kFreed) remains.swap(bell_->remains);
  lock.unlock();
  if (join) {
    thread_.join();
    return;
  }
  thread_.detach();
  // The thread may be stuck in Gloo for minutes, so this object is never freed.
  new std::shared_ptr<GroupSession>(shared_from_this());
}

/// Whether shut_down() has a reason to go on waiting. Call it under the lock.
bool GroupSession::is_awaited(std::int64_t limit_ns) const {
  const std::int64_t now = now_ns();
  return (pending_count_ != 0 && now < limit_ns) || (helping_ && now < help_until_ns_);
}

/// Whether the program no longer waits for this thread, which may be stuck in Gloo.
bool GroupSession::waits_no_longer() {
  const std::lock_guard lock(bell_->mutex);
  return stopping_ && pending_count_ == 0 && now_ns() > help_until_ns_;
}

bool GroupSession::nothing_is_left() {
  const std::lock_guard lock(bell_->mutex);
  return stopping_ && ops_.empty() && inbox_.empty();
}

void GroupSession::run() {
  name_thread("gp-progress");
  for (;;) {
    take_inbox();
    if (nothing_is_left()) break;
    try {
      if (agreement_is_due()) {
        if (all_want_to_agree()) agree();
      } else if (mode_ == Mode::kCarried) {
        carry_turn();
      } else if (ops_.empty()) {
        wait_for_inbox();
      } else if (mode_ == Mode::kFallenBack) {
        fall_back_turn();
      } else {
        break_with(broken_);
      }
    } catch (...) {
      break_with(std::current_exception());
      side_->close();  // so that no peer waits for this rank until its timeout
    }
  }
  end_in_step();
  carrier_.detach(true);
  {
    const std::lock_guard lock(bell_->mutex);
    ended_ = true;
  }
  thread_ended_.notify_all();
}

void GroupSession::take_inbox() {
  std::optional<Drift> drift;
  {
    const std::lock_guard lock(bell_->mutex);
    while (!inbox_.empty()) {
      ops_.push_back(std::move(inbox_.front()));
      inbox_.pop_front();
    }
    drift.swap(drift_);
  }
  if (!drift || mode_ != Mode::kCarried) return;
  carrier_.report_drift(drift->step, drift->distance, drift->norm);
}

void GroupSession::report(const Drift& drift) {
  {
    const std::lock_guard lock(bell_->mutex);
    drift_ = drift;
  }
  carrier_.wake();
}

void GroupSession::wait_for_inbox() {
  std::unique_lock lock(bell_->mutex);
  bell_->rung.wait(
      lock, [this] { return !inbox_.empty() || (stopping_ && ops_.empty()) || bell_->changed; });
  bell_->changed = false;
}

void GroupSession::carry_turn() {
  bool worked = submit_some();
  Carrier::Turn turn = carrier_.poll();
  if (turn == Carrier::Turn::kWorked) finish_completed();
  if (turn == Carrier::Turn::kIdle && !worked) turn = carrier_.wait(wait_ms_until_deadline());
  if (turn == Carrier::Turn::kOver) {
    finish_completed();
    recover();
    return;
  }
  check_deadlines();
}

bool GroupSession::submit_some() {
  bool worked = false;
  for (Op& op : ops_) {
    while (!op.collective.all_submitted()) {
      if (!op.memory->is_in()) return worked;  // later operations must wait, too
      if (!carrier_.submit_next(op.collective, op.gradient.layout.get())) return worked;
      worked = true;
      if (op.deadline_ns != 0) continue;
      op.deadline_ns = now_ns() + std::chrono::nanoseconds(side_->timeout()).count();
    }
  }
  return worked;
}

/// Whether an operation has begun. They begin in order, and few of the many that wait have begun.
bool GroupSession::is_begun(const Op& op) {
  return op.deadline_ns != 0 || op.collective.submitted_bytes != 0 || op.collective.complete();
}

void GroupSession::finish_completed() {
  for (Op& op : ops_) {
    if (!is_begun(op)) break;
    if (!op.completion || !op.collective.complete()) continue;
    const bool exchanged = op.collective.exchanged_bytes != 0;
    count(counters().carried_ops, exchanged ? Operation::kExchange : op.collective.operation);
    if (op.gradient.layout) counters().carried_buckets += 1;
    if (exchanged) announce_exchange(exchange_);
    finish(op, nullptr);
  }
  pop_finished();
}

int GroupSession::wait_ms_until_deadline() const {
  std::int64_t wait_ms = kLongestWaitMs;
  for (const Op& op : ops_) {
    if (!is_begun(op)) break;
    if (!op.completion || op.deadline_ns == 0) continue;
    wait_ms = std::min(wait_ms, (op.deadline_ns - now_ns()) / 1000000 + 1);
  }
  return static_cast<int>(std::max<std::int64_t>(wait_ms, 0));
}

void GroupSession::check_deadlines() {
  const auto late = std::find_if(ops_.begin(), ops_.end(), [now = now_ns()](const Op& op) {
    return !is_begun(op) || (op.completion && op.deadline_ns != 0 && op.deadline_ns < now);
  });
  if (late == ops_.end() || !is_begun(*late)) return;
  const std::string name(operation_name(late->collective.operation));
  carrier_.detach(false);
  break_with(std::make_exception_ptr(
      std::runtime_error("Timed out waiting " + std::to_string(side_->timeout().count()) +
                         "ms for " + name + " to complete over gradplane")));
  side_->close();
}

void GroupSession::fall_back_turn() {
  std::uint64_t number = front_number_;
  for (Op& op : ops_) {
    if (number++ == retry_.checkpoint()) break;
    if (!op.completion || op.side_work) continue;
    if (!op.memory->is_in()) break;
    issue_on_side(op);
  }
  bool worked = false;
  for (Op& op : ops_) {
    if (!op.side_work || !op.side_work->is_over()) continue;
    std::exception_ptr failure;
    try {
      op.side_work->wait();
    } catch (...) {
      failure = std::current_exception();
    }
    finish(op, failure);
    worked = true;
  }
  pop_finished();
  if (!worked) wait_for_inbox();
}

void GroupSession::issue_on_side(Op& op) {
  const Collective& c = op.collective;
  count(counters().fallen_back_ops, c.operation);
  try {
    op.side_work = side_->start(c, c.completed_bytes, c.bytes - c.completed_bytes, op.memory);
  } catch (...) {
    finish(op, std::current_exception());  // all ranks refuse the same operations
    return;
  }
  op.side_work->when_over([bell = bell_] { ring(*bell); });
}

void GroupSession::finish(Op& op, std::exception_ptr failure) {
  if (op.gradient.schedule && !failure) {
    const Collective& c = op.collective;
    op.gradient.schedule->end_bucket({.exchanged = c.exchanged_bytes != 0,
                                      .summed = c.exchanged_bytes != c.bytes,
                                      .average_every = exchange_.average_every});
  }
  if (failure) counters().failed_ops += 1;
  counters().pending_ns += static_cast<std::uint64_t>(now_ns() - op.called_ns);
  op.side_work.reset();
  bool goes_out = !failure && op.memory->goes_out();
  if (goes_out && op.memory->goes_out_at_once()) {
    failure = brought_out(*op.memory);
    goes_out = false;
  }
  const bool in_place = !goes_out && op.completion->may_finish_in_place();
  {
    const std::lock_guard lock(bell_->mutex);
    --pending_count_;
    (in_place ? bell_->leaving_count : bell_->completing_count) += 1;
  }
  Remains own{std::exchange(op.completion, nullptr), std::exchange(op.memory, nullptr)};
  // Without another thread between them, the waiting thread has the result sooner.
  if (in_place) {
    own.completion->finish(failure);
    const std::lock_guard lock(bell_->mutex);
    bell_->remains.push_back(std::move(own));
    --bell_->leaving_count;
    return;
  }
  complete_soon([own = std::move(own), goes_out, failure, bell = bell_]() mutable {
    own.completion->finish(goes_out ? brought_out(*own.memory) : failure);
    const std::lock_guard lock(bell->mutex);
    bell->remains.push_back(std::move(own));
    --bell->completing_count;
    bell->completed.notify_all();
  });
}

void GroupSession::pop_finished() {
  while (!ops_.empty() && !ops_.front().completion) {
    ops_.pop_front();
    ++front_number_;
  }
}

void GroupSession::break_with(std::exception_ptr failure) {
  mode_ = Mode::kBroken;
  broken_ = failure;
  carrier_.detach(false);
  // Gloo only says that a connection has ended. The daemons know which rank is lost, and why.
  if (!ops_.empty() && !lost_because_.empty()) {
    announce_loss(std::exchange(lost_because_, {}), rank_, side_->name());
  }
  for (Op& op : ops_) {
    if (op.completion) finish(op, failure);
  }
  pop_finished();
}

}  // namespace gradplane::shim
