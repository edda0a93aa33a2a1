// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/agreement.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "dataplane/model/limits.h"

namespace gradplane::shim {
namespace {

constexpr const char* kDifferentSettings =
    " has another value than rank 0 of GRADPLANE_GRADIENTS, GRADPLANE_HEED_REDUCE_OP or "
    "GRADPLANE_MPI_GRADIENTS; give all ranks the same";

/// Whether the rank has since submitted a round that uses the same arena slot.
bool has_forgotten(const Statement& s, std::uint64_t round) {
  return s.next_round > round && s.next_round - round > kRoundSlots;
}

/// Whether a round that this rank lacks and another rank has completed is an exchange. If this rank
/// has not submitted it, in a session with exchanges, it must be one: the others could not complete
/// another operation without this rank.
bool lacks_exchange(const Statement& s, std::uint64_t round) {
  if (round >= s.next_round) return s.selections != 0;
  const std::uint64_t back = s.next_round - 1 - round;
  return back < kRoundSlots && ((s.exchanges >> back) & 1) != 0;
}

struct RoundView {
  int holder = kNobody;      // the lowest rank that has its result
  int forgetful = kNobody;   // the lowest rank whose slot a newer round uses
  bool is_exchange = false;  // true if all ranks that lack it say so
};

RoundView view_of(std::span<const Statement> statements, std::uint64_t round) {
  RoundView view;
  bool is_lacked = false;
  bool is_exchange = true;
  for (int rank = static_cast<int>(statements.size()); rank-- > 0;) {
    const Statement& s = statements[static_cast<std::size_t>(rank)];
    if (has_forgotten(s, round)) view.forgetful = rank;
    if (has_completed(s, round)) {
      view.holder = rank;
    } else {
      is_lacked = true;
      is_exchange = is_exchange && lacks_exchange(s, round);
    }
  }
  view.is_exchange = is_lacked && is_exchange;
  return view;
}

/// One past the last round that this rank completed.
std::uint64_t completed_end(const Statement& s) {
  return s.first_incomplete + static_cast<std::uint64_t>(std::bit_width(s.completed));
}

}  // namespace

bool has_completed(const Statement& s, std::uint64_t round) {
  if (round < s.first_incomplete) return true;
  const std::uint64_t bit = round - s.first_incomplete;
  return bit < 64 && ((s.completed >> bit) & 1) != 0;
}

ExchangeTerms exchange_terms(std::span<const Statement> statements) {
  ExchangeTerms terms;
  for (const Statement& s : statements) {
    if (s.selections != statements.front().selections) return {};
    const bool is_rarer = terms.average_every != 0 && s.average_every >= terms.average_every;
    if (s.average_every != 0 && !is_rarer) terms.average_every = s.average_every;
    terms.selections = s.selections;
    terms.staleness = std::max(terms.staleness, s.staleness);
  }
  return terms.selections == 0 ? ExchangeTerms{} : terms;
}

JobKey attempt_key(const JobKey& group_key, std::uint32_t attempt) {
  JobKey key = group_key;
  for (std::size_t i = 0; i < sizeof attempt; ++i) {
    key[i] ^= static_cast<std::uint8_t>(attempt >> (8 * i));
  }
  return key;
}

void Statement::set_cause(std::string_view text) {
  cause.fill(0);
  std::memcpy(cause.data(), text.data(), std::min(text.size(), cause.size() - 1));
}

bool same_stage(std::span<const Statement> statements, Stage stage) {
  return std::all_of(statements.begin(), statements.end(), [&](const Statement& s) {
    return s.magic == kStatementMagic && s.stage == stage && s.cause.back() == 0;
  });
}

Verdict judge(std::span<const Statement> statements) {
  Verdict verdict;
  verdict.all_able = true;
  for (std::size_t rank = 0; rank < statements.size(); ++rank) {
    const Statement& s = statements[rank];
    verdict.required |= s.required != 0;
    const bool differs = s.settings != statements.front().settings;
    if ((s.able != 0 && !differs) || !verdict.all_able) continue;
    verdict.all_able = false;
    verdict.cause = "rank " + std::to_string(rank) +
                    (s.able == 0 ? std::string(" reports: ") + s.cause.data() : kDifferentSettings);
  }
  return verdict;
}

RecoveryPlan plan_recovery(std::span<const Statement> statements) {
  RecoveryPlan plan;
  if (statements.empty()) return plan;
  const auto refuse = [&plan](std::string obstacle) {
    plan.obstacle = std::move(obstacle);
    return plan;
  };
  std::uint64_t end = 0;
  plan.first = UINT64_MAX;
  for (std::size_t rank = 0; rank < statements.size(); ++rank) {
    const Statement& s = statements[rank];
    plan.first = std::min(plan.first, s.first_incomplete);
    end = std::max(end, completed_end(s));
    if (completed_end(s) > s.next_round) {
      return refuse("rank " + std::to_string(rank) + " has completed what it did not submit");
    }
  }
  // This bounds the loop, whatever the statements say. There are at most kRoundSlots rounds that
  // are no exchanges: a rank that has submitted more has forgotten the first.
  if (end > plan.first && end - plan.first > kMaxRepairedRounds) {
    return refuse("the ranks are " + std::to_string(end - plan.first) + " rounds apart");
  }
  for (std::uint64_t round = plan.first; round < end; ++round) {
    const RoundView view = view_of(statements, round);
    const bool own = view.is_exchange && view.holder != kNobody;
    if (!own && view.forgetful != kNobody) {
      const auto rank = static_cast<std::size_t>(view.forgetful);
      return refuse("rank " + std::to_string(rank) + " has gone on to round " +
                    std::to_string(statements[rank].next_round) + " and forgotten round " +
                    std::to_string(round) + ", which another rank lacks");
    }
    plan.holders.push_back(own ? kEachItsOwn : view.holder);
  }
  plan.possible = true;
  return plan;
}

}  // namespace gradplane::shim
