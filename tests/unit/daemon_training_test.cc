// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The settings that a daemon takes from the section `training` of its file.
#include <string>

#include "control/daemon/planners.h"
#include "control/daemon/session_config.h"
#include "tests/unit/daemon_bench.h"

using namespace gradplane;
using namespace gradplane::daemon;
using namespace gradplane::daemon::testing;

TEST_CASE("under bounded staleness nodes get every bucket, also where all are exact") {
  config::Config config = three_nodes();
  config.training.staleness = 4;  // the default value in a file
  config.training.mode = config::TrainingMode::kSelectiveBsp;
  CHECK(!resolver_of(config));
  config.training.mode = config::TrainingMode::kSelectiveSsp;
  REQUIRE(resolver_of(config));
  const session::ResolvedBounds resolved = resolver_of(config)(
      {{1, ElementType::kFloat32, 512, {{"a", 0, 512, 0.5F, api::BoundReason::kPattern, "a"}}},
       {2, ElementType::kFloat32, 512, {{"b", 0, 512, 0, api::BoundReason::kExact, ""}}}});
  REQUIRE(resolved.tables.size() == 2);
  for (const api::BucketBounds& table : resolved.tables) CHECK(table.tensors.at(0).bound == 0);
}

TEST_CASE("with selective-bsp a job has selections, and no other kind of plan") {
  config::Config config = three_nodes();
  config.plan.kind = PlanKind::kSharded;
  config.plan.roots = config::ShardRoots::kTraining;
  config.training = {
      .mode = config::TrainingMode::kSelectiveBsp, .receivers_ppm = 300'000, .freshness = 1};
  session::PlanInput input = ranks_on({0, 1, 2});
  const auto offer = planner_of(config)(input);
  REQUIRE(offer.ok());
  CHECK(offer.value().plan.selections.size() == 2);
  CHECK(check_plan(offer.value().plan).ok());
  const auto refused = [&](const session::PlanChoice& choice) {
    input.choice = choice;
    const auto plan = planner_of(config)(input);
    return plan.ok() ? std::string() : plan.error().message;
  };
  CHECK(refused({PlanKind::kStar, {0}}).find("a star plan carries no selections") == 0);
  CHECK(refused({PlanKind::kSharded, {0}}).find("only some nodes, or others, may be roots") == 0);
  CHECK(refused({PlanKind::kSharded, {}}).empty());
  input.members[1].ranks = {1, 3};
  CHECK(refused({PlanKind::kSharded, {}}).find("node w1 has 2 ranks of the job") == 0);
}

TEST_CASE("nodes compare how they train, where that is not exact") {
  config::Config config = three_nodes();
  config.training = {.freshness = 4, .average_every = 100};  // the default values in a file
  const auto settings = [&] { return session_config(config, {}, 1).job_settings; };
  CHECK(settings().selections == 0);
  CHECK(settings().average_every == 0);
  config.training.mode = config::TrainingMode::kSelectiveBsp;
  CHECK(settings().selections == 5);
  CHECK(settings().average_every == 100);
  config.training.staleness = 4;
  CHECK(settings().staleness == 0);
  config.training.mode = config::TrainingMode::kSelectiveSsp;
  CHECK(settings().selections == 5);
  CHECK(settings().average_every == 100);
  CHECK(settings().staleness == 4);
}

TEST_CASE("the poll loop is told of staleness, where there is any") {
  JobBench bench;
  bench.config.plan.kind = PlanKind::kSharded;
  bench.config.plan.roots = config::ShardRoots::kTraining;
  bench.config.training = {.receivers_ppm = 300'000, .freshness = 1, .staleness = 3};
  const auto mode =
      GENERATE(config::TrainingMode::kSelectiveBsp, config::TrainingMode::kSelectiveSsp);
  bench.config.training.mode = mode;
  const auto offer = planner_of(bench.config)(ranks_on({0, 1, 2}));
  REQUIRE(offer.ok());
  session::InstallJob order = JobBench::order(5);
  order.plan = offer.value().plan;
  order.plan.epoch = order.first_epoch;
  bench.attach(kHandle);
  REQUIRE(bench.jobs.install(order, bench.ranks).ok());
  const std::uint32_t steps = bench.next().job->job().config().staleness_steps;
  CHECK(steps == (mode == config::TrainingMode::kSelectiveSsp ? 3 : 0));
}
