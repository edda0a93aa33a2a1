// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Another plan for a job that runs, message by message, at the coordinator.
#include <optional>
#include <string>
#include <vector>

#include "control/session/text.h"
#include "tests/support/catch.h"
#include "tests/unit/session_bench.h"

using namespace gradplane;
using namespace gradplane::protocol;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

/// A coordinator with a running job: rank 0 on node 1, rank 1 on node 2, no rank on node 0.
struct RunningCoordinator : CoordinatorBench {
  RunningCoordinator() : first(ready_job()) {}
  void say(api::NodeId from, const NodeMessage& message) {
    REQUIRE(coordinator.on_message(from, message, now));
  }
  /// An operator on node 2 asks for a plan. Returns the epoch that is prepared.
  std::uint32_t ask(const std::vector<std::uint16_t>& roots = {1}) {
    outbox.letters.clear();
    say(2, Replan{kKey, 9, PlanKind::kStar, roots});
    return first + 1;
  }
  /// The prepared plan with node 0 as its root takes effect. The next plan has the root on node 1
  /// again. Node 0 has no ranks, so it does not know when the first plan has ended and still holds
  /// it.
  void replan_without_node_0(std::uint32_t epoch) {
    for (const api::NodeId node : std::vector<api::NodeId>{0, 1, 2})
      say(node, Prepared{kKey, epoch, node != 0, 64});
    for (const api::NodeId node : std::vector<api::NodeId>{1, 2}) say(node, PlanEnded{kKey, first});
    say(2, Replan{kKey, 9, PlanKind::kStar, {1}});
    for (const api::NodeId node : std::vector<api::NodeId>{0, 1, 2})
      say(node, Prepared{kKey, epoch + 1, true, 200});
  }
  std::optional<ReplanAnswer> answered() {
    const auto found = letters<ReplanAnswer>(outbox);
    if (found.empty()) return std::nullopt;
    CHECK(found.size() == 1);
    CHECK(found[0].first == 2);
    CHECK(found[0].second.ticket == 9);
    return found[0].second;
  }
  void ignores(api::NodeId from, const NodeMessage& message) {
    const std::uint64_t before = outbox.stale_plan_messages;
    outbox.letters.clear();
    say(from, message);
    CHECK(outbox.stale_plan_messages == before + 1);
    CHECK(outbox.letters.empty());
  }
  std::uint32_t first;
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the planner knows the plan in force, and people hear what is said of a plan") {
  RunningCoordinator bench;
  std::vector<std::uint32_t> in_force;
  std::vector<std::uint32_t> asked_for;  // epochs, which seed random selections
  bench.c.planner = [&](const PlanInput& input) {
    REQUIRE(input.in_force);
    asked_for.push_back(input.epoch);
    in_force.push_back(input.in_force->epoch);
    Result<PlanOffer> offer = sharded_planner()(input);
    offer.value().note = "predicted " + std::to_string(offer.value().plan.trees.size()) + " s";
    return offer;
  };
  const std::uint32_t epoch = bench.ask();
  CHECK(in_force == std::vector<std::uint32_t>{bench.first});
  for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
    bench.say(node, Prepared{kKey, epoch, true, 70});
  const auto answer = bench.answered();
  REQUIRE(answer);
  CHECK(answer->text == "star, predicted 1 s, root n1; before: sharded, roots n1 and n2");
  for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
    bench.say(node, PlanEnded{kKey, bench.first});
  bench.ask({2});
  CHECK(in_force == std::vector<std::uint32_t>{bench.first, epoch});
  CHECK(asked_for == std::vector<std::uint32_t>{epoch, epoch + 1});
}

