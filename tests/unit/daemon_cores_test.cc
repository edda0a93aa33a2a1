// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A daemon with several poll cores: the cores that carry a job, and how the daemon merges their
// answers.
#include <array>

#include "control/daemon/node_snapshot.h"
#include "control/daemon/placement.h"
#include "control/daemon/plan_answers.h"
#include "control/daemon/session_config.h"
#include "dataplane/wire/seal.h"
#include "tests/support/catch.h"
#include "tests/unit/daemon_bench.h"

using namespace gradplane;
using namespace gradplane::daemon;
using namespace gradplane::daemon::testing;

namespace {

using Kind = api::Event::Kind;

config::Config two_cores() {
  config::Config config = three_nodes();
  config.poll.cores = {2, 3};
  return config;
}

/// The job table of a daemon with two cores, without poll loops.
struct TwoCores {
  TwoCores() {
    auto channel = make_channel(kRoundBytes, 2);
    REQUIRE(channel.ok());
    Rank rank;
    rank.channel = std::move(channel.value().channel);
    ranks.emplace(kHandle, std::move(rank));
  }
  ~TwoCores() {
    for (api::CommandQueue& queue : queues) {
      for (; const api::Command* left = queue.front(); queue.pop()) {
        if (left->plan != nullptr) left->job->destroy_plan(left->plan);
      }
    }
  }
  TwoCores(const TwoCores&) = delete;
  TwoCores& operator=(const TwoCores&) = delete;

  void install() { REQUIRE(jobs.install(JobBench::order(5), ranks).ok()); }
  api::Command next(std::size_t core) {
    REQUIRE(queues[core].front() != nullptr);
    const api::Command command = *queues[core].front();
    queues[core].pop();
    return command;
  }
  bool is_empty(std::size_t core) { return queues[core].front() == nullptr; }

  config::Config config = two_cores();
  std::array<api::CommandQueue, 2> queues{api::CommandQueue(4 * kMaxJobs),
                                          api::CommandQueue(4 * kMaxJobs)};
  JobTable jobs{config, {&queues[0], &queues[1]}};
  RankTable ranks;
};

api::Event event_of(Kind kind, std::uint32_t epoch, std::uint32_t round = 0,
                    engine::JobRuntime* job = nullptr) {
  api::Event event;
  event.kind = kind;
  event.epoch = epoch;
  event.round = round;
  event.job = job;
  if (kind == Kind::kPlanRefused) event.plan_refusal = PlanRefusal::kTooMany;
  return event;
}

}  // namespace

TEST_CASE("a job has all cores, or one where its configuration cannot be shared") {
  config::Config config = two_cores();
  CHECK(core_count(three_nodes()) == 1);
  CHECK(core_count(config) == 2);
  CHECK(placement_of(config, 7).count == 2);
  CHECK(why_one_core(config).empty());
  SECTION("grants are of queue 0") {
    config.grants.enabled = GrantChoice::kTrue;
    for (const std::uint32_t job : {6U, 7U}) {
      CHECK(placement_of(config, job).count == 1);
      CHECK(placement_of(config, job).first == 0);
    }
    CHECK(why_one_core(config) == "grants.enabled is true");
  }
  SECTION("with auto all cores share a job, which then has no grants") {
    config.grants.enabled = GrantChoice::kAuto;
    CHECK(placement_of(config, 7).count == 2);
    CHECK(session_config(config, {}, 1).grant_exclusion == "poll.cores has several CPUs");
    config.grants.enabled = GrantChoice::kFalse;
    CHECK(placement_of(config, 7).count == 2);
    CHECK(session_config(config, {}, 1).grant_exclusion == "grants.enabled is false");
  }
  SECTION("other jobs are dealt out by their number") {
    config.gather.compensation = Compensation::kCarry;
    CHECK(placement_of(config, 6).first == 0);
    CHECK(placement_of(config, 7).first == 1);
    CHECK(placement_of(config, 7).count == 1);
  }
}

TEST_CASE("a job goes to all its cores, and is gone when all have given it back") {
  TwoCores node;
  node.install();
  const InstalledJob& job = node.jobs.installed()[0];
  REQUIRE(job.parts.size() == 2);
  std::array<engine::JobRuntime*, 2> parts{};
  for (std::size_t c = 0; c < 2; ++c) {
    parts[c] = node.next(c).job;
    CHECK(parts[c] == job.parts[c].runtime.get());
    CHECK(parts[c]->job().config().core == CorePart{static_cast<std::uint16_t>(c), 2});
    CHECK(node.jobs.find_running(parts[c]) == &job);
  }
  CHECK(parts[0]->job().config().key != parts[1]->job().config().key);
  node.jobs.remove(5, 1);
  for (std::size_t c = 0; c < 2; ++c) CHECK(node.next(c).kind == api::Command::Kind::kRemoveJob);
  node.jobs.on_returned(parts[1]);
  CHECK(node.jobs.installed().size() == 1);
  node.jobs.ask_back();
  CHECK(node.is_empty(0));
  node.jobs.on_returned(parts[0]);
  CHECK(node.jobs.empty());
  CHECK(node.jobs.ended().size() == 1);
}

