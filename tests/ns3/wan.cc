// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/ns3/wan.h"

#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "control/plan/packing_bound.h"
#include "tests/ns3/engine_host.h"
#include "tests/ns3/links.h"
#include "tests/ns3/sites.h"
#include "tests/sim/cluster.h"
#include "tests/support/plan_networks.h"

namespace gradplane::ns3_wan {
namespace {

constexpr Instant kStart = Instant::from_ns(100'000'000);

plan::PlanRequest request_of(const Scenario& s) {
  plan::PlanRequest request = testing::request_over(s.network, s.planner);
  request.traffic = {.bytes = s.bytes, .window_bytes = s.in_flight * s.round_bytes};
  return request;
}

ns3_host::EngineJob job_of(const Scenario& s, const api::Plan& plan) {
  ns3_host::EngineJob job;
  job.plan = plan;
  job.round_bytes = s.round_bytes;
  job.rank_count = plan.members.size();
  for (const api::Member& member : plan.members)
    job.addresses.push_back(Sites::address_of(member.node));
  return job;
}

/// The ranks, with the rounds that each has submitted and the sums that it has.
class AllReduce {
 public:
  AllReduce(const Scenario& scenario, const Sites& sites, const api::Plan& plan)
      : scenario_(scenario),
        job_(job_of(scenario, plan)),
        rounds_((scenario.bytes + scenario.round_bytes - 1) / scenario.round_bytes),
        ranks_(plan.members.size(), Rank{.has_sum = std::vector<bool>(rounds_)}),
        expected_(rounds_) {
    for (std::size_t host = 0; host < ranks_.size(); ++host) {
      ns3_host::EngineSettings settings;
      settings.node = static_cast<std::uint16_t>(host);
      settings.congestion = scenario.congestion;
      hosts_.push_back(ns3::Create<ns3_host::EngineHost>(
          job_, settings, [this, host](std::uint32_t round) { on_summed(host, round); }));
      sites.host(host)->AddApplication(hosts_.back());
      hosts_.back()->SetStartTime(ns3::Seconds(0));
    }
    ns3::Simulator::Schedule(ns3_host::time_of(kStart - Instant{}), &AllReduce::begin, this);
  }

  std::string failure() const {
    for (const auto& host : hosts_)
      if (!host->failure().empty()) return host->failure();
    std::size_t ended = rounds_;
    for (const Rank& rank : ranks_) ended = std::min(ended, rank.oldest);
    if (ended == rounds_) return "";
    return "only " + std::to_string(ended) + " of " + std::to_string(rounds_) + " rounds ended";
  }
  Duration time() const { return ended_ - kStart; }

 private:
  struct Rank {
    std::vector<bool> has_sum;  // by round
    std::size_t submitted = 0;
    std::size_t oldest = 0;  // the oldest round without a sum
  };

  void begin() {
    for (std::size_t host = 0; host < hosts_.size(); ++host) submit(host);
  }

  /// Submits rounds up to `in_flight` from the oldest one without a sum on. Rounds may end in any
  /// order.
  void submit(std::size_t host) {
    Rank& rank = ranks_[host];
    while (rank.submitted < std::min(rank.oldest + scenario_.in_flight, rounds_)) {
      const std::size_t round = rank.submitted++;
      hosts_[host]->submit(static_cast<std::uint32_t>(round), expected(round));
    }
  }

  void on_summed(std::size_t host, std::size_t round) {
    Rank& rank = ranks_[host];
    rank.has_sum[round] = true;
    while (rank.oldest < rounds_ && rank.has_sum[rank.oldest]) ++rank.oldest;
    ended_ = ns3_host::now();
    submit(host);
    if (rank.oldest == rounds_ && failure().empty()) ns3::Simulator::Stop();
  }

  const std::vector<float>& expected(std::size_t round) {
    std::vector<float>& sums = expected_[round];
    const std::size_t bytes =
        std::min(scenario_.round_bytes, scenario_.bytes - round * scenario_.round_bytes);
    for (std::uint32_t e = static_cast<std::uint32_t>(sums.size()); e < bytes / sizeof(float);
         ++e) {
      double sum = 0;
      for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
        sum += sim::contribution(static_cast<std::uint32_t>(round), rank, e);
      sums.push_back(static_cast<float>(sum));
    }
    return sums;
  }

  const Scenario& scenario_;
  ns3_host::EngineJob job_;
  std::size_t rounds_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<float>> expected_;
  std::vector<ns3::Ptr<ns3_host::EngineHost>> hosts_;
  Instant ended_ = kStart;
};

}  // namespace

Outcome run(const Scenario& scenario) {
  if (scenario.bytes == 0 || scenario.bytes % sizeof(float) != 0 ||
      scenario.round_bytes % sizeof(float) != 0 || scenario.round_bytes > kMaxRoundBytes ||
      scenario.in_flight == 0 || scenario.in_flight > kMaxInFlightRounds)
    throw std::invalid_argument("the bytes or the rounds in flight are out of bounds");
  const plan::PlanRequest request = request_of(scenario);
  const Result<plan::PlannedTime> planned = plan::make_predicted_plan(request);
  if (!planned) throw std::invalid_argument("there is no plan: " + planned.error().message);
  Outcome outcome;
  outcome.predicted = planned.value().prediction.value();
  outcome.trees = planned.value().plan.trees.size();
  outcome.bound = Duration::ns(static_cast<std::int64_t>(
      plan::packing_bound_s_per_bit(request).value() * 8e9 * static_cast<double>(scenario.bytes)));
  ns3::RngSeedManager::SetSeed(1);
  ns3::RngSeedManager::SetRun(scenario.seed);
  {
    Sites sites(scenario.network, scenario.queue_bytes);
    AllReduce all_reduce(scenario, sites, planned.value().plan);
    ns3::Simulator::Stop(ns3_host::time_of(scenario.limit));
    ns3::Simulator::Run();
    outcome.failure = all_reduce.failure();
    outcome.all_reduce = all_reduce.time();
    outcome.drops = sites.drops();
  }
  ns3::Simulator::Destroy();
  return outcome;
}

plan::Network netstorm(std::uint64_t seed, bool far) {
  std::mt19937_64 random(seed);
  plan::Network network = testing::netstorm_network(random);
  for (std::size_t l = 0; far && l < network.links.size(); l += 2) {
    const Duration rtt = Duration::ms(static_cast<std::int64_t>(testing::uniform(random, 10, 150)));
    for (const std::size_t end : {l, l + 1}) {
      network.links[end].rtt = rtt;
      network.links[end].loss_ppm =
          static_cast<std::uint32_t>(testing::uniform(random, 1'000, 20'000));
    }
  }
  return network;
}

}  // namespace gradplane::ns3_wan
