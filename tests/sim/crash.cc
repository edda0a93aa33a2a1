// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/crash.h"

#include <algorithm>

#include "tests/sim/cluster.h"
#include "tests/sim/host.h"

namespace gradplane::sim {
namespace {

/// The time in which all nodes hear of a stall that one has reported.
constexpr Duration kWordTakes = Duration::ms(5);
/// Limit of the epochs of one job; the next job's epochs begin above it.
constexpr std::uint32_t kEpochsOfAJob = 1000;
constexpr std::uint64_t kMaxCrashes = 2;
constexpr double kMaxReplayed = 0.05;

std::vector<const Trainer*> trainers_of(const std::vector<std::unique_ptr<Host>>& hosts) {
  std::vector<const Trainer*> all;
  for (const auto& host : hosts) {
    for (const auto& trainer : host->trainers) all.push_back(trainer.get());
  }
  return all;
}

Crash draw_crash(Dice& dice, const Scenario& s) {
  Crash crash;
  crash.host = static_cast<std::uint16_t>(dice.below(s.plan.members.size()));
  // In a third of the crashes the host is a root, because most rounds wait for it.
  if (dice.below(3) == 0) crash.host = s.plan.trees[dice.below(s.plan.trees.size())].root;
  const Duration longest = dice.coin() ? Duration::ms(20) : Duration::ms(400);
  crash.after = dice.between(Duration::us(50), longest);
  crash.noticed_from = dice.between(Duration{}, Duration::ms(400));
  crash.noticed_until = crash.noticed_from + dice.between(Duration::us(1), Duration::ms(200));
  crash.restarts = dice.below(8) != 0;
  crash.restarts_after = dice.between(Duration{}, Duration::ms(500));
  crash.same_job_id = dice.coin();
  return crash;
}

/// check_recovery() for jobs with exchanges, whose results differ and whose ranks may be far apart.
/// For results that all ranks get alike under bounded staleness, some rank must have what another
/// one lacks.
std::string check_recovery_of_exact(const Scenario& scenario,
                                    const std::vector<const Trainer*>& ranks) {
  for (std::uint32_t round = 0; round < scenario.rounds.size(); ++round) {
    if (scenario.rounds[round].operation == Operation::kExchange) continue;
    const Trainer* known = nullptr;
    bool is_lacked = false;
    bool is_held = false;
    for (const Trainer* rank : ranks) {
      if (!rank->is_in(round)) continue;
      is_lacked = is_lacked || !rank->has_completed(round);
      is_held = is_held || rank->holds_result(round);
      if (!rank->has_completed(round)) continue;
      if (known == nullptr) known = rank;
      if (rank->results()[round] != known->results()[round])
        return "I1: two replicas hold different bits of round " + std::to_string(round);
    }
    if (known != nullptr && is_lacked && !is_held && scenario.staleness_steps > 0)
      return "I6: nobody holds the result of round " + std::to_string(round) +
             ", which some rank lacks";
  }
  return {};
}

}  // namespace

CrashWatch::CrashWatch(const Scenario& scenario, Instant start)
    : scenario_(scenario),
      dice_(scenario.seed + scenario.crashes.size()),
      notices_(everybody(scenario).size(), Instant::never()) {
  if (!scenario.crashes.empty()) crash_at_ = start + scenario.crashes[0].after;
}

Instant CrashWatch::next_event() const {
  if (!has_crashed_) return crash_at_;
  return *std::min_element(notices_.begin(), notices_.end());
}

void CrashWatch::on_crash(Instant now) {
  has_crashed_ = true;
  const Crash& crash = scenario_.crashes[0];
  for (Instant& notice : notices_) {
    notice = now + dice_.between(crash.noticed_from, crash.noticed_until);
  }
}

void CrashWatch::on_stall(Instant now) {
  for (Instant& notice : notices_) {
    if (notice == Instant::never()) continue;
    notice = std::min(notice, now + dice_.between(Duration{}, kWordTakes));
  }
}

std::vector<std::size_t> CrashWatch::take_noticed(Instant now) {
  std::vector<std::size_t> hosts;
  for (std::size_t h = 0; h < notices_.size() && has_crashed_; ++h) {
    if (notices_[h] > now) continue;
    notices_[h] = Instant::never();
    hosts.push_back(h);
  }
  noticed_ += hosts.size();
  return hosts;
}

std::string check_recovery(const Scenario& scenario,
                           const std::vector<std::unique_ptr<Host>>& hosts) {
  const std::vector<const Trainer*> ranks = trainers_of(hosts);
  if (!scenario.plan.selections.empty()) return check_recovery_of_exact(scenario, ranks);
  auto first = static_cast<std::uint32_t>(scenario.rounds.size());
  std::uint32_t end = 0;
  std::uint32_t submitted = 0;
  for (const Trainer* rank : ranks) {
    first = std::min(first, rank->completed());
    end = std::max(end, rank->completed_end());
    submitted = std::max(submitted, rank->submitted());
  }
  if (submitted > first + kRoundSlots) {
    return "I6: a rank has submitted round " + std::to_string(submitted - 1) +
           " while another lacks round " + std::to_string(first);
  }
  for (std::uint32_t round = 0; round < end; ++round) {
    const Trainer* known = nullptr;
    for (const Trainer* rank : ranks) {
      if (!rank->has_completed(round)) continue;
      if (known == nullptr) known = rank;
      if (rank->results()[round] != known->results()[round]) {
        return "I1: two replicas hold different bits of round " + std::to_string(round);
      }
      if (round >= first && !rank->holds_result(round)) {
        return "I6: a rank has lost the result of round " + std::to_string(round) +
               ", which another lacks";
      }
    }
  }
  return {};
}

Scenario after_crash(const Scenario& scenario, std::uint32_t first) {
  Scenario next = scenario;
  const auto rounds = static_cast<std::ptrdiff_t>(std::min<std::size_t>(first, next.rounds.size()));
  next.rounds.erase(next.rounds.begin(), next.rounds.begin() + rounds);
  Tolerance& tolerance = next.tolerance;
  tolerance.closing_rounds = std::min(tolerance.closing_rounds, next.rounds.size());
  next.plan.epoch += kEpochsOfAJob;
  for (api::Plan& plan : next.flips) plan.epoch += kEpochsOfAJob;
  if (!scenario.crashes[0].same_job_id) ++next.job;
  next.crashes.erase(next.crashes.begin());
  return next;
}

void add_crashes(Scenario& scenario) {
  Dice dice(scenario.seed ^ 0xc4a54);
  for (std::uint64_t n = 1 + dice.below(kMaxCrashes); n > 0; --n) {
    scenario.crashes.push_back(draw_crash(dice, scenario));
  }
  scenario.link.replays = dice.maybe(kMaxReplayed);
  if (dice.below(4) == 0)
    scenario.tolerance.absent_after = dice.between(Duration::ms(5), Duration::ms(30));
}

}  // namespace gradplane::sim
