// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/admission.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gradplane::session {

namespace {

std::string user_text(std::uint32_t user) {
  return "user " + std::to_string(user);
}

}  // namespace

std::string_view refusal_name(Refusal refusal) {
  switch (refusal) {
    case Refusal::kUserJobs:
      return "user_jobs";
    case Refusal::kUserRanks:
      return "user_ranks";
    case Refusal::kNoSlot:
      return "no_slot";
    case Refusal::kGaveWay:
      return "gave_way";
    case Refusal::kWaitedTooLong:
      return "waited_too_long";
    case Refusal::kNotFitting:
      return "not_fitting";
    case Refusal::kCount:
      break;
  }
  return "?";
}

std::optional<protocol::JobKey> who_gives_way(const std::vector<Slot>& slots,
                                              const Newcomer& newcomer) {
  std::map<std::uint32_t, std::size_t> held;  // by user
  std::map<std::uint32_t, std::size_t> waiting;
  for (const Slot& slot : slots) {
    ++held[slot.user];
    if (slot.waiting) ++waiting[slot.user];
  }
  const auto is_fair = [&](std::uint32_t user) {
    if (!newcomer.complete) return waiting[user] >= waiting[newcomer.user] + 2;
    return user == newcomer.user || held[user] > held[newcomer.user];
  };
  const Slot* victim = nullptr;
  for (const Slot& slot : slots) {
    if (!slot.waiting || !is_fair(slot.user)) continue;
    const std::size_t count = waiting[slot.user];
    const std::size_t most = victim == nullptr ? 0 : waiting[victim->user];
    if (count > most || (count == most && slot.since < victim->since)) victim = &slot;
  }
  if (victim == nullptr) return std::nullopt;
  return victim->key;
}

std::optional<Denial> over_quota(const std::vector<Slot>& slots, std::uint32_t user,
                                 const Quotas& quotas, const std::string& who) {
  const auto held = std::count_if(slots.begin(), slots.end(),
                                  [&](const Slot& slot) { return slot.user == user; });
  if (user == kRootUser || held < quotas.jobs) return std::nullopt;
  return Denial{Refusal::kUserJobs,
                who + " " + std::to_string(held) + " jobs of " + user_text(user) +
                    " already, which is the most for one user (quotas.jobs); end one of them, "
                    "or ask the operator to allow more"};
}

Denial no_slot(std::size_t jobs, const std::string& who) {
  return {Refusal::kNoSlot, who + " " + std::to_string(jobs) +
                                " jobs already, which is the most; wait until one ends"};
}

Admission admit(const std::vector<Slot>& slots, const Newcomer& newcomer, const Quotas& quotas,
                const std::string& who) {
  if (auto denial = over_quota(slots, newcomer.user, quotas, who)) return {std::move(denial), {}};
  if (slots.size() < kMaxJobs) return {};
  if (const auto key = who_gives_way(slots, newcomer)) return {{}, key};
  return {no_slot(kMaxJobs, who), {}};
}

std::string gave_way_text(const std::string& who, const Newcomer& to, const std::string& waiting) {
  const std::string whom =
      to.complete ? "one whose ranks are all there" : "one of " + user_text(to.user);
  return who + " " + std::to_string(kMaxJobs) + " jobs, and this one gave way to " + whom +
         " while " + waiting + "; start all ranks of a job together";
}

std::string waited_text(Duration wait, const std::string& waiting) {
  return "not ready within " + std::to_string(wait.count_ns() / Duration::seconds(1).count_ns()) +
         " s (quotas.wait): " + waiting + "; start all ranks within that time, or raise it";
}

}  // namespace gradplane::session
