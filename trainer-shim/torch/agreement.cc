// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/agreement.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gradplane::shim {
namespace {

bool has_completed(const Statement& s, std::uint64_t round) {
  if (round < s.first_incomplete) return true;
  const std::uint64_t bit = round - s.first_incomplete;
  return bit < 64 && ((s.completed >> bit) & 1) != 0;
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
  std::uint64_t first = UINT64_MAX;
  std::uint64_t end = 0;
  std::uint64_t submitted_by_all = UINT64_MAX;
  for (const Statement& s : statements) {
    first = std::min(first, s.first_incomplete);
    end = std::max(end, completed_end(s));
    submitted_by_all = std::min(submitted_by_all, s.next_round);
  }
  if (end > submitted_by_all || end - std::min(first, end) > kMaxRecoveredRounds) return plan;
  plan.possible = true;
  plan.first = first;
  for (std::uint64_t round = first; round < end; ++round) {
    const auto holder = std::find_if(statements.begin(), statements.end(),
                                     [&](const Statement& s) { return has_completed(s, round); });
    plan.holders.push_back(
        holder == statements.end() ? kNobody : static_cast<int>(holder - statements.begin()));
  }
  return plan;
}

}  // namespace gradplane::shim