TEST_CASE("when one core does not take its part of a job, the others give theirs back") {
  TwoCores node;
  node.install();
  engine::JobRuntime* const first = node.next(0).job;
  engine::JobRuntime* const second = node.next(1).job;
  node.jobs.on_returned(second);
  CHECK(node.jobs.find_running(first) == nullptr);
  CHECK(node.next(0).kind == api::Command::Kind::kRemoveJob);
  CHECK(node.is_empty(1));
  node.jobs.on_returned(first);
  CHECK(node.jobs.empty());
}

TEST_CASE("of a core that refuses a job and is asked for it the second answer counts") {
  TwoCores node;
  node.install();
  engine::JobRuntime* const first = node.next(0).job;
  engine::JobRuntime* const second = node.next(1).job;
  node.jobs.on_refused(first);
  CHECK(node.next(1).kind == api::Command::Kind::kRemoveJob);
  node.jobs.on_refused(second);  // sent before the core got kRemoveJob
  CHECK(node.jobs.installed().size() == 1);
  node.jobs.on_returned(second);
  CHECK(node.jobs.empty());
}

TEST_CASE("what the first core reserves for a peer is a part of what is reserved") {
  TwoCores node;
  node.config.congestion.controller = ControllerKind::kFixed;
  node.config.congestion.rate_bits_per_second = 1'000'000'000;
  node.install();
  for (std::size_t c = 0; c < 2; ++c) {
    const engine::JobRuntime* const part = node.next(c).job;
    CHECK(part->job().config().congestion.rate_bits_per_second == 500'000'000);
  }
}

TEST_CASE("rounds that several cores have closed are counted together, and so are those lost") {
  TwoCores node;
  node.install();
  api::JobRoundReport report;
  report.job = 5;
  report.epoch = 1;
  for (const auto& [part, number] : {std::pair(0, 1), std::pair(1, 1), std::pair(1, 3)}) {
    report.part = static_cast<std::uint16_t>(part);
    report.report.number = static_cast<std::uint64_t>(number);
    REQUIRE(node.jobs.keep_report(report) != nullptr);
  }
  const RoundLog& rounds = node.jobs.installed()[0].rounds;
  CHECK(rounds.closed() == 4);
  CHECK(rounds.lost() == 1);
  REQUIRE(rounds.kept().size() == 3);
  CHECK(rounds.kept()[1].number == 2);
  CHECK(rounds.kept()[2].number == 4);
}

TEST_CASE("a bucket of a shared job goes to each of its cores") {
  TwoCores node;
  node.install();
  for (std::size_t c = 0; c < 2; ++c) (void)node.next(c);
  session::InstallBounds bounds;
  bounds.job_id = 5;
  bounds.first_epoch = 1;
  bounds.table = {.bucket = 1,
                  .elements = 1024,
                  .tensors = {{"w", 0, 1024, 0.5F, api::BoundReason::kPattern, "w"}}};
  REQUIRE(node.jobs.install_bounds(bounds).ok());
  const api::Command first = node.next(0);
  const api::Command second = node.next(1);
  CHECK(first.kind == api::Command::Kind::kAddBucket);
  CHECK(second.kind == api::Command::Kind::kAddBucket);
  CHECK(first.bucket != second.bucket);
  CHECK(node.jobs.installed()[0].parts[1].runtime.get() == second.job);
  CHECK(node.is_empty(0));
}

TEST_CASE("a plan is prepared when all cores have prepared it, from the latest horizon on") {
  PlanAnswers answers(3);
  CHECK_FALSE(answers.take(event_of(Kind::kPlanPrepared, 2, 0xfffffffe)));
  CHECK_FALSE(answers.take(event_of(Kind::kPlanPrepared, 2, 3)));  // numbers wrap around
  const auto told = answers.take(event_of(Kind::kPlanPrepared, 2, 0xffffffff));
  REQUIRE(told);
  CHECK(told->kind == Kind::kPlanPrepared);
  CHECK(told->round == 3);
  for (int core = 0; core < 2; ++core) CHECK_FALSE(answers.take(event_of(Kind::kPlanReturned, 1)));
  CHECK(answers.take(event_of(Kind::kPlanReturned, 1)));
  // Answers for the next plan are counted from the beginning.
  CHECK_FALSE(answers.take(event_of(Kind::kPlanReturned, 2)));
}

