// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Another plan for a job that runs, message by message, at a member: in order, late, twice, lost,
// refused.
#include <optional>
#include <string>
#include <vector>

#include "control/session/plan_change.h"
#include "tests/support/catch.h"
#include "tests/unit/session_bench.h"

using namespace gradplane;
using namespace gradplane::protocol;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

constexpr std::uint32_t kFirst = 5;

/// Another plan for the job of prepare(): rank 0 on this node (1), rank 1 on node 0.
Prepare further(std::uint32_t epoch) {
  Prepare m = prepare(0, epoch);
  m.first_epoch = kFirst;
  return m;
}

/// A member whose job runs under epoch 5.
struct RunningMember : MemberBench {
  RunningMember() {
    const std::uint32_t attempt = letters<Join>(outbox).at(0).second.attempt;
    member.on_message(prepare(attempt, kFirst), kNow);
    member.on_message(Commit{kKey, kFirst, 0}, kNow);
    outbox.letters.clear();
    outbox.actions.clear();
  }
  void prepare_6() {
    member.on_message(further(6), kNow);
    member.on_plan_prepared(kId, 6, 100);
    outbox.letters.clear();
    outbox.actions.clear();
  }
  /// Checks that the member ignores and counts a message.
  void ignores(const NodeMessage& message) {
    const std::uint64_t before = outbox.stale_plan_messages;
    outbox.actions.clear();
    member.on_message(message, kNow);
    CHECK(outbox.stale_plan_messages == before + 1);
    CHECK(outbox.letters.empty());
    REQUIRE(outbox.actions.size() == 1);
    CHECK(std::holds_alternative<LogLine>(outbox.actions[0]));
    outbox.actions.clear();
  }
  const std::uint32_t kId = job_id_of(kKey);
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the latest horizon wins, also where round numbers wrap") {
  const auto activation = [](const std::vector<std::optional<std::uint32_t>>& horizons) {
    api::Plan plan;
    plan.epoch = 2;
    for (api::NodeId node = 0; node < horizons.size(); ++node)
      plan.members.push_back({node, {node}});
    PlanChange change(plan, plan.members, Instant::never());
    for (api::NodeId node = 0; node < horizons.size(); ++node) {
      CHECK_FALSE(change.may_commit());
      CHECK(change.on_prepared(node, horizons[node]));
      CHECK_FALSE(change.on_prepared(node, horizons[node]));
    }
    REQUIRE(change.may_commit());
    change.commit();
    return change.activation_round();
  };
  CHECK(activation({64}) == 64);
  CHECK(activation({64, 79, 70}) == 79);
  CHECK(activation({0xfffffff8, 5, 0xfffffff0}) == 5);
  CHECK(activation({5, 0xfffffff8}) == 5);
  CHECK(activation({std::nullopt, 70, std::nullopt}) == 70);
}

TEST_CASE(
    "nodes without ranks hear once that all with ranks have ended a plan, and who leaves it") {
  api::Plan plan;
  plan.epoch = 2;
  plan.members = {{0, {0}}, {1, {1}}, {4, {}}};
  PlanChange change(plan, {{0, {0}}, {1, {1}}, {2, {}}, {3, {}}}, Instant::never());
  for (api::NodeId node = 0; node < 5; ++node) change.on_prepared(node, 64);
  change.commit();
  CHECK(change.leaving() == std::vector<api::NodeId>{2, 3});
  CHECK_FALSE(change.takes_ranks_out());
  CHECK(change.on_ended(1));
  CHECK(change.on_ended(2));
  CHECK_FALSE(change.take_ended_with_ranks());
  CHECK_FALSE(change.on_ended(4));
  CHECK(change.on_ended(0));
  CHECK(change.take_ended_with_ranks());
  CHECK(change.awaited() == std::set<api::NodeId>{3});
  CHECK(change.on_ended(3));
  CHECK_FALSE(change.take_ended_with_ranks());
  CHECK(change.done());
}

TEST_CASE("a plan takes ranks out when it lacks a node with ranks, or has it without them") {
  api::Plan plan;
  plan.epoch = 2;
  plan.members = {{0, {0}}, {1, {}}, {3, {3}}};
  const auto takes_ranks_out = [&plan](const std::vector<api::Member>& from) {
    return PlanChange(plan, from, Instant::never()).takes_ranks_out();
  };
  CHECK_FALSE(takes_ranks_out({}));
  CHECK_FALSE(takes_ranks_out({{0, {0}}, {2, {}}}));
  CHECK(takes_ranks_out({{0, {0}}, {1, {1}}}));
  CHECK(takes_ranks_out({{0, {0}}, {2, {2}}}));
}

