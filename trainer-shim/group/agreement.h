// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/staleness.h"
#include "trainer-shim/client/client.h"
#include "trainer-shim/group/retry_policy.h"

namespace gradplane::shim {

/// Identifies a job to the daemons, and is also its secret.
using JobKey = std::array<std::uint8_t, 16>;

/// The key of one attempt of a group to attach. To the daemons each attempt is a job of its own.
JobKey attempt_key(const JobKey& group_key, std::uint32_t attempt);

/// The stage of a statement. The ranks of a group exchange statements over the side group whenever
/// they must decide alike, and all of them compute the decision from the same statements. A
/// statement is plain bytes: it travels in an all_gather between processes of one architecture.
enum class Stage : std::uint32_t {
  kAttached = 1,  // the daemon has accepted this rank
  kReady = 2,     // the daemon says that all ranks have joined
  kStopped = 3,   // the session is over: this rank submits no more
  kRecover = 4,   // after a lost session: which rounds this rank has completed
  kRetry = 5,     // after a fallback: how long this rank wants to wait before it tries again
};

inline constexpr std::uint32_t kStatementMagic = 0x67707336;  // "gps6"
inline constexpr std::size_t kCauseBytes = GP_TEXT_BYTES;     // no reason is cut

struct Statement {
  std::uint32_t magic = kStatementMagic;
  Stage stage = Stage::kAttached;
  std::uint32_t able = 0;      // 1: this rank can go on with gradplane
  std::uint32_t required = 0;  // 1: this rank must not fall back
  std::uint32_t rounds_in_flight = 0;
  std::uint32_t selections = 0;        // of the job's plan, as the daemon says
  std::uint32_t average_every = 0;     // as the daemon says
  std::uint32_t staleness = 0;         // as the daemon says
  std::uint64_t first_incomplete = 0;  // the first round that is not complete here
  std::uint64_t next_round = 0;        // the first that this rank did not submit
  std::uint64_t completed = 0;         // bit i: round first_incomplete + i is complete
  std::uint64_t exchanges = 0;         // bit i: round next_round - 1 - i is an exchange
  std::uint64_t round_bytes = 0;
  std::uint64_t settings = 0;  // shared_settings(); 0 in stages that do not need it
  RetryView retry;
  std::array<char, kCauseBytes> cause{};  // why it is not able; ends with 0

  void set_cause(std::string_view text);
};
static_assert(sizeof(Statement) == 8 * 4 + 8 * 8 + kCauseBytes, "no padding goes on the wire");

/// True if every statement has our magic number and this stage. Otherwise the ranks are no longer
/// in step.
bool same_stage(std::span<const Statement> statements, Stage stage);

/// Whether the rank has the result of a round, by its statement.
bool has_completed(const Statement& s, std::uint64_t round);

/// How the ranks exchange updates in a session. They do only if all daemons say the same number of
/// selections, and they take averages as often as any daemon wants.
struct ExchangeTerms {
  std::uint32_t selections = 0;     // 0: they sum
  std::uint32_t average_every = 0;  // passes; 0: never
  std::uint32_t staleness = 0;      // passes by which an update of another rank may be late
};

ExchangeTerms exchange_terms(std::span<const Statement> statements);

struct Verdict {
  bool all_able = false;
  bool required = false;  // some rank must not fall back
  std::string cause;      // from the first rank that is not able: "rank 2 reports: ..."
};

Verdict judge(std::span<const Statement> statements);

/// The rounds of a lost session that the ranks repair together, so that all replicas hold the same
/// bits. A rank may not have submitted some of these rounds, because the others went on without it.
struct RecoveryPlan {
  bool possible = false;
  std::string obstacle;     // why it is not possible
  std::uint64_t first = 0;  // the first round that some rank lacks
  /// For each round from `first` on: the lowest rank whose arena holds its result, or kNobody when
  /// no rank has completed it, or kEachItsOwn. No rank has a result after the last of these rounds,
  /// so the operations continue from there over Gloo.
  std::vector<int> holders;
};

inline constexpr int kNobody = -1;
/// The round is an exchange, in which each rank has a result of its own. A rank that lacks it needs
/// no other rank: it goes on with only its own update.
inline constexpr int kEachItsOwn = -2;
/// The most rounds that are repaired. Under bounded staleness ranks may be many rounds apart in
/// exchanges, but at most by the rounds of a cycle of selections and of the steps of the staleness
/// bound.
inline constexpr std::uint64_t kMaxRepairedRounds = std::uint64_t{1} << 20;
static_assert((kMaxSelections + kMaxStalenessSteps) * kMaxBuckets < kMaxRepairedRounds,
              "a step has a round for each bucket that the daemon knows");

RecoveryPlan plan_recovery(std::span<const Statement> statements);

}  // namespace gradplane::shim