TEST_CASE("the coordinator commits a further plan for the latest horizon, and answers who asked") {
  RunningCoordinator bench;
  const std::uint32_t epoch = bench.ask();
  CHECK(letters<Prepare>(bench.outbox).size() == 2);
  bench.say(1, Prepared{kKey, epoch, true, 70});
  CHECK(bench.outbox.letters.empty());
  CHECK(has(bench.coordinator.views().at(0).plan_change, "waiting for node n2"));
  bench.say(2, Prepared{kKey, epoch, true, 80});
  std::vector<std::uint32_t> rounds;
  for (const Outbox::Letter& letter : bench.outbox.letters)
    if (const auto* commit = std::get_if<Commit>(&letter.message))
      rounds.push_back(commit->activation_round);
  CHECK(rounds == std::vector<std::uint32_t>{80, 80});
  const auto answer = bench.answered();
  REQUIRE(answer);
  CHECK(answer->committed);
  CHECK(answer->epoch == epoch);
  CHECK(answer->activation_round == 80);
  CHECK(answer->text == "star, root n1; before: sharded, roots n1 and n2");
  CHECK(bench.coordinator.views().at(0).epoch == epoch);
  CHECK(bench.coordinator.views().at(0).plan_kind == PlanKind::kStar);
  bench.say(1, PlanEnded{kKey, bench.first});
  CHECK(has(bench.coordinator.views().at(0).plan_change, "to end on node n2"));
  bench.say(2, PlanEnded{kKey, bench.first});
  CHECK(bench.coordinator.views().at(0).plan_change.empty());
  bench.say(2, Leave{kKey, bench.first, 1, true});
  bench.say(1, Leave{kKey, bench.first, 0, true});
  CHECK(letters<Finished>(bench.outbox).size() == 2);
}

TEST_CASE("the coordinator ignores and counts answers that it does not await") {
  RunningCoordinator bench;
  bench.ignores(1, Prepared{kKey, bench.first, true, 1});  // this plan was committed before
  bench.ignores(1, PlanRefused{kKey, bench.first, "x"});
  bench.ignores(1, PlanEnded{kKey, bench.first});
  const std::uint32_t epoch = bench.ask();
  bench.ignores(0, Prepared{kKey, epoch, true, 500});  // node 0 is not a member
  bench.ignores(0, PlanRefused{kKey, epoch, "x"});
  bench.ignores(1, Prepared{kKey, epoch + 1, true, 500});
  bench.ignores(1, PlanEnded{kKey, bench.first});  // the plan is not committed
  bench.say(1, Prepared{kKey, epoch, true, 70});
  bench.ignores(1, Prepared{kKey, epoch, true, 500});
  bench.say(2, Prepared{kKey, epoch, true, 80});
  bench.ignores(2, Prepared{kKey, epoch, true, 500});
  bench.ignores(1, PlanEnded{kKey, epoch});
  bench.say(1, PlanEnded{kKey, bench.first});
  bench.ignores(1, PlanEnded{kKey, bench.first});
  CHECK(bench.coordinator.views().at(0).epoch == epoch);
}

TEST_CASE("a plan that is refused or not answered is aborted everywhere, and the job goes on") {
  RunningCoordinator bench;
  const std::uint32_t epoch = bench.ask();
  bench.outbox.letters.clear();
  std::string reason;
  bench.say(1, Prepared{kKey, epoch, true, 70});
  SECTION("refused") {
    bench.say(2, PlanRefused{kKey, epoch, "node n2: no memory"});
    reason = "node n2: no memory";
  }
  SECTION("refused by one that had prepared") {
    bench.say(1, PlanRefused{kKey, epoch, "node n1: no memory"});
    reason = "node n1: no memory";
  }
  SECTION("not answered") {
    bench.coordinator.tick(bench.now + Duration::ms(5999));
    CHECK(bench.outbox.letters.empty());
    CHECK(bench.coordinator.next_deadline() == bench.now + Duration::ms(6000));
    bench.coordinator.tick(bench.now + Duration::ms(6000));
    reason = "node n2 does not answer the plan";
  }
  SECTION("a rank leaves") {
    bench.say(1, Leave{kKey, bench.first, 0, true});
    reason = "rank 0 on node n1 has left";
  }
  std::size_t aborts = 0;
  for (const Outbox::Letter& letter : bench.outbox.letters) {
    const auto* abort = std::get_if<Abort>(&letter.message);
    if (abort == nullptr) continue;
    ++aborts;
    CHECK(abort->epoch == epoch);
    CHECK(abort->reason == reason);
  }
  CHECK(aborts == 2);
  const auto answer = bench.answered();
  REQUIRE(answer);
  CHECK_FALSE(answer->committed);
  CHECK(answer->epoch == bench.first);
  CHECK(answer->text == "the plan in force stays: " + reason);
  CHECK(bench.coordinator.has_jobs());
  bench.ignores(2, Prepared{kKey, epoch, true, 80});
}

