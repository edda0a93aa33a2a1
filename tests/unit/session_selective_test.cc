// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Jobs whose ranks exchange updates with some of the other ranks, on a whole cluster. Each plan has
// its own selections.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/plan/planner.h"
#include "control/plan/validate.h"
#include "tests/property/session_network.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

const protocol::JobKey kKey = key_number(1);
const std::uint32_t kId = protocol::job_id_of(kKey);
constexpr Duration kSoon = Duration::seconds(1);
constexpr std::uint32_t kSelections = 3;
constexpr std::uint32_t kAverageEvery = 50;

/// A planner like the daemon's. `selections` may differ from the settings.
Planner selective_planner(std::uint32_t selections, std::shared_ptr<std::uint32_t> share_ppm) {
  return [selections, share_ppm](const PlanInput& input) -> Result<PlanOffer> {
    plan::PlanRequest request;
    request.epoch = input.epoch;
    request.activation_round = input.activation_round;
    request.members = input.members;
    request.planner = input.choice ? input.choice->kind : PlanKind::kSharded;
    if (selections > 0) {
      request.selections =
          plan::SelectionsWanted{.receivers_ppm = *share_ppm, .freshness = selections - 1};
    }
    Result<api::Plan> plan = plan::make_plan(request);
    if (!plan.ok()) return plan.error();
    return PlanOffer{.plan = std::move(plan.value()), .planner = request.planner};
  };
}

JobSettings selective_settings(std::uint32_t staleness = 0) {
  JobSettings settings;
  settings.staleness = staleness;
  settings.selections = kSelections;
  settings.average_every = kAverageEvery;
  return settings;
}

/// A cluster of four nodes with rank n on node n. Node 0 coordinates.
struct Bench {
  explicit Bench(std::uint32_t planned = kSelections,
                 const JobSettings& of_node_2 = selective_settings(),
                 const JobSettings& of_others = selective_settings())
      : cluster(1, 4, 0, selective_planner(planned, share_ppm), check_, true) {
    for (api::NodeId node = 0; node < 4; ++node)
      cluster.start(node, node == 2 ? of_node_2 : of_others);
    for (std::uint16_t rank = 0; rank < 4; ++rank)
      handles.push_back(cluster.attach(rank, rank, 4, kKey));
    cluster.run(kSoon);
  }
  AnswerReplan answer_to(const PlanChoice& choice) {
    const AskerHandle asker = cluster.replan(1, kId, choice);
    REQUIRE(asker != 0);
    REQUIRE(cluster.run(Duration::seconds(20), [&] { return cluster.answers.contains(asker); }));
    cluster.run(kSoon);
    return cluster.answers[asker];
  }
  void open_rounds(std::uint32_t count) {
    for (api::NodeId node = 0; node < 4; ++node) cluster.open_rounds(node, count);
    cluster.run(kSoon);
  }
  api::Plan plan_of(std::uint32_t epoch) {
    return decode_plan(cluster.plan_of_epoch.at(epoch)).value();
  }
  static Status check_(const api::Plan& plan) { return plan::validate(plan); }
  std::uint32_t epoch() { return cluster.hosts[0].manager->jobs().at(0).epoch; }

  std::shared_ptr<std::uint32_t> share_ppm = std::make_shared<std::uint32_t>(300'000);
  Cluster cluster;
  std::vector<RankHandle> handles;
};

/// Returns the pairs that meet in a cycle of the selections.
std::set<std::pair<api::NodeId, api::NodeId>> met_in(const api::Plan& plan) {
  std::set<std::pair<api::NodeId, api::NodeId>> met;
  for (const api::Selection& selection : plan.selections)
    for (std::size_t m = 0; m < plan.members.size(); ++m)
      for (const api::NodeId to : selection.receivers.at(m)) met.insert({plan.members[m].node, to});
  return met;
}

}  // namespace

TEST_CASE("ranks are told of selections and averages, and plans made anew have new selections") {
  Bench bench;
  REQUIRE(bench.cluster.all_ranks(State::kReady));
  for (const RankHandle handle : bench.handles) {
    CHECK(bench.cluster.ranks[handle].selections == kSelections);
    CHECK(bench.cluster.ranks[handle].average_every == kAverageEvery);
  }
  const api::Plan first = bench.plan_of(bench.epoch());
  CHECK(first.selections.size() == kSelections);
  CHECK(met_in(first).size() == 4 * 3);

  const AnswerReplan left = bench.answer_to({PlanKind::kSharded, {}, {3}});
  REQUIRE(left.committed);
  CHECK(left.text ==
        "sharded, 3 selections, roots n0, n1 and n2; before: sharded, 3 selections, roots n0, n1, "
        "n2 and n3");
  const api::Plan without = bench.plan_of(bench.epoch());
  CHECK(without.members.size() == 3);
  CHECK(without.selections.size() == kSelections);
  CHECK(met_in(without).size() == 3 * 2);
  bench.open_rounds(200);
  bench.open_rounds(100);
  bench.cluster.detach(bench.handles[3], true);
  bench.cluster.run(kSoon);

  const RankHandle again = bench.cluster.attach(3, 3, 4, kKey);
  REQUIRE(again != 0);
  bench.cluster.run(kSoon * 2);
  REQUIRE(bench.cluster.all_ranks(State::kReady));
  CHECK(bench.cluster.ranks[again].selections == kSelections);
  CHECK(met_in(bench.plan_of(bench.epoch())) == met_in(first));
}