TEST_CASE("a plan that one core refuses is refused when all have answered") {
  PlanAnswers answers(2);
  CHECK_FALSE(answers.take(event_of(Kind::kPlanRefused, 2)));
  const auto told = answers.take(event_of(Kind::kPlanPrepared, 2, 9));
  REQUIRE(told);
  CHECK(told->kind == Kind::kPlanRefused);
  CHECK(told->plan_refusal == PlanRefusal::kTooMany);
  // The core that has prepared the plan aborts it. Its answer does not report the end of a plan.
  CHECK_FALSE(answers.take(event_of(Kind::kPlanReturned, 2)));
  // After all cores have prepared a plan, the first refusal counts at once.
  CHECK_FALSE(answers.take(event_of(Kind::kPlanPrepared, 3)));
  CHECK(answers.take(event_of(Kind::kPlanPrepared, 3)));
  CHECK(answers.take(event_of(Kind::kPlanRefused, 3)));
  CHECK_FALSE(answers.take(event_of(Kind::kPlanRefused, 3)));
}

TEST_CASE("cores that have prepared a plan which another one refuses are told to forget it") {
  TwoCores node;
  node.config.authenticate = true;
  node.install();
  std::array<engine::JobRuntime*, 2> parts{};
  for (std::size_t c = 0; c < 2; ++c) parts[c] = node.next(c).job;
  session::PreparePlan prepare;
  prepare.job_id = 5;
  prepare.first_epoch = 1;
  prepare.plan = gradplane::testing::star_of(3);
  prepare.plan.epoch = 2;
  REQUIRE(node.jobs.prepare_plan(prepare).ok());
  std::array<api::Command, 2> orders{node.next(0), node.next(1)};
  CHECK(orders[0].plan != orders[1].plan);
  const auto sealed_with = [](const wire::Gmac& key) {
    std::array<std::byte, 64> packet{};
    wire::seal(packet, key, {.writer = 1, .receiver = wire::Receiver::group(2), .number = 3});
    return packet;
  };
  CHECK(sealed_with(orders[0].plan->key()) != sealed_with(orders[1].plan->key()));
  CHECK_FALSE(node.jobs.take_plan_event(event_of(Kind::kPlanPrepared, 2, 4, parts[0])));
  api::Event refused = event_of(Kind::kPlanRefused, 2, 0, parts[1]);
  refused.plan = orders[1].plan;
  const auto told = node.jobs.take_plan_event(refused);
  REQUIRE(told);
  CHECK(told->kind == Kind::kPlanRefused);
  for (std::size_t c = 0; c < 2; ++c) CHECK(node.next(c).kind == api::Command::Kind::kAbortPlan);
  api::Event returned = event_of(Kind::kPlanReturned, 2, 0, parts[0]);
  returned.plan = orders[0].plan;
  CHECK_FALSE(node.jobs.take_plan_event(returned));
  CHECK(parts[0]->has_room_for_plan());
  CHECK(parts[1]->has_room_for_plan());
}

TEST_CASE("what cores have counted of a job is one job's, and its rounds count once") {
  api::EngineSnapshot sum;
  api::EngineSnapshot core;
  core.polls = 10;
  core.port.rx_datagrams = 7;
  core.job_count = 1;
  core.jobs[0].job = 5;
  core.jobs[0].traffic.blocks_sent = 100;
  core.jobs[0].traffic.rounds_completed = 8;
  core.jobs[0].open_rounds = 1;
  core.jobs[0].oldest_round = 8;
  core.jobs[0].peer_count = 1;
  core.jobs[0].peers[0] = {.node = 2, .in_flight_blocks = 3, .min_rtt_ns = 50};
  add_core(sum, core);
  core.jobs[0].traffic.rounds_completed = 0;  // only the first core counts rounds
  core.jobs[0].oldest_round = 7;
  core.jobs[0].silent_node_count = 1;
  core.jobs[0].peers[0].min_rtt_ns = 40;
  add_core(sum, core);
  CHECK(sum.polls == 20);
  CHECK(sum.port.rx_datagrams == 14);
  REQUIRE(sum.job_count == 1);
  CHECK(sum.jobs[0].traffic.blocks_sent == 200);
  CHECK(sum.jobs[0].traffic.rounds_completed == 8);
  CHECK(sum.jobs[0].oldest_round == 7);
  CHECK(sum.jobs[0].silent_node_count == 1);
  REQUIRE(sum.jobs[0].peer_count == 1);
  CHECK(sum.jobs[0].peers[0].in_flight_blocks == 6);
  CHECK(sum.jobs[0].peers[0].min_rtt_ns == 40);
}
