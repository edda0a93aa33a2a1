// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Plans that a planner makes asynchronously, and redraws when the network has changed.
#include <string>
#include <vector>

#include "tests/unit/redraw_bench.h"

using namespace gradplane;
using namespace gradplane::protocol;
using namespace gradplane::session;
using namespace gradplane::session::testing;
using gradplane::testing::sample_of;

namespace {

using Bench = RedrawBench;
using Running = RunningBench;

}  // namespace

TEST_CASE("a report that changes something has another plan made, which is put in force") {
  Running bench;
  CHECK(bench.coordinator.next_deadline() == Instant::never());
  bench.root = 2;
  bench.in_force = Duration::seconds(2);
  bench.report(50'000'000);
  CHECK(bench.coordinator.next_deadline() <= bench.now);
  bench.pass({});
  REQUIRE(bench.inputs.size() == 2);
  CHECK(bench.inputs[1].redraw);
  CHECK(bench.inputs[1].in_force->trees[0].root == 1);
  REQUIRE(bench.inputs[1].links.size() == 1);
  CHECK(bench.inputs[1].links[0].from == 1);
  CHECK(bench.inputs[1].links[0].to == 2);
  CHECK(bench.prepares() == 2);
  bench.answer(bench.first + 1);
  CHECK(letters<Commit>(bench.outbox).size() == 2);
  const TopologyView view = bench.coordinator.topology(bench.now + Duration::seconds(1));
  REQUIRE(view.plans.size() == 1);
  CHECK(view.plans[0].plan.trees[0].root == 2);
  REQUIRE(view.plans[0].outlook);
  CHECK(view.plans[0].outlook->time == Duration::seconds(1));
  CHECK(view.plans[0].outlook->decision == "the network has changed");
  CHECK(view.plans[0].outlook_age == Duration::seconds(1));
  REQUIRE(view.links.size() == 1);
  CHECK(view.links[0].rate_age_ms == 2500);
  // The next redraw waits until the plan before has ended and its time has come.
  bench.root = 1;
  bench.report(90'000'000);
  bench.pass(kEvery / 2);
  bench.end_plan(bench.first);
  CHECK(bench.inputs.size() == 2);
  bench.pass(kEvery / 2);
  CHECK(bench.inputs.size() == 3);
}

TEST_CASE("a redraw waits until reports have settled") {
  Running bench;
  bench.report(50'000'000);
  bench.pass({});
  bench.now = bench.now + kEvery;
  const Instant changed = bench.now;
  bench.report(20'000'000);
  bench.now = changed;
  bench.pass({});
  CHECK(bench.inputs.size() == 2);
  CHECK(bench.coordinator.next_deadline() == changed + kReportsCalm);
}

TEST_CASE("the plan in force stays when no other one is worth a switch") {
  Running bench;
  bench.root = 2;
  SECTION("it gains too little") {
    bench.in_force = Duration::ms(1099);
  }
  SECTION("it costs more than it gains") {
    bench.in_force = Duration::ms(1250);  // the plan saves 6 s of 30 s
    bench.price = Duration::seconds(6);
  }
  SECTION("it is the same one") {
    bench.in_force = Duration::seconds(9);
    bench.root = 1;
  }
  bench.report(50'000'000);
  bench.pass({});
  CHECK(bench.inputs.size() == 2);
  CHECK(bench.prepares() == 0);
  CHECK(bench.coordinator.views().at(0).epoch == bench.first);
  CHECK(bench.coordinator.topology(bench.now).plans[0].outlook->time == bench.in_force);
  // The planner is not asked about the same network again, nor too early about another one.
  bench.pass(kEvery);
  CHECK(bench.inputs.size() == 2);
  bench.report(51'000'000);  // nearly the same rate
  bench.pass({});
  CHECK(bench.inputs.size() == 2);
  bench.report(70'000'000);
  bench.pass({});
  CHECK(bench.inputs.size() == 3);
}

TEST_CASE("a plan in force that does not reach everybody is left for any other") {
  Running bench;
  bench.root = 2;
  bench.price = Duration::seconds(1000);
  bench.report(50'000'000);
  bench.pass({});
  CHECK(bench.prepares() == 2);
}

TEST_CASE("jobs whose planner does not need the network, and files that forbid it") {
  Bench bench;
  SECTION("planner") {
    bench.c.planner = sharded_planner();
  }
  SECTION("file") {
    bench.c.redraw.enabled = false;
  }
  bench.ready_job();
  bench.report(50'000'000);
  bench.pass(Duration::seconds(100));
  CHECK(bench.inputs.size() <= 1);
  CHECK(bench.coordinator.orders.empty());
  CHECK(bench.coordinator.next_deadline() == Instant::never());
}

