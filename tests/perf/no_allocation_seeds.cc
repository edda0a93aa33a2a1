// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Whatever a job uses, no turn of the poll loop makes a forbidden call: engines run seeds of the
// simulator with each feature, and all calls are counted that they make in their turns and when
// asked for their next deadline. Calls of the simulator are not. Not tried: what the control thread
// and a sleeping trainer cause now and then, such as snapshots and doorbells.
#include <cstdint>
#include <cstdio>
#include <utility>

#include "dataplane/model/traffic_counts.h"
#include "tests/perf/forbidden_calls.h"
#include "tests/property/exchange_scenarios.h"
#include "tests/sim/cluster.h"
#include "tests/sim/crash.h"
#include "tests/sim/engine_watch.h"

namespace {

using namespace gradplane;
using sim::Outcome;
using sim::Scenario;

constexpr std::uint64_t kSeeds = 30;
constexpr std::size_t kCores = 3;
/// The seeds of a feature have far more turns together.
constexpr std::uint64_t kLeastTurns = kSeeds * 100;

template <void (*kAdd)(Scenario&)>
Scenario with(std::uint64_t seed) {
  Scenario s = sim::random_scenario(seed);
  kAdd(s);
  return s;
}

Scenario tolerant(std::uint64_t seed) {
  return sim::random_tolerant_scenario(seed);
}

Scenario narrow(std::uint64_t seed) {
  return sim::random_tolerant_scenario(seed, true);
}

Scenario narrow_with_parity(std::uint64_t seed) {
  Scenario s = narrow(seed);
  sim::add_parity(s);
  return s;
}

Scenario several_cores(std::uint64_t seed) {
  Scenario s = sim::random_scenario(seed);
  s.grants = false;
  sim::share_among_cores(s, kCores);
  return s;
}

Scenario with_grants(std::uint64_t seed) {
  Scenario s = sim::random_scenario(seed);
  s.grants = true;
  return s;
}

/// Each round is an exchange: updates to some of the ranks.
Scenario exchanges(std::uint64_t seed) {
  constexpr std::uint16_t kMembers = 6;
  constexpr std::size_t kSelections = 3;
  Scenario s = sim::random_scenario(seed);
  s.plan = sim::ring_plan(kMembers, kSelections, 2);
  s.grants = false;
  for (std::size_t i = 0; i < s.rounds.size(); ++i)
    s.rounds[i] = sim::exchange(8, static_cast<std::uint16_t>(i % kSelections));
  return s;
}

/// The checker tells from float64 which updates are in a mean.
Scenario stale_exchanges(std::uint64_t seed) {
  constexpr std::uint32_t kElements = 8 * kMinBlockBytes / sizeof(double);
  Scenario s = exchanges(seed);
  s.staleness_steps = 2;
  s.in_flight = 1;
  api::BucketBounds bucket = sim::bucket_of(8, 0);
  bucket.type = ElementType::kFloat64;
  bucket.elements = bucket.tensors[0].elements = kElements;
  for (sim::RoundPlan& round : s.rounds) {
    round.type = bucket.type;
    round.elements = kElements;
    round.bucket = static_cast<std::uint16_t>(bucket.bucket);
  }
  s.tolerance.buckets = {std::move(bucket)};
  return s;
}

/// `used` tells how often the engines used the feature.
struct Feature {
  const char* name;
  Scenario (*scenario)(std::uint64_t seed);
  std::uint64_t (*used)(const Scenario& scenario, const Outcome& outcome);
};

/// A counter of the engines.
template <std::uint64_t TrafficCounts::*kCounter>
std::uint64_t counted(const Scenario&, const Outcome& outcome) {
  return outcome.counters.*kCounter;
}

constexpr Feature kFeatures[] = {
    {"blocks sent again", sim::random_scenario, counted<&TrafficCounts::blocks_retransmitted>},
    {"packets beside grants", with_grants,
     [](const Scenario& s, const Outcome& o) { return s.grants ? o.packets : 0; }},
    {"blocks missing", tolerant,
     [](const Scenario&, const Outcome& o) { return o.tolerance.missing_blocks; }},
    {"bytes saved by wire types", narrow, counted<&TrafficCounts::payload_bytes_saved>},
    {"blocks recovered", with<sim::add_parity>, counted<&TrafficCounts::blocks_recovered>},
    {"blocks recovered beside wire types", narrow_with_parity,
     counted<&TrafficCounts::blocks_recovered>},
    {"blocks relayed", with<sim::add_routes>, counted<&TrafficCounts::blocks_relayed>},
    {"blocks to groups", with<sim::add_groups>, counted<&TrafficCounts::blocks_to_groups>},
    {"further plans", sim::random_replanned_scenario,
     [](const Scenario&, const Outcome& o) { return std::uint64_t{o.activations.size()}; }},
    {"jobs lost to crashes", with<sim::add_crashes>,
     [](const Scenario&, const Outcome& o) { return std::uint64_t{o.lost_jobs}; }},
    {"packets of several cores", several_cores,
     [](const Scenario& s, const Outcome& o) { return s.cores == kCores ? o.packets : 0; }},
    {"rounds of exchanges", exchanges,
     [](const Scenario& s, const Outcome& o) {
       const bool exchanged = s.rounds[0].operation == Operation::kExchange;
       return exchanged ? std::uint64_t{o.round_ends.size()} : 0;
     }},
    {"updates under bounded staleness", stale_exchanges, counted<&TrafficCounts::updates_received>},
};

std::uint64_t turns = 0;  // how often an engine's code has begun to run

void on_change(bool engine_runs) {
  if (!engine_runs) return testing::pause_count();
  ++turns;
  testing::resume_count();
}

/// Whether the seeds of a feature pass, use it, and make no forbidden call.
bool runs_without_calls(const Feature& feature) {
  std::uint64_t used = 0;
  bool all_right = true;
  turns = sim::engine_watch.calls_from_elsewhere = 0;
  testing::count_forbidden_calls();
  testing::pause_count();
  sim::engine_watch.on_change = on_change;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Scenario scenario = feature.scenario(seed);
    const Outcome outcome = sim::run(scenario);
    used += feature.used(scenario, outcome);
    if (outcome.failure.empty()) continue;
    all_right = false;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), outcome.failure.c_str());
  }
  sim::engine_watch.on_change = nullptr;
  testing::resume_count();
  const bool none = testing::no_forbidden_calls();
  std::printf("  %llu %s, %llu times an engine ran\n", static_cast<unsigned long long>(used),
              feature.name, static_cast<unsigned long long>(turns));
  // Engines that are made or destroyed use their ports outside turns, but seldom.
  const bool all_watched = sim::engine_watch.calls_from_elsewhere < turns / 100;
  if (!all_watched) std::printf("  engines ran without being watched\n");
  return none && all_right && used > 0 && turns >= kLeastTurns && all_watched;
}

}  // namespace

int main() {
  bool good = true;
  for (const Feature& feature : kFeatures) good = runs_without_calls(feature) && good;
  return good ? 0 : 1;
}
