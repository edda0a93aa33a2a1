// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What happens to orders about plans whose job ends before they are done.
#include "tests/unit/daemon_bench.h"

using namespace gradplane;
using namespace gradplane::daemon;
using namespace gradplane::daemon::testing;

TEST_CASE("a plan for a job that the poll loop has refused is freed, and not handed over") {
  JobBench bench(4);
  bench.attach(kHandle);
  const session::InstallJob order = JobBench::order(5);
  REQUIRE(bench.jobs.install(order, bench.ranks).ok());
  engine::JobRuntime* const runtime = bench.next().job;
  session::PreparePlan further{.job_id = 5, .first_epoch = 1, .packet_key = {}, .plan = order.plan};
  further.plan.epoch = 2;
  SECTION("the poll loop has it already") {
    REQUIRE(bench.jobs.prepare_plan(further).ok());
    job::Plan* const plan = bench.next().plan;
    bench.jobs.on_refused(runtime);
    api::Event refusal;
    refusal.kind = api::Event::Kind::kPlanRefused;
    refusal.job = runtime;
    refusal.plan = plan;
    CHECK_FALSE(bench.jobs.take_plan_event(refusal));
  }
  SECTION("it waits for room in the queue") {
    while (bench.commands.room() != 0) REQUIRE(bench.commands.push({}));
    REQUIRE(bench.jobs.prepare_plan(further).ok());
    bench.jobs.on_refused(runtime);
    while (bench.commands.front() != nullptr) CHECK(bench.next().job == nullptr);
    bench.jobs.ask_back();
    CHECK(bench.commands.front() == nullptr);
  }
  CHECK(bench.jobs.empty());
}