TEST_CASE("after a redraw that fails the next one waits twice as long") {
  Running bench;
  bench.root = 2;
  std::size_t asked = 1;
  Duration pause = kEvery;
  const bool refused = GENERATE(false, true);
  bench.failure = refused ? "" : "no plan";
  bench.report(50'000'000);
  for (int turn = 0; turn < 3; ++turn) {
    bench.pass({});
    CHECK(bench.inputs.size() == ++asked);
    if (refused) {
      const auto sent = letters<Prepare>(bench.outbox);
      REQUIRE(sent.size() == 2);
      bench.coordinator.on_message(1, PlanRefused{kKey, sent[0].second.epoch, "no memory"},
                                   bench.now);
    }
    pause = pause * 2;
    bench.pass(pause - Duration::ms(1));
    CHECK(bench.inputs.size() == asked);
    CHECK(bench.coordinator.views().at(0).epoch == bench.first);
    bench.now = bench.now + Duration::ms(1);
  }
}

TEST_CASE("a member that does not answer aborts a redraw") {
  Running bench;
  bench.root = 2;
  bench.report(50'000'000);
  bench.pass({});
  CHECK(bench.prepares() == 2);
  bench.answer(bench.first + 1, false);
  bench.pass(Duration::seconds(6));
  CHECK(letters<Abort>(bench.outbox).size() == 2);
  CHECK(bench.coordinator.views().at(0).epoch == bench.first);
  CHECK(bench.coordinator.has_jobs());
}

TEST_CASE("an operator is told when there is no other plan, and is not kept waiting by a redraw") {
  Running bench;
  bench.coordinator.on_message(2, Replan{kKey, 9, PlanKind::kAuto, {}}, bench.now);
  auto answers = letters<ReplanAnswer>(bench.outbox);
  REQUIRE(answers.size() == 1);
  CHECK_FALSE(answers[0].second.committed);
  CHECK(answers[0].second.text == "the plan in force stays: auto makes no other one");
  bench.coordinator.planner_works = false;
  bench.root = 2;
  bench.report(50'000'000);
  bench.pass({});
  REQUIRE(bench.coordinator.orders.size() == 1);
  bench.coordinator.on_message(2, Replan{kKey, 10, PlanKind::kAuto, {}}, bench.now);
  REQUIRE(bench.coordinator.orders.size() == 2);
  CHECK(bench.coordinator.views().at(0).plan_change == "another plan is being made");
  // A second request does not wait behind the first.
  bench.coordinator.on_message(2, Replan{kKey, 11, PlanKind::kAuto, {}}, bench.now);
  answers = letters<ReplanAnswer>(bench.outbox);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].second.ticket == 11);
  const std::vector<MakePlan> orders = bench.coordinator.orders;
  bench.coordinator.on_plan_made(orders[0].ticket, bench.c.planner(orders[0].input), bench.now);
  CHECK(bench.prepares() == 0);  // nobody waits for this plan any more
  bench.coordinator.on_plan_made(orders[1].ticket, bench.c.planner(orders[1].input), bench.now);
  CHECK(bench.prepares() == 2);
}

TEST_CASE("the time for answers begins when the plan has been made") {
  Bench bench;
  bench.coordinator.planner_works = false;
  bench.join(1, 1, {0});
  bench.join(2, 1, {1});
  REQUIRE(bench.coordinator.orders.size() == 1);
  CHECK(bench.coordinator.views().at(0).reason == "its plan is being made");
  const MakePlan order = bench.coordinator.orders[0];
  bench.pass(Duration::seconds(20));
  bench.coordinator.on_plan_made(order.ticket, bench.c.planner(order.input), bench.now);
  CHECK(bench.prepares() == 2);
  CHECK(bench.coordinator.next_deadline() == bench.now + Duration::seconds(6));
}

TEST_CASE("a plan for ranks that are not those of now is made again") {
  Bench bench;
  bench.coordinator.planner_works = false;
  bench.join(1, 1, {0});
  bench.join(2, 1, {1});
  bench.join(2, 2, {});
  bench.outbox.letters.clear();
  const MakePlan order = bench.coordinator.orders.at(0);
  SECTION("they are not all here") {
    bench.coordinator.on_plan_made(order.ticket, bench.c.planner(order.input), bench.now);
    CHECK(bench.prepares() == 0);
    CHECK(bench.coordinator.has_jobs());
  }
  SECTION("others have come") {
    bench.join(0, 1, {1});
    REQUIRE(bench.coordinator.orders.size() == 2);
    bench.coordinator.on_plan_made(order.ticket, bench.c.planner(order.input), bench.now);
    CHECK(letters<Prepare>(bench.outbox).empty());
    const MakePlan again = bench.coordinator.orders[1];
    bench.coordinator.on_plan_made(again.ticket, bench.c.planner(again.input), bench.now);
    std::set<api::NodeId> asked;
    for (const auto& [node, prepare] : letters<Prepare>(bench.outbox)) asked.insert(node);
    CHECK(asked == std::set<api::NodeId>{0, 1});
  }
}

