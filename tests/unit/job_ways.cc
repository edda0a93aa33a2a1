// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What happens to a plan's auxiliary routes and buckets when another plan replaces it.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "dataplane/engine/local_plan.h"
#include "dataplane/job/plan_switch.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);

/// Node 0 is the root of three nodes. All have a rank each. Node 1 has a route to node 0 over each
/// of `relays`.
api::Plan plan_over(std::uint32_t epoch, const std::vector<api::NodeId>& relays) {
  api::Plan plan{.epoch = epoch, .activation_round = 0, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < 4; ++n) plan.members.push_back({.node = n, .ranks = {n}});
  plan.trees = {{.weight = 1, .root = 0, .parent = {api::kNoNode, 0, 0, 0}}};
  for (const api::NodeId relay : relays)
    plan.routes.push_back({.from = 1, .to = 0, .via = {relay}});
  return plan;
}

/// Node 1 of a job. It has measured its routes under a plan, and changes to another plan.
struct Bench {
  job::JobConfig config;
  std::unique_ptr<job::State> state;
  std::unique_ptr<job::PlanSwitch> change;
  std::uint32_t horizon = 0;

  explicit Bench(const api::Plan& first) {
    config.job = 1;
    config.epoch = first.epoch;
    config.self = 1;
    config.block_bytes = kMinBlockBytes;
    config.round_bytes = kMinBlockBytes;
    config.local_ranks = {{.arena = nullptr, .rank = 1}};
    engine::fill_local_plan(config, first, 1, {});
    state = std::make_unique<job::State>(config);
    change = std::make_unique<job::PlanSwitch>(*state);
    measure();
  }
  hop::Detour& detour(std::size_t route) {
    return (*state->peers[state->peers.find(0)].detours)[route];
  }
  void measure() {
    for (std::size_t r = 0; r < kMaxRoutes; ++r) detour(r).flow.on_rtt(kStart, Duration::ms(5));
  }
  bool knows(std::size_t route) { return detour(route).flow.min_rtt() > Duration{}; }
  /// Runs until the first round of the new plan is open.
  void change_to(const api::Plan& next) {
    auto plan = std::make_unique<job::Plan>(engine::local_plan(next, 1, {}, false), config);
    horizon = change->prepare(plan).horizon;
    REQUIRE(change->commit(next.epoch, horizon));
    change->tick(kStart);
    REQUIRE(knows(0));
    state->next_round = horizon + 1;
    change->tick(kStart);
  }
  /// Ends all rounds of the plan before.
  void end_rounds() {
    for (std::uint32_t n = 0; n < kRoundSlots; ++n) {
      job::Round& round = state->slot_of(horizon + n);
      round.id = horizon + n;
    }
  }
  void end_older() {
    end_rounds();
    REQUIRE(change->take_ended() != nullptr);
  }
};

}  // namespace

TEST_CASE(
    "a route over another relay begins anew with the first round, and one that stays goes on") {
  Bench bench(plan_over(1, {2, 3}));
  bench.change_to(plan_over(2, {2}));
  CHECK(bench.knows(0));
  bench.end_older();
  CHECK(bench.knows(0));
  bench.change_to(plan_over(3, {2, 3}));
  CHECK(bench.knows(0));
  CHECK_FALSE(bench.knows(1));  // the plan before did not have this route
}

TEST_CASE("what the last blocks of the plan before told of another way is forgotten, too") {
  Bench bench(plan_over(1, {2}));
  bench.change_to(plan_over(2, {3}));
  CHECK_FALSE(bench.knows(0));
  bench.measure();  // from an ack of a block that went over node 2
  bench.end_older();
  CHECK_FALSE(bench.knows(0));
}

TEST_CASE("one bucket of a job lets go of a plan that has ended in each turn") {
  Bench bench(plan_over(1, {2, 3}));
  std::vector<std::unique_ptr<aggregate::Bucket>> buckets;
  for (const std::uint16_t id : std::to_array<std::uint16_t>({3, 4, 9})) {
    aggregate::BucketConfig config;
    config.geometry = Geometry::of(ElementType::kFloat32, 8, kMinBlockBytes, id);
    config.tensors = {{.elements = 8}};
    config.epoch = 1;
    config.gathered = {{.tree = 0, .sources = {{.hosts = {{.node = 2, .host = 0}}}}}};
    buckets.push_back(std::make_unique<aggregate::Bucket>(config));
    bench.state->buckets.at(id) = buckets.back().get();
  }
  bench.change_to(plan_over(2, {2}));
  bench.end_rounds();
  const auto have_the_plan = [&buckets] {
    return std::count_if(buckets.begin(), buckets.end(),
                         [](const auto& bucket) { return bucket->gather(1, 0) != nullptr; });
  };
  for (auto left = have_the_plan(); left > 1;) {
    CHECK(bench.change->has_ended());
    CHECK(bench.change->take_ended() == nullptr);
    REQUIRE(have_the_plan() == --left);
  }
  const auto ended = bench.change->take_ended();
  REQUIRE(ended != nullptr);
  CHECK(have_the_plan() == 0);
  CHECK(ended->epoch() == 1);
  CHECK_FALSE(bench.change->has_ended());
  CHECK(bench.change->take_ended() == nullptr);
}