TEST_CASE("a member answers a further plan when its engine has, and switches on commit") {
  RunningMember bench;
  bench.member.on_message(further(6), kNow);
  CHECK(bench.outbox.letters.empty());
  REQUIRE(bench.outbox.actions.size() == 1);
  const auto order = std::get<PreparePlan>(bench.outbox.actions[0]);
  CHECK(order.first_epoch == kFirst);
  CHECK(order.plan.epoch == 6);
  CHECK(order.packet_key == packet_key_of(bench.c.cluster_key, kKey, 6));
  bench.outbox.actions.clear();

  bench.member.on_plan_prepared(bench.kId, 6, 100);
  const auto prepared = letters<Prepared>(bench.outbox);
  REQUIRE(prepared.size() == 1);
  CHECK(prepared[0].second.has_horizon);
  CHECK(prepared[0].second.horizon == 100);
  CHECK(bench.member.views().at(0).epoch == kFirst);

  bench.member.on_message(Commit{kKey, 6, 120}, kNow);
  const auto commit = std::get<CommitPlan>(bench.outbox.actions.at(0));
  CHECK(commit.epoch == 6);
  CHECK(commit.activation_round == 120);
  CHECK(bench.member.views().at(0).epoch == 6);
  CHECK(bench.member.views().at(0).first_epoch == kFirst);
  CHECK_FALSE(bench.member.views().at(0).plan_change.empty());
  CHECK(count_actions<NotifyRank>(bench.outbox) == 0);

  bench.member.on_plan_ended(bench.kId, kFirst);
  const auto ended = letters<PlanEnded>(bench.outbox);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].second.epoch == kFirst);
  CHECK(bench.member.views().at(0).plan_change.empty());
  // The first epoch still names the job.
  bench.member.on_message(Finished{kKey, kFirst}, kNow);
  CHECK(count_actions<RemoveJob>(bench.outbox) == 1);
}

TEST_CASE("a member ignores and counts what comes twice, late or out of order about plans") {
  RunningMember bench;
  bench.ignores(prepare(0, kFirst));  // the first plan once more
  bench.ignores(Commit{kKey, kFirst, 0});
  bench.ignores(Commit{kKey, 6, 100});  // epoch 6 is not prepared
  bench.ignores(Abort{kKey, 6, "x"});
  bench.ignores(Abort{kKey, kFirst, "x"});
  bench.ignores(EndPlan{kKey, kFirst});  // this plan is in force
  bench.ignores(Dismiss{kKey, kFirst});
  bench.member.on_message(further(6), kNow);
  bench.ignores(further(6));
  bench.ignores(Commit{kKey, 6, 100});  // before this node has answered
  bench.ignores(Commit{kKey, 7, 100});
  bench.member.on_plan_prepared(bench.kId, 7, 1);  // another epoch
  bench.member.on_plan_prepared(bench.kId + 1, 6, 1);
  CHECK(bench.outbox.letters.empty());
  bench.member.on_plan_prepared(bench.kId, 6, 100);
  bench.member.on_plan_prepared(bench.kId, 6, 100);
  CHECK(letters<Prepared>(bench.outbox).size() == 1);
  bench.member.on_plan_refused(bench.kId, 6, "too late");
  CHECK(bench.outbox.letters.empty());
  bench.member.on_message(Commit{kKey, 6, 120}, kNow);
  bench.ignores(Commit{kKey, 6, 120});
  bench.ignores(Abort{kKey, 6, "x"});
  bench.ignores(further(6));
  bench.ignores(further(kFirst));
  bench.member.on_plan_ended(bench.kId, 6);  // this plan is in force
  bench.member.on_plan_ended(bench.kId, 0);
  CHECK(bench.outbox.letters.empty());
  bench.member.on_plan_ended(bench.kId, kFirst);
  bench.member.on_plan_ended(bench.kId, kFirst);
  CHECK(letters<PlanEnded>(bench.outbox).size() == 1);
}