TEST_CASE("a planner that does not answer ends what waits for it") {
  Bench bench;
  SECTION("a start") {
    bench.coordinator.planner_works = false;
    bench.join(1, 1, {0});
    bench.join(2, 1, {1});
    bench.pass(kPlanningLimit);
    CHECK(letters<Refused>(bench.outbox).size() == 2);
    CHECK_FALSE(bench.coordinator.has_jobs());
  }
  SECTION("a question") {
    bench.ready_job();
    bench.coordinator.planner_works = false;
    bench.coordinator.on_message(2, Replan{kKey, 9, PlanKind::kAuto, {}}, bench.now);
    bench.pass(kPlanningLimit);
    const auto answers = letters<ReplanAnswer>(bench.outbox);
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].second.text ==
          "the plan in force stays: the planner has not made one within 30 s");
    CHECK(bench.coordinator.has_jobs());
  }
  SECTION("a question while ranks leave") {
    const std::uint32_t first = bench.ready_job();
    bench.coordinator.planner_works = false;
    bench.coordinator.on_message(2, Replan{kKey, 9, PlanKind::kAuto, {}}, bench.now);
    bench.coordinator.on_message(1, Leave{kKey, first, 0, true}, bench.now);
    CHECK(letters<ReplanAnswer>(bench.outbox).size() == 1);
  }
}

TEST_CASE("a plan waits a little for nodes that may sum, and does without the silent ones") {
  TestConfig c = config(0, 0);
  c.relays = {0, 2};  // node 0 is this node
  std::vector<std::vector<api::NodeId>> silent;
  c.planner = [&silent](const PlanInput& input) {
    silent.push_back(input.silent);
    Result<PlanOffer> offer = sharded_planner()(input);
    offer.value().planner = PlanKind::kAuto;
    return offer;
  };
  Outbox outbox;
  PlannedCoordinator coordinator(c, outbox);
  Instant now = kNow;
  coordinator.on_message(1, Join{kKey, 1, kRootUser, 1, {0}, "job"}, now);
  CHECK(silent.empty());
  CHECK(coordinator.views().at(0).reason == "waiting for nodes that may sum");
  std::vector<bool> involved(3);
  coordinator.mark_involved(involved);
  CHECK(involved == std::vector<bool>{false, true, true});
  const bool answers = GENERATE(false, true);
  if (answers) {
    coordinator.on_node_connected(2);
    CHECK(coordinator.next_deadline() <= now);
  } else {
    CHECK(coordinator.next_deadline() == now + kRelayGrace);
    now = now + kRelayGrace;
  }
  coordinator.tick(now);
  REQUIRE(silent.size() == 1);
  CHECK(silent[0] == (answers ? std::vector<api::NodeId>{} : std::vector<api::NodeId>{2}));
  CHECK(coordinator.topology(now).silent == silent[0]);
  for (const auto& [node, prepare] : letters<Prepare>(outbox))
    coordinator.on_message(node, Prepared{kKey, prepare.epoch, false, 0}, now);
  // A change of such a node is a reason to plan again.
  if (answers)
    coordinator.on_node_lost(2, "has been silent", false, now);
  else
    coordinator.on_node_connected(2);
  now = now + kEvery;
  coordinator.tick(now);
  REQUIRE(silent.size() == 2);
  CHECK(silent[1].empty() != silent[0].empty());
}

TEST_CASE("a coordinator refuses samples of links that their reporter does not have") {
  Running bench;
  bench.report(1, 2, 2);
  bench.report(1, 77, 2);
  CHECK(bench.outbox.bad_link_samples == 2);
  CHECK(bench.coordinator.topology(bench.now).links.empty());
  bench.pass(Duration::seconds(100));
  CHECK(bench.inputs.size() == 1);
}

TEST_CASE("a plan in force that is ten times slower is always left") {
  for (const std::int64_t seconds : {1, 10, 100, 1000}) {
    const Duration then = Duration::seconds(seconds);
    CHECK(is_worth_switch(then * 10, then, then * 3, {}));
    CHECK_FALSE(is_worth_switch(then, then, then * 3, {}));
  }
}

TEST_CASE("a question that a node refuses does not end redraws") {
  Running bench;
  bench.c.planner = sharded_planner();
  bench.coordinator.on_message(2, Replan{kKey, 9, PlanKind::kStar, {2}}, bench.now);
  const auto sent = letters<Prepare>(bench.outbox);
  REQUIRE(sent.size() == 2);
  bench.coordinator.on_message(1, PlanRefused{kKey, sent[0].second.epoch, "no"}, bench.now);
  bench.report(50'000'000);
  CHECK(bench.coordinator.next_deadline() != Instant::never());
}

TEST_CASE("planning takes a bounded part of the time") {
  Redraw redraw;
  const RedrawSettings settings;
  redraw.on_ask(kNow, 1);
  const Instant answered = kNow + Duration::seconds(3);
  redraw.on_kept(answered, settings);
  CHECK(redraw.due(2, settings) == answered + Duration::seconds(3) * kRestForPlanning);
  CHECK(redraw.due(1, settings) == Instant::never());
}