TEST_CASE("another kind of plan is refused while ranks exchange updates, and the job goes on") {
  Bench bench;
  const std::uint32_t epoch = bench.epoch();
  const AnswerReplan answer = bench.answer_to({PlanKind::kStar, {}});
  CHECK_FALSE(answer.committed);
  INFO(answer.text);
  CHECK(answer.text.find("a star plan carries no selections of receivers, which a selective "
                         "training.mode needs; use the planner sharded") != std::string::npos);
  CHECK(bench.epoch() == epoch);
  CHECK(bench.cluster.all_ranks(State::kReady));
}

TEST_CASE("a plan with other selections than the files ask for does not begin") {
  const auto planned = GENERATE(std::uint32_t{0}, kSelections + 1);
  Bench bench(planned);
  for (const RankHandle handle : bench.handles) {
    const RankLog& rank = bench.cluster.ranks[handle];
    CHECK(rank.state == State::kFailed);
    INFO(rank.reason);
    CHECK(rank.reason.find("the plan has " + std::to_string(planned) +
                           " selections, and its coordinator's file asks for 3") !=
          std::string::npos);
  }
}

TEST_CASE("nodes whose ranks would count other selections or averages say so, and do not begin") {
  JobSettings settings = selective_settings();
  settings.selections = kSelections + 1;
  settings.average_every = 0;
  Bench bench(kSelections, settings);
  for (const RankHandle handle : bench.handles) {
    CHECK(bench.cluster.ranks[handle].reason ==
          "training.freshness is 3 on node n2 and 2 on node n0; training.average_every is never on "
          "node n2 and 50 on node n0; make the files the same");
  }
}

TEST_CASE("another share of receivers is another plan, though its trees are the same") {
  Bench bench;
  const std::uint32_t epoch = bench.epoch();
  CHECK(bench.answer_to({PlanKind::kSharded, {}}).text ==
        "the plan in force stays: sharded makes no other one");
  *bench.share_ppm = 1'000'000;
  REQUIRE(bench.answer_to({PlanKind::kSharded, {}}).committed);
  CHECK(bench.epoch() > epoch);
  CHECK(bench.plan_of(bench.epoch()).selections[0].receivers[0].size() == 3);
}

namespace {

constexpr std::uint32_t kStaleness = 4;

/// All nodes have the same bound on staleness.
Bench stale_bench() {
  return Bench(kSelections, selective_settings(kStaleness), selective_settings(kStaleness));
}

void check_all_failed(Bench& bench, const std::string& reason) {
  for (const RankHandle handle : bench.handles) {
    CHECK(bench.cluster.ranks[handle].state == State::kFailed);
    CHECK(bench.cluster.ranks[handle].reason == reason);
  }
}

}  // namespace

TEST_CASE("ranks are told by how much an update may be late") {
  Bench synchronous;
  REQUIRE(synchronous.cluster.all_ranks(State::kReady));
  for (const RankHandle handle : synchronous.handles)
    CHECK(synchronous.cluster.ranks[handle].staleness == 0);
  Bench bench = stale_bench();
  REQUIRE(bench.cluster.all_ranks(State::kReady));
  for (const RankHandle handle : bench.handles) {
    CHECK(bench.cluster.ranks[handle].selections == kSelections);
    CHECK(bench.cluster.ranks[handle].staleness == kStaleness);
  }
}

TEST_CASE("nodes with another staleness, or none, say so, and the job does not begin") {
  SECTION("another one") {
    Bench bench(kSelections, selective_settings(kStaleness + 1), selective_settings(kStaleness));
    check_all_failed(
        bench, "training.staleness is 5 on node n2 and 4 on node n0; make the files the same");
  }
  SECTION("none") {
    Bench bench(kSelections, selective_settings(), selective_settings(kStaleness));
    check_all_failed(bench,
                     "training.mode is selective-bsp on node n2 and selective-ssp on node n0; make "
                     "the files the same");
  }
}

TEST_CASE("a job does without a bucket that a node cannot hold, but not under bounded staleness") {
  SECTION("it goes on") {
    Bench bench;
    bench.cluster.hosts[1].manager->on_bucket_refused(kId, "bucket 3 is one too many",
                                                      bench.cluster.now);
    bench.cluster.run(kSoon);
    CHECK(bench.cluster.all_ranks(State::kReady));
  }
  SECTION("it ends, and all its ranks are told why") {
    Bench bench = stale_bench();
    REQUIRE(bench.cluster.all_ranks(State::kReady));
    bench.cluster.hosts[1].manager->on_bucket_refused(kId + 1, "of another job", bench.cluster.now);
    bench.cluster.run(kSoon);
    REQUIRE(bench.cluster.all_ranks(State::kReady));
    bench.cluster.hosts[1].manager->on_bucket_refused(kId, "bucket 3 is one too many",
                                                      bench.cluster.now);
    bench.cluster.run(kSoon);
    check_all_failed(bench,
                     "node n1: bucket 3 is one too many; training.mode selective-ssp needs every "
                     "bucket");
    for (const Host& host : bench.cluster.hosts) CHECK(host.installed.empty());
  }
}
