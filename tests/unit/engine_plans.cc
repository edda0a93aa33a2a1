// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The control thread gives an engine more plans of a job and gets them back.
#include <array>

#include "dataplane/engine/local_plan.h"
#include "tests/support/catch.h"
#include "tests/support/engine_host.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kElements = 5000;

api::Plan star_with_root(std::uint32_t epoch, api::NodeId root) {
  api::Plan plan = star_of(2);
  plan.epoch = epoch;
  plan.trees[0].root = root;
  plan.trees[0].parent = {root, root};
  plan.trees[0].parent[root] = api::kNoNode;
  return plan;
}

/// A job of two hosts whose plans can be changed.
class TwoHosts {
 public:
  TwoHosts() {
    for (std::size_t n = 0; n < jobs.size(); ++n) {
      jobs[n] = &cluster.host(n).add({.id = 1, .plan = star_with_root(1, 0)});
    }
  }

  engine::JobRuntime& runtime(std::uint16_t n) { return *jobs[n]->runtime; }
  job::Plan* make_plan(std::uint16_t n, std::uint32_t epoch, api::NodeId root) {
    return runtime(n)
        .make_plan(engine::local_plan(star_with_root(epoch, root), n, {}, false))
        .release();
  }
  void command(std::uint16_t n, api::Command::Kind kind, std::uint32_t epoch,
               job::Plan* plan = nullptr, std::uint32_t round = 0) {
    api::Command command;
    command.kind = kind;
    command.job = &runtime(n);
    command.epoch = epoch;
    command.plan = plan;
    command.round = round;
    cluster.host(n).command(command);
  }
  /// Runs the cluster until the host has an event, and returns it.
  api::Event event(std::uint16_t n) {
    api::Event event;
    for (int turn = 0; turn < 20'000; ++turn) {
      if (cluster.host(n).next_event(event)) return event;
      cluster.turn();
    }
    FAIL("no event comes");
    return event;
  }
  void run_rounds(std::uint32_t count) {
    for (const std::uint32_t end = next_round_ + count; next_round_ < end; ++next_round_) {
      for (EngineHost::Job* job : jobs) {
        REQUIRE(job->trainers[0].submit(next_round_, kElements, 2));
      }
      std::array<bool, 2> done{};
      ipc::Completion completion;
      for (int turn = 0; turn < 20'000 && !(done[0] && done[1]); ++turn) {
        cluster.turn();
        for (std::size_t n = 0; n < jobs.size(); ++n) {
          done[n] = done[n] || jobs[n]->trainers[0].completions.pop(completion);
        }
      }
      REQUIRE((done[0] && done[1]));
      for (EngineHost::Job* job : jobs) CHECK(job->trainers[0].last(next_round_, kElements) == 4);
    }
  }
  std::uint32_t epoch_of(std::size_t n) {
    return cluster.host(n).snapshot(cluster.now())->jobs[0].plan_epoch;
  }

  EngineCluster cluster{2};
  std::array<EngineHost::Job*, 2> jobs{};

 private:
  std::uint32_t next_round_ = 0;
};

}  // namespace

TEST_CASE("a plan is prepared, committed and used, and the one before comes back") {
  TwoHosts hosts;
  hosts.run_rounds(3);
  std::uint32_t activation = 0;
  for (std::uint16_t n = 0; n < 2; ++n) {
    hosts.command(n, api::Command::Kind::kPreparePlan, 2, hosts.make_plan(n, 2, 1));
    const api::Event event = hosts.event(n);
    CHECK(event.kind == api::Event::Kind::kPlanPrepared);
    CHECK(event.epoch == 2);
    CHECK(event.job == &hosts.runtime(n));
    activation = std::max(activation, event.round);
  }
  CHECK(hosts.runtime(0).job().epoch() == 1);
  for (std::uint16_t n = 0; n < 2; ++n) {
    hosts.command(n, api::Command::Kind::kCommitPlan, 2, nullptr, activation);
  }
  hosts.run_rounds(activation + 20);
  for (std::uint16_t n = 0; n < 2; ++n) {
    const api::Event event = hosts.event(n);
    CHECK(event.kind == api::Event::Kind::kPlanReturned);
    CHECK(event.epoch == 1);
    REQUIRE(event.plan != nullptr);
    hosts.runtime(n).destroy_plan(event.plan);
  }
  CHECK(hosts.epoch_of(0) == 2);
}