TEST_CASE("the last rounds of the plan before may take longer than the answers to the next one") {
  RunningCoordinator bench;
  const std::uint32_t epoch = bench.ask();
  for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
    bench.say(node, Prepared{kKey, epoch, true, 64});
  bench.outbox.letters.clear();
  bench.coordinator.tick(bench.now + Duration::seconds(60));
  CHECK(bench.outbox.letters.empty());
  CHECK(bench.coordinator.has_jobs());
}

TEST_CASE("a plan is told with each root once, and with its trees where they share roots") {
  const SessionConfig c = config(0, 0);
  const auto text = [&c](const std::vector<api::NodeId>& roots, const std::string& note = {}) {
    api::Plan plan;
    plan.kind = PlanKind::kPacked;
    for (const api::NodeId root : roots) plan.trees.push_back({1, root, {}});
    return plan_text(c, plan, note);
  };
  CHECK(text({2}) == "packed, root n2");
  CHECK(text({0, 1}, "predicted 2 s") == "packed, predicted 2 s, roots n0 and n1");
  CHECK(text({2, 2, 2, 2, 2}) == "packed, 5 trees, root n2");
  CHECK(text({2, 0, 2}, "predicted 2 s") == "packed, predicted 2 s, 3 trees, roots n2 and n0");
}

TEST_CASE("a part that fails after the commit costs the job") {
  RunningCoordinator bench;
  const std::uint32_t epoch = bench.ask({0});
  for (const api::NodeId node : std::vector<api::NodeId>{0, 1, 2})
    bench.say(node, Prepared{kKey, epoch, node != 0, 64});
  bench.outbox.letters.clear();
  bench.say(0, PlanRefused{kKey, epoch, "node n0: no memory"});
  const auto failed = letters<Failed>(bench.outbox);
  CHECK(failed.size() == 3);
  for (const auto& [node, message] : failed) CHECK(message.first_epoch == bench.first);
  CHECK_FALSE(bench.coordinator.has_jobs());
}

TEST_CASE("a plan that was refused is no decision for it, and the refusal is kept") {
  RunningCoordinator bench;
  const auto decision = [&] {
    return bench.coordinator.topology(bench.now).plans.at(0).outlook->decision;
  };
  const std::string begun = decision();
  CHECK(begun == "the job began with it");
  CHECK(bench.coordinator.topology(bench.now).plans[0].roots.empty());
  const std::uint32_t epoch = bench.ask({0});
  CHECK(decision() == begun);
  const auto stays = [](const std::string& planner) {
    return "the plan in force stays, because the next one (" + planner +
           "; an operator asked for it) was refused: ";
  };
  SECTION("by a node") {
    bench.say(0, PlanRefused{kKey, epoch, "node n0: no memory"});
    CHECK(decision() == stays("sharded") + "node n0: no memory");
    // The next plan that succeeds replaces this decision.
    const std::uint32_t next = bench.ask({2}) + 1;
    for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
      bench.say(node, Prepared{kKey, next, true, 64});
    CHECK(decision() == "an operator asked for it");
    CHECK(bench.coordinator.topology(bench.now).plans[0].roots == std::vector<api::NodeId>{2});
  }
  SECTION("by the planner") {
    bench.say(0, PlanRefused{kKey, epoch, "node n0: no memory"});
    bench.ask({9});
    CHECK(has(decision(), stays("star") + "the planner named node 9"));
  }
}

