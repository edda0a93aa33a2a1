// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/agreement.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "dataplane/model/limits.h"

namespace gradplane::shim {
namespace {

bool has_completed(const Statement& s, std::uint64_t round) {
  if (round < s.first_incomplete) return true;
  const std::uint64_t bit = round - s.first_incomplete;
  return bit < 64 && ((s.completed >> bit) & 1) != 0;
}

/// Whether the arena slot of the round serves a newer one, which the rank has submitted since.
bool has_forgotten(const Statement& s, std::uint64_t round) {
  return s.next_round > round && s.next_round - round > kRoundSlots;
}

/// One past the last round that this rank completed.
std::uint64_t completed_end(const Statement& s) {
  return s.first_incomplete + static_cast<std::uint64_t>(std::bit_width(s.completed));
}

}  // namespace

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
    if (s.able != 0 || !verdict.all_able) continue;
    verdict.all_able = false;
    verdict.cause = "rank " + std::to_string(rank) + ": " + s.cause.data();
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
  // Whatever the statements say, these are kRoundSlots rounds at most: who has submitted more than
  // that beyond the first has forgotten it.
  for (std::uint64_t round = plan.first; round < end; ++round) {
    int holder = kNobody;
    for (std::size_t rank = statements.size(); rank-- > 0;) {
      const Statement& s = statements[rank];
      if (has_forgotten(s, round)) {
        return refuse("rank " + std::to_string(rank) + " has gone on to round " +
                      std::to_string(s.next_round) + " and forgotten round " +
                      std::to_string(round) + ", which another rank lacks");
      }
      if (has_completed(s, round)) holder = static_cast<int>(rank);
    }
    plan.holders.push_back(holder);
  }
  plan.possible = true;
  return plan;
}

}  // namespace gradplane::shim