TEST_CASE("a plan that is aborted is forgotten, and its epoch never comes again") {
  RunningMember bench;
  SECTION("before the engine has answered") {
    bench.member.on_message(further(6), kNow);
    bench.outbox.actions.clear();
    bench.member.on_message(Abort{kKey, 6, "x"}, kNow);
    CHECK(count_actions<AbortPlan>(bench.outbox) == 1);
    bench.member.on_plan_prepared(bench.kId, 6, 100);
    bench.member.on_plan_refused(bench.kId, 6, "x");
    CHECK(bench.outbox.letters.empty());
  }
  SECTION("after that") {
    bench.prepare_6();
    bench.member.on_message(Abort{kKey, 6, "x"}, kNow);
    CHECK(count_actions<AbortPlan>(bench.outbox) == 1);
  }
  bench.ignores(Commit{kKey, 6, 120});
  bench.ignores(further(6));
  CHECK(bench.member.views().at(0).epoch == kFirst);
  bench.member.on_message(further(7), kNow);
  CHECK(count_actions<PreparePlan>(bench.outbox) == 1);
}

TEST_CASE("a member whose engine cannot put a committed plan in force fails the job") {
  RunningMember bench;
  bench.prepare_6();
  bench.member.on_message(Commit{kKey, 6, 120}, kNow);
  bench.outbox.actions.clear();
  bench.member.on_plan_refused(bench.kId, 6, "the node has passed its round");
  const auto failed = letters<Failed>(bench.outbox);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].second.first_epoch == kFirst);
  CHECK(failed[0].second.reason ==
        "node n1: epoch 6 is in force, and the node has passed its round");
  CHECK(count_actions<RemoveJob>(bench.outbox) == 1);
  CHECK_FALSE(bench.member.has_jobs());
}

TEST_CASE("a member tells its engine once that a plan has ended at all ranks") {
  RunningMember bench;
  bench.prepare_6();
  bench.member.on_message(Commit{kKey, 6, 120}, kNow);
  bench.outbox.actions.clear();
  if (GENERATE(false, true)) bench.member.on_plan_ended(bench.kId, kFirst);
  bench.outbox.letters.clear();
  bench.member.on_message(EndPlan{kKey, kFirst}, kNow);
  REQUIRE(bench.outbox.actions.size() == 1);
  CHECK(std::get<EndOlderPlan>(bench.outbox.actions[0]).epoch == kFirst);
  bench.ignores(EndPlan{kKey, kFirst});
}

TEST_CASE("a member refuses a plan that it cannot carry out, and its job goes on") {
  RunningMember bench;
  const auto reason = [&](const Prepare& m) {
    bench.outbox.actions.clear();
    bench.member.on_message(m, kNow);
    CHECK(count_actions<PreparePlan>(bench.outbox) == 0);
    const auto refused = letters<PlanRefused>(bench.outbox);
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].second.epoch == m.epoch);
    CHECK(bench.member.has_jobs());
    return refused[0].second.reason;
  };
  SECTION("no memory") {
    bench.member.on_message(further(6), kNow);
    bench.member.on_plan_refused(bench.kId, 6, "not enough memory");
    const auto refused = letters<PlanRefused>(bench.outbox);
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].second.reason == "node n1: not enough memory");
    bench.outbox.actions.clear();
    bench.member.on_message(further(7), kNow);
    CHECK(count_actions<PreparePlan>(bench.outbox) == 1);
  }
  SECTION("another is being prepared") {
    bench.member.on_message(further(6), kNow);
    CHECK(has(reason(further(7)), "epoch 6 is being prepared here already"));
  }
  SECTION("the one before has open rounds") {
    bench.prepare_6();
    bench.member.on_message(Commit{kKey, 6, 120}, kNow);
    CHECK(has(reason(further(7)), "the last rounds of epoch 5 have not ended here yet"));
    bench.member.on_plan_ended(bench.kId, kFirst);
    bench.outbox.letters.clear();
    bench.member.on_message(further(8), kNow);
    CHECK(count_actions<PreparePlan>(bench.outbox) == 1);
  }
  SECTION("other settings, ranks, nodes, bytes") {
    Prepare other = further(6);
    other.settings.round_bytes = 65536;
    CHECK(has(reason(other), "make the files the same"));
    other = prepare(0, 6, 1);
    other.first_epoch = kFirst;
    CHECK(has(reason(other), "a rank came or left"));
    other = further(6);
    other.world_size = 3;
    CHECK(has(reason(other), "the number of ranks"));
    other = further(6);
    other.plan = further(7).plan;
    CHECK(has(reason(other), "of another epoch"));
    other.plan.clear();
    CHECK(!reason(other).empty());
  }
  SECTION("another life of the job") {
    Prepare other = further(7);
    other.first_epoch = 4;
    CHECK(has(reason(other), "under way here already"));
  }
}