TEST_CASE("a node that is lost costs what it has a part in") {
  RunningCoordinator bench;
  const std::uint32_t epoch = bench.ask({0});
  CHECK(letters<Prepare>(bench.outbox).size() == 3);
  SECTION("of the plan to come: only that") {
    bench.coordinator.on_node_lost(0, "has been silent", false, bench.now);
    const auto answer = bench.answered();
    REQUIRE(answer);
    CHECK(answer->text == "the plan in force stays: node n0 has been silent");
    CHECK(bench.coordinator.has_jobs());
  }
  SECTION("of the plan in force: the job") {
    bench.coordinator.on_node_lost(1, "has been silent", false, bench.now);
    const auto answer = bench.answered();
    REQUIRE(answer);
    CHECK(answer->text == "the job is ended: node n1 has been silent");
    CHECK_FALSE(bench.coordinator.has_jobs());
  }
  SECTION("of a plan that has open rounds: the job; and of one that has ended: nothing") {
    bench.replan_without_node_0(epoch);
    const bool ended = GENERATE(false, true);
    for (const api::NodeId node : std::vector<api::NodeId>{0, 1, 2})
      if (ended) bench.say(node, PlanEnded{kKey, epoch});
    bench.coordinator.on_node_lost(0, "has been silent", false, bench.now);
    CHECK(bench.coordinator.has_jobs() == ended);
  }
}

TEST_CASE("nodes without ranks are told when a plan has ended, and when they may go") {
  RunningCoordinator bench;
  const std::uint32_t epoch = bench.ask({0});
  bench.replan_without_node_0(epoch);
  bench.outbox.letters.clear();
  bench.say(1, PlanEnded{kKey, epoch});
  CHECK(bench.outbox.letters.empty());
  const bool by_itself = GENERATE(false, true);
  if (by_itself) bench.say(0, PlanEnded{kKey, epoch});
  bench.say(2, PlanEnded{kKey, epoch});
  if (!by_itself) {
    const auto ends = letters<EndPlan>(bench.outbox);
    REQUIRE(ends.size() == 1);
    CHECK(ends[0].first == 0);
    CHECK(ends[0].second.epoch == epoch);
    bench.say(0, PlanEnded{kKey, epoch});
  }
  // The node is dismissed only now, because nodes that had not ended the plan before may have
  // needed its answers.
  const auto dismissed = letters<Dismiss>(bench.outbox);
  REQUIRE(dismissed.size() == 1);
  CHECK(dismissed[0].first == 0);
  CHECK(dismissed[0].second.first_epoch == bench.first);
}

TEST_CASE("one change at a time: the next one waits for the last rounds, or is refused") {
  RunningCoordinator bench;
  const std::uint32_t epoch = bench.ask();
  bench.say(2, Replan{kKey, 9, PlanKind::kStar, {2}});
  auto answer = bench.answered();
  REQUIRE(answer);
  CHECK(has(answer->text, "is being prepared, waiting for nodes n1 and n2; ask again"));
  for (const api::NodeId node : std::vector<api::NodeId>{1, 2})
    bench.say(node, Prepared{kKey, epoch, true, 64});
  REQUIRE(bench.answered()->committed);
  bench.say(1, PlanEnded{kKey, bench.first});

  bench.say(2, Replan{kKey, 9, PlanKind::kStar, {2}});
  CHECK(bench.outbox.letters.empty());
  SECTION("they end in time") {
    bench.say(2, PlanEnded{kKey, bench.first});
    CHECK(letters<Prepare>(bench.outbox).size() == 2);
  }
  SECTION("they do not") {
    bench.coordinator.tick(bench.now + kReplanWait - Duration::ms(1));
    CHECK(letters<ReplanAnswer>(bench.outbox).empty());
    CHECK(bench.coordinator.next_deadline() <= bench.now + kReplanWait);
    bench.coordinator.tick(bench.now + kReplanWait);
    answer = bench.answered();
    REQUIRE(answer);
    CHECK(has(answer->text,
              "is in force from round 64 on, waiting for the rounds before to end on "
              "node n2; ask again when the training has come that far"));
    CHECK(bench.coordinator.has_jobs());
  }
  SECTION("a third one comes") {
    bench.say(2, Replan{kKey, 9, PlanKind::kStar, {1}});
    CHECK(bench.answered());
  }
  SECTION("the job ends") {
    bench.say(1, Failed{kKey, bench.first, "x"});
    answer = bench.answered();
    REQUIRE(answer);
    CHECK(answer->text == "the job is ended: x");
  }
}
