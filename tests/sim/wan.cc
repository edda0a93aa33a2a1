// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/wan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "control/plan/packing_bound.h"
#include "tests/support/plan_networks.h"

namespace gradplane::sim {
namespace {

constexpr std::uint64_t kLeastDelayMs = 10;
constexpr std::uint64_t kMostDelayMs = 150;
constexpr std::uint64_t kLeastLossPpm = 1'000;
constexpr std::uint64_t kMostLossPpm = 20'000;
/// A run that takes so many times the predicted time counts as hung.
constexpr double kHung = 50;
constexpr Duration kLeastLimit = Duration::seconds(600);
/// The testbed divides rates by this.
constexpr std::uint64_t kTestbedScale = 4;

/// Gives each round of an all_reduce its own bucket, with one tensor.
void make_tolerant(Scenario& s, float bound) {
  s.tolerance.compensation = Compensation::kCarry;
  s.tolerance.layout = Coding::Layout::kSpread;
  s.tolerance.strict_rounds = 1;
  for (std::uint32_t n = 0; n < s.rounds.size(); ++n) {
    const std::uint32_t id = 1 + n % s.rounds_of_all_reduce;
    s.rounds[n].bucket = static_cast<std::uint16_t>(id);
    if (n >= s.rounds_of_all_reduce) continue;
    api::BucketBounds& bucket = s.tolerance.buckets.emplace_back();
    bucket.bucket = id;
    bucket.elements = s.rounds[n].elements;
    api::BoundedTensor& tensor = bucket.tensors.emplace_back();
    tensor.name = "all";
    tensor.elements = bucket.elements;
    tensor.bound = bound;
    tensor.why = api::BoundReason::kPattern;
  }
}

/// The missing share of all contributions to rounds with bounds; each host and block counts once.
double missing_share(const Scenario& s, const Outcome& outcome) {
  double blocks = 0;
  for (const RoundPlan& round : s.rounds) {
    if (round.bucket == 0) continue;
    blocks += std::ceil(static_cast<double>(round.elements) * sizeof(float) /
                        static_cast<double>(s.block_bytes));
  }
  const double all = blocks * static_cast<double>(s.plan.members.size());
  return all > 0 ? static_cast<double>(outcome.tolerance.missing_blocks) / all : 0;
}

}  // namespace

plan::Network wan_network(std::uint64_t seed, const WanPaths& paths) {
  std::mt19937_64 random(seed);
  plan::Network network = testing::netstorm_network(random);
  std::vector<plan::Link>& links = network.links;
  for (std::size_t l = 0; l < links.size() && paths.delayed; l += 2) {
    const auto ms =
        static_cast<std::int64_t>(testing::uniform(random, kLeastDelayMs, kMostDelayMs));
    links[l].rtt = links[l + 1].rtt = Duration::ms(paths.testbed ? ms : 2 * ms);
  }
  for (plan::Link& link : links) {
    if (paths.testbed) link.bits_per_s /= kTestbedScale;
  }
  std::mt19937_64 losses(seed + 1);
  for (plan::Link& link : links) {
    if (!paths.lossy) break;
    link.loss_ppm =
        static_cast<std::uint32_t>(testing::uniform(losses, kLeastLossPpm, kMostLossPpm));
  }
  return network;
}

plan::PlanRequest wan_request(const plan::Network& network, PlanKind planner, const WanLoad& load) {
  plan::PlanRequest request = testing::request_over(network, planner);
  request.epoch = 1;
  request.traffic = {.bytes = load.bytes, .window_bytes = kMaxInFlightRounds * load.round_bytes};
  return request;
}

Scenario wan_scenario(const std::vector<SitesAt>& networks, const api::Plan& plan,
                      const WanLoad& load, std::uint64_t seed) {
  Scenario s;
  s.seed = seed;
  s.plan = plan;
  s.link.sites = networks;
  s.link.queue_bytes = load.queue_bytes;
  s.block_bytes = kDefaultBlockBytes;
  s.round_bytes = load.round_bytes;
  s.in_flight = kMaxInFlightRounds;
  s.compute_max = {};
  s.paced = false;
  s.congestion = load.congestion;
  s.limit = kLeastLimit;
  const std::uint64_t elements = load.bytes / sizeof(float);
  const std::uint64_t most = load.round_bytes / sizeof(float);
  for (std::uint32_t n = 0; n < load.all_reduces; ++n) {
    for (std::uint64_t done = 0; done < elements; done += most) {
      const auto next = static_cast<std::uint32_t>(std::min(most, elements - done));
      s.rounds.push_back({ElementType::kFloat32, next});
    }
  }
  s.rounds_of_all_reduce = static_cast<std::uint32_t>(s.rounds.size() / load.all_reduces);
  if (load.bound > 0) make_tolerant(s, load.bound);
  return s;
}

std::vector<double> all_reduce_times_s(const Scenario& scenario, const Outcome& outcome) {
  std::vector<double> times;
  Instant begin;
  for (std::size_t r = scenario.rounds_of_all_reduce; r <= outcome.round_ends.size();
       r += scenario.rounds_of_all_reduce) {
    times.push_back((outcome.round_ends[r - 1] - begin).to_seconds());
    begin = outcome.round_ends[r - 1];
  }
  return times;
}

double WanResult::mean_s() const {
  return std::accumulate(times_s.begin(), times_s.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(times_s.size(), 1));
}

WanResult run_wan(const plan::Network& network, PlanKind planner, const WanLoad& load,
                  std::uint64_t seed) {
  WanResult result;
  result.planner = planner;
  const plan::PlanRequest request = wan_request(network, planner, load);
  const auto planned = plan::make_predicted_plan(request);
  if (!planned.ok()) {
    result.failure = planned.error().message;
    return result;
  }
  const plan::Prediction& prediction = *planned.value().prediction;
  const plan::Traffic& traffic = request.traffic;
  result.trees = planned.value().plan.trees.size();
  result.height = prediction.height;
  result.bottleneck = prediction.bottleneck;
  result.predicted_s = prediction.time.to_seconds();
  const double on_wire =
      1 + static_cast<double>(traffic.overhead_bytes) / static_cast<double>(traffic.block_bytes);
  if (const auto bound = plan::packing_bound_s_per_bit(request); bound.ok()) {
    result.bound_s = bound.value() * 8 * static_cast<double>(load.bytes) * on_wire;
  }
  Scenario scenario = wan_scenario({{{}, network}}, planned.value().plan, load, seed);
  const double hung_s = kHung * result.predicted_s * load.all_reduces;
  scenario.limit = std::max(scenario.limit, Duration::seconds(static_cast<std::int64_t>(hung_s)));
  const Outcome outcome = run(scenario);
  result.times_s = all_reduce_times_s(scenario, outcome);
  result.sent_again = static_cast<double>(outcome.counters.blocks_retransmitted) /
                      static_cast<double>(outcome.counters.blocks_sent);
  const auto& drops = outcome.counters.drops;
  const std::uint64_t needless = drops[static_cast<std::size_t>(hop::Drop::kDuplicate)] +
                                 drops[static_cast<std::size_t>(hop::Drop::kPastRound)];
  result.needless =
      static_cast<double>(needless) / static_cast<double>(outcome.counters.blocks_sent);
  const auto of_links = [&outcome](std::uint64_t lab::LinkCounters::*what) {
    double all = 0;
    for (const lab::LinkCounters& link : outcome.site_links) all += static_cast<double>(link.*what);
    return all;
  };
  const double frames = of_links(&lab::LinkCounters::frames);
  result.lost_at_random = of_links(&lab::LinkCounters::random_drops) / frames;
  result.dropped_by_queues = of_links(&lab::LinkCounters::queue_drops) / frames;
  result.missing = missing_share(scenario, outcome);
  result.dropped = outcome.packets_dropped;
  result.failure = outcome.failure;
  return result;
}

}  // namespace gradplane::sim