namespace {

/// A plan for node 2, which has no rank. It is the root or not a member.
Prepare with_us(std::uint32_t epoch, bool ours) {
  api::Plan plan;
  plan.epoch = epoch;
  plan.members = {{0, {0}}, {1, {1}}};
  if (ours) plan.members.push_back({2, {}});
  const api::NodeId root = ours ? 2 : 0;
  plan.trees = {{1, root, {ours ? root : api::kNoNode, root}}};
  if (ours) plan.trees[0].parent.push_back(api::kNoNode);
  return Prepare{kKey, 0, kFirst, epoch, 2, {}, "job", encode_plan(plan).value()};
}

}  // namespace

TEST_CASE("a node gets a part in a job that runs, and gives it up again") {
  const SessionConfig c = config(2, 0);
  Outbox outbox;
  Member member(c, outbox);
  member.on_message(with_us(8, true), kNow);
  REQUIRE(outbox.actions.size() == 1);
  const auto job = std::get<InstallJob>(outbox.actions[0]);
  CHECK(job.joins());
  CHECK(job.first_epoch == kFirst);
  CHECK(job.local_ranks.empty());
  outbox.actions.clear();
  CHECK(outbox.letters.empty());  // the engine has not answered
  SECTION("the engine cannot take it up, and says so before it has answered") {
    member.on_job_error(job_id_of(kKey), "no memory");
    CHECK(letters<PlanRefused>(outbox).size() == 1);
    CHECK_FALSE(member.has_jobs());
    return;
  }
  member.on_plan_prepared(job_id_of(kKey), 8, 77);
  const auto prepared = letters<Prepared>(outbox);
  REQUIRE(prepared.size() == 1);
  CHECK_FALSE(prepared[0].second.has_horizon);
  SECTION("the plan does not come") {
    member.on_message(Abort{kKey, 8, "x"}, kNow);
    CHECK(count_actions<RemoveJob>(outbox) == 1);
    CHECK_FALSE(member.has_jobs());
  }
  SECTION("the engine cannot take it up") {
    member.on_job_error(job_id_of(kKey), "no memory");
    const auto refused = letters<PlanRefused>(outbox);
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].second.epoch == 8);
    CHECK_FALSE(member.has_jobs());
  }
  SECTION("it comes, and another one without us") {
    member.on_message(Commit{kKey, 8, 64}, kNow);
    const auto commit = std::get<CommitPlan>(outbox.actions.at(0));
    CHECK(commit.epoch == 8);
    CHECK(commit.activation_round == 64);
    outbox.actions.clear();
    member.on_message(with_us(9, false), kNow);
    CHECK(count_actions<PreparePlan>(outbox) == 1);
    member.on_plan_prepared(job_id_of(kKey), 9, 200);
    member.on_message(Commit{kKey, 9, 200}, kNow);
    CHECK(count_actions<RemoveJob>(outbox) == 0);
    outbox.letters.clear();
    member.on_message(Dismiss{kKey, kFirst}, kNow);  // the node's last round is open
    member.on_message(EndPlan{kKey, 9}, kNow);
    CHECK(outbox.stale_plan_messages == 2);
    outbox.actions.clear();
    member.on_message(EndPlan{kKey, 8}, kNow);
    REQUIRE(outbox.actions.size() == 1);
    CHECK(std::get<EndOlderPlan>(outbox.actions[0]).epoch == 8);
    CHECK(std::get<EndOlderPlan>(outbox.actions[0]).first_epoch == kFirst);
    outbox.actions.clear();
    member.on_plan_ended(job_id_of(kKey), 8);
    CHECK(letters<PlanEnded>(outbox).size() == 1);
    // Other nodes may lack its last acks.
    CHECK(count_actions<RemoveJob>(outbox) == 0);
    CHECK(has(member.views().at(0).plan_change, "has left the job"));
    member.on_message(Dismiss{kKey, 8}, kNow);  // another job
    CHECK(member.has_jobs());
    member.on_message(Dismiss{kKey, kFirst}, kNow);
    CHECK(count_actions<RemoveJob>(outbox) == 1);
    CHECK_FALSE(member.has_jobs());
  }
}
