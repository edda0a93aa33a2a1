// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// The part of GroupSession in which the ranks of a group decide together whether to carry, to fall
// back, or to try again. group_recovery.cc has the repair of a lost session.
#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/group_session.h"

namespace gradplane::shim {
namespace {

constexpr std::size_t kMinRoundBytes = kMinBlockBytes;

/// What the other ranks have not done yet when an exchange of statements takes long.
const char* awaited_in(Stage stage, bool able) {
  if (stage == Stage::kRecover)
    return "say how far they came before the session with gradplane was lost";
  if (stage != Stage::kStopped) return "reach this collective";
  return able ? "end their group, too: its last sums were made without some rank, which may need "
                "them from this one"
              : "notice that their session with gradplane is lost";
}

}  // namespace

bool GroupSession::agreement_is_due() const {
  if (ops_.empty()) return false;
  return mode_ == Mode::kUndecided ||
         (mode_ == Mode::kFallenBack && front_number_ == retry_.checkpoint());
}

/// Whether the ranks try to attach now: at the first operation, and at a checkpoint after a
/// fallback if enough time has passed. All earlier operations have ended. The next one would wait
/// in Gloo just as long for its peers.
bool GroupSession::all_want_to_agree() {
  if (mode_ == Mode::kUndecided) return true;
  Statement mine;
  mine.retry = retry_.view(now_ns());
  std::vector<RetryView> views;
  for (const Statement& s : exchange(mine, Stage::kRetry, true, "")) views.push_back(s.retry);
  return retry_.decide(views, now_ns());
}

void GroupSession::agree() {
  Statement mine;
  mine.settings = shared_settings(environment());
  std::string cause;
  std::vector<Statement> statements;
  const auto all_can = [&](Stage stage, bool able) {
    mine.required = carrier_.required() ? 1 : 0;
    statements = exchange(mine, stage, able, cause);
    return judge(statements).all_able;
  };
  // This comes before the first exchange, so that while this rank waits there, its daemon can tell
  // for which ranks it waits.
  const JobKey key = attempt_key(side_->key(), attempts_++);
  carrier_.limit_attempt(retry_.attempt_limit_ns());
  const bool attached = Carrier::daemon_in_sight(cause) && carrier_.attach(key, cause);
  bool carried = all_can(Stage::kAttached, attached);
  if (carried) {
    const bool ready = carrier_.wait_ready(cause);
    if (ready) {
      mine.round_bytes = carrier_.round_bytes();
      mine.rounds_in_flight = carrier_.rounds_in_flight_max();
      mine.selections = carrier_.selections();
      mine.average_every = carrier_.average_every();
      mine.staleness = carrier_.staleness();
      cause = "the daemon offers rounds of " + std::to_string(mine.round_bytes) + " bytes";
    }
    carried = all_can(Stage::kReady, mine.round_bytes >= kMinRoundBytes && mine.rounds_in_flight);
  }
  if (carried) {
    begin_carrying(statements);
  } else {
    carrier_.detach(true);
    fall_back(judge(statements));
  }
}

std::vector<Statement> GroupSession::exchange(Statement& mine, Stage stage, bool able,
                                              const std::string& cause) {
  mine.stage = stage;
  mine.able = able ? 1 : 0;
  mine.set_cause(able ? "" : cause);
  auto statements = gather(*side_, size_, mine,
                           [&](std::int64_t seconds) { say_for_whom(stage, able, seconds); });
  if (!same_stage(statements, stage)) {
    throw std::runtime_error(
        "gradplane: the ranks of the group have lost step; do all of them run one version, and "
        "call the same collectives in the same order?");
  }
  return statements;
}

void GroupSession::say_for_whom(Stage stage, bool able, std::int64_t seconds) {
  // After a fallback nothing is said of a slow rank, because the operation itself would wait for it
  // in silence, too.
  if (stage == Stage::kRetry && !environment().verbose) return;
  if (waits_no_longer()) return;
  // As far as this rank knows, no other rank lacks a result.
  const bool in_case = stage == Stage::kStopped && able && !carrier_.left_a_rank_behind();
  if (in_case && !environment().verbose) return;
  const bool joining = stage == Stage::kAttached || stage == Stage::kReady;
  const std::string daemon_says = joining ? carrier_.describe_wait() : "";
  std::fprintf(stderr, "gradplane: rank %d of %d has waited %lld s for the others to %s%s%s\n",
               rank_, size_, static_cast<long long>(seconds), awaited_in(stage, able),
               daemon_says.empty() ? "" : "; ", daemon_says.c_str());
}

void GroupSession::begin_carrying(const std::vector<Statement>& statements) {
  std::uint64_t round_bytes = UINT64_MAX;
  std::uint32_t in_flight = UINT32_MAX;
  for (const Statement& s : statements) {
    round_bytes = std::min(round_bytes, s.round_bytes);
    in_flight = std::min(in_flight, s.rounds_in_flight);
  }
  exchange_ = exchange_terms(statements);
  carrier_.start(round_bytes, in_flight, 0, exchange_.selections);
  if (mode_ == Mode::kFallenBack) announce_return();
  mode_ = Mode::kCarried;
  retry_.begin_carrying(front_number_, now_ns());
  say_verbose("rank " + std::to_string(rank_) + " of " + std::to_string(size_) +
              " is attached; collectives are carried from operation " +
              std::to_string(front_number_));
}

void GroupSession::fall_back(const Verdict& verdict) {
  if (verdict.required) {
    break_with(std::make_exception_ptr(
        std::runtime_error("gradplane: " + verdict.cause + "; to go on over " + side_->name() +
                           " is forbidden (ranks.require or GRADPLANE_REQUIRE)")));
    return;
  }
  if (mode_ != Mode::kFallenBack) counters().fallbacks += 1;
  mode_ = Mode::kFallenBack;
  retry_.fall_back(front_number_, now_ns());
  announce_fallback(verdict.cause, side_->name());
}

}  // namespace gradplane::shim