TEST_CASE("an aborted plan comes back, and so does one of a job that is not there") {
  TwoHosts hosts;
  hosts.command(0, api::Command::Kind::kPreparePlan, 2, hosts.make_plan(0, 2, 1));
  CHECK(hosts.event(0).kind == api::Event::Kind::kPlanPrepared);
  hosts.command(0, api::Command::Kind::kAbortPlan, 2);
  api::Event event = hosts.event(0);
  CHECK(event.kind == api::Event::Kind::kPlanReturned);
  CHECK(event.epoch == 2);
  REQUIRE(event.plan != nullptr);
  hosts.runtime(0).destroy_plan(event.plan);

  job::Plan* late = hosts.make_plan(0, 3, 1);
  hosts.command(0, api::Command::Kind::kRemoveJob, 0);
  CHECK(hosts.event(0).kind == api::Event::Kind::kJobRemoved);
  hosts.command(0, api::Command::Kind::kPreparePlan, 3, late);
  event = hosts.event(0);
  CHECK(event.kind == api::Event::Kind::kPlanRefused);
  CHECK(event.plan_refusal == PlanRefusal::kNoJob);
  CHECK(event.plan == late);
  hosts.runtime(0).destroy_plan(event.plan);
}

TEST_CASE("a rank whose round has no plan yet is held, and does not keep the loop awake") {
  TwoHosts hosts;
  hosts.command(0, api::Command::Kind::kPreparePlan, 2, hosts.make_plan(0, 2, 1));
  const std::uint32_t horizon = hosts.event(0).round;
  hosts.run_rounds(horizon);
  REQUIRE(hosts.jobs[0]->trainers[0].submit(horizon, kElements, 2));
  REQUIRE(hosts.jobs[0]->trainers[0].submit(horizon + 1, kElements, 2));
  hosts.cluster.turns(200);
  CHECK(hosts.cluster.host(0).engine().prepare_sleep());
  hosts.cluster.host(0).engine().end_sleep();
  api::Event event;
  CHECK_FALSE(hosts.cluster.host(0).next_event(event));
}

TEST_CASE("an aborted plan counts until it has come back") {
  TwoHosts two;
  job::Plan* first = two.make_plan(0, 2, 1);
  REQUIRE(first != nullptr);
  CHECK_FALSE(two.runtime(0).has_room_for_plan());
  CHECK(two.make_plan(0, 3, 1) == nullptr);
  two.runtime(0).destroy_plan(first);
  CHECK(two.runtime(0).has_room_for_plan());
  job::Plan* again = two.make_plan(0, 4, 1);
  CHECK(again != nullptr);
  two.runtime(0).destroy_plan(again);
}

TEST_CASE("an activation that a node has passed is refused, and the job goes on") {
  TwoHosts hosts;
  hosts.command(0, api::Command::Kind::kPreparePlan, 2, hosts.make_plan(0, 2, 1));
  const std::uint32_t horizon = hosts.event(0).round;
  hosts.command(0, api::Command::Kind::kCommitPlan, 2, nullptr, horizon - 1);
  const api::Event event = hosts.event(0);
  CHECK(event.kind == api::Event::Kind::kPlanRefused);
  CHECK(event.plan_refusal == PlanRefusal::kPassed);
  CHECK(event.epoch == 2);
  REQUIRE(event.plan != nullptr);
  hosts.runtime(0).destroy_plan(event.plan);
  hosts.run_rounds(3);
}

TEST_CASE("a rank that joins may submit before its node has heard of the commit") {
  EngineCluster cluster(1);
  EngineHost& host = cluster.host(0);
  EngineHost::Job& job = host.add({.plan = star_of(1), .joins = true});
  cluster.turns(100);
  api::Event event;
  REQUIRE(host.next_event(event));
  CHECK(event.kind == api::Event::Kind::kPlanPrepared);
  REQUIRE(job.trainers[0].submit(500, kElements, 2));
  cluster.turns(100);
  CHECK(host.engine().prepare_sleep());  // the round waits for its plan
  host.engine().end_sleep();
  api::Command commit;
  commit.kind = api::Command::Kind::kCommitPlan;
  commit.job = job.runtime.get();
  commit.epoch = 1;
  commit.round = 500;
  host.command(commit);
  ipc::Completion completion;
  for (int turn = 0; turn < 1000 && !job.trainers[0].completions.pop(completion); ++turn) {
    cluster.turn();
  }
  CHECK(completion.round == 500);
  CHECK(completion.status == ipc::CompletionStatus::kOk);
  CHECK_FALSE(host.next_event(event));  // no event says that the rank is broken
}
