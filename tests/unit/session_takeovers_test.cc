// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Tables of reports that members send about a job, and the state that the next coordinator derives
// from them.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/takeover_bench.h"

using namespace gradplane;
using namespace gradplane::protocol;
using namespace gradplane::session;
using namespace gradplane::session::testing;

TEST_CASE("a job that runs is known when all members have reported it") {
  TakeoverBench bench;
  bench.begin(TakeoverBench::report(kFirst, 0));
  CHECK(bench.told<AskReport>() == Nodes{2});
  CHECK(bench.coordinator.views().empty());
  bench.say(2, TakeoverBench::report(kFirst, 0));
  REQUIRE(bench.coordinator.views().size() == 1);
  const JobView view = bench.coordinator.views()[0];
  CHECK(view.state == JobState::kReady);
  CHECK(view.epoch == kFirst);
  CHECK(view.user == 1000);
  CHECK(view.ranks.size() == 2);
  CHECK(bench.told<Commit>().empty());
  SECTION("and goes on: it ends when all ranks have left") {
    bench.say(1, Leave{kKey, kFirst, 0, true});
    bench.say(2, Leave{kKey, kFirst, 1, true});
    CHECK(bench.told<Finished>() == Nodes{1, 2});
  }
  SECTION("and its next epoch is larger than all that were") {
    bench.say(1, Replan{kKey, 1, PlanKind::kStar, {2}});
    const auto prepares = letters<Prepare>(bench.outbox);
    REQUIRE(prepares.size() == 2);
    CHECK(prepares[0].second.epoch > kFirst);
  }
}

TEST_CASE("what comes before all have reported counts afterwards") {
  TakeoverBench bench;
  bench.begin(TakeoverBench::report(kFirst, 0));
  SECTION("a rank that has left") {
    bench.say(1, Leave{kKey, kFirst, 0, true});
    bench.say(2, TakeoverBench::report(kFirst, 0));
    bench.say(2, Leave{kKey, kFirst, 1, true});
    CHECK(bench.told<Finished>() == Nodes{1, 2});
  }
  SECTION("a member that cannot go on") {
    bench.say(1, Failed{kKey, kFirst, "round 7 stalls"});
    CHECK(bench.told<Failed>() == Nodes{1});
    CHECK_FALSE(bench.coordinator.has_jobs());
  }
}

TEST_CASE("a plan that one member has committed is committed on all") {
  TakeoverBench bench;
  const bool second_is_behind = GENERATE(true, false);
  const Report behind = TakeoverBench::report(kFirst, kNext);
  const Report ahead = TakeoverBench::report(kNext, 0, kFirst);
  bench.begin(second_is_behind ? ahead : behind);
  bench.say(2, second_is_behind ? behind : ahead);
  if (!second_is_behind) bench.tell_plan(2, kNext);
  CHECK(bench.told<Abort>().empty());
  const auto commits = letters<Commit>(bench.outbox);
  REQUIRE(commits.size() == 1);
  CHECK(commits[0].first == (second_is_behind ? 2 : 1));
  CHECK(commits[0].second.epoch == kNext);
  CHECK(commits[0].second.activation_round == 700);
  INFO("the plan before has to end on both");
  CHECK(bench.coordinator.views().at(0).plan_change.find("waiting for") != std::string::npos);
  bench.say(1, PlanEnded{kKey, kFirst});
  bench.say(2, PlanEnded{kKey, kFirst});
  CHECK(bench.coordinator.views().at(0).plan_change.empty());
}

TEST_CASE("a plan that nobody has committed is aborted, and the one in force stays") {
  TakeoverBench bench;
  bench.begin(TakeoverBench::report(kFirst, kNext));
  const bool on_both = GENERATE(true, false);
  bench.say(2, TakeoverBench::report(kFirst, on_both ? kNext : 0));
  CHECK(bench.told<Abort>().contains(1));
  CHECK(bench.told<Commit>().empty());
  CHECK(bench.told<Failed>().empty());
  CHECK(bench.coordinator.views().at(0).epoch == kFirst);
  CHECK(bench.coordinator.views().at(0).plan_change.empty());
}

TEST_CASE("a job that was beginning begins") {
  TakeoverBench bench;
  SECTION("the second member had prepared it as well") {
    bench.begin(TakeoverBench::report(0, kFirst));
    bench.say(2, TakeoverBench::report(0, kFirst));
    CHECK(bench.told<Prepare>().empty());
    CHECK(bench.told<Commit>() == Nodes{1, 2});
  }
  SECTION("it had not: its rank waits") {
    const Join join{kKey, 9, 1000, 2, {1}, "job"};
    const bool early = GENERATE(true, false);
    if (early) bench.say(2, join);
    bench.begin(TakeoverBench::report(0, kFirst));
    if (!early) bench.say(2, join);
    Report nothing;
    nothing.key = kKey;
    nothing.first_epoch = kFirst;
    bench.say(2, nothing);
    CHECK(bench.told<Commit>().empty());
    const auto prepares = letters<Prepare>(bench.outbox);
    REQUIRE(prepares.size() == 1);
    CHECK(prepares[0].first == 2);
    CHECK(prepares[0].second.attempt == 9);
    CHECK(prepares[0].second.epoch == kFirst);
    bench.say(2, Prepared{kKey, kFirst, false, 0});
    CHECK(bench.told<Commit>() == Nodes{1, 2});
  }
  SECTION("it was committed on the first one") {
    bench.begin(TakeoverBench::report(0, kFirst));
    bench.say(1, TakeoverBench::report(kFirst, 0));
    bench.say(2, TakeoverBench::report(0, kFirst));
    CHECK(bench.told<Commit>() == Nodes{2});
  }
}

TEST_CASE("a job one of whose members is lost or has ended it ends on the others, by name") {
  TakeoverBench bench;
  bench.begin(TakeoverBench::report(kFirst, 0));
  std::string reason;
  SECTION("lost") {
    bench.coordinator.on_node_lost(2, "has been silent for 3.0 s", false, bench.now);
    reason = "node n2 has been silent for 3.0 s";
  }
  SECTION("ended") {
    Report nothing;
    nothing.key = kKey;
    nothing.first_epoch = kFirst;
    bench.say(2, nothing);
    reason = "node n2 no longer has the job";
  }
  SECTION("it lives, and says nothing") {
    bench.now = bench.coordinator.next_deadline();
    bench.coordinator.tick(bench.now);
    reason = "node n2 did not say what it has of the job when its coordinator was lost";
  }
  const auto failed = letters<Failed>(bench.outbox);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].first == 1);
  CHECK(failed[0].second.reason == reason);
  CHECK_FALSE(bench.coordinator.has_jobs());
}

TEST_CASE("a member whose contact of earlier times ends is asked again") {
  TakeoverBench bench;
  bench.begin(TakeoverBench::report(kFirst, 0));
  bench.outbox.letters.clear();
  const auto lose = [&](api::NodeId node) {
    bench.coordinator.on_node_lost(node, "was restarted, or had lost contact", true, bench.now);
  };
  lose(2);
  CHECK(bench.told<AskReport>() == std::set<api::NodeId>{2});
  CHECK(bench.told<Failed>().empty());
  SECTION("and the job is known when it has reported") {
    bench.say(2, TakeoverBench::report(kFirst, 0));
    CHECK(bench.coordinator.views().at(0).epoch == kFirst);
  }
  SECTION("and one that has reported before is lost") {
    lose(1);
    CHECK_FALSE(bench.coordinator.has_jobs());
  }
}

TEST_CASE("a node that reports a job when it is known is told what it is to it") {
  TakeoverBench bench;
  bench.begin(TakeoverBench::report(kFirst, 0));
  bench.say(2, TakeoverBench::report(kFirst, 0));
  bench.outbox.letters.clear();
  Report late = TakeoverBench::report(kFirst, 0);
  SECTION("a member: nothing new") {
    bench.say(2, late);
    CHECK(bench.outbox.letters.empty());
  }
  SECTION("a member that has prepared a plan of the coordinator that was lost") {
    late.next_epoch = kNext;
    bench.say(2, late);
    const auto aborts = letters<Abort>(bench.outbox);
    REQUIRE(aborts.size() == 1);
    CHECK(aborts[0].first == 2);
    CHECK(aborts[0].second.epoch == kNext);
  }
  SECTION("a node that has left by an earlier plan") {
    late.has_part = false;
    bench.say(0, late);
    CHECK(bench.told<Dismiss>() == Nodes{0});
  }
  SECTION("a node that was to join") {
    bench.say(0, TakeoverBench::report(0, kNext));
    CHECK(bench.told<Failed>() == Nodes{0});
  }
  SECTION("a node with an earlier run of it") {
    late.first_epoch = 7;
    bench.say(2, late);
    const auto failed = letters<Failed>(bench.outbox);
    REQUIRE(failed.size() == 1);
    CHECK(failed[0].second.first_epoch == 7);
  }
}

TEST_CASE("tables that some members have go to the others as they are") {
  TakeoverBench bench;
  bench.c.resolve_bounds = resolve_for_test;
  const auto part_of = [](std::uint32_t bucket) {
    api::BucketBounds table{bucket, ElementType::kFloat32, 10, {}};
    table.tensors.push_back({"t", 0, 10, 0.25F, api::BoundReason::kPattern, "by the first"});
    return encode_table(table).at(0);
  };
  Report has_two = TakeoverBench::report(kFirst, 0);
  has_two.table_parts = 2;
  Report has_one = TakeoverBench::report(kFirst, 0);
  has_one.table_parts = 1;
  bench.begin(has_one);
  bench.say(2, has_two);
  CHECK(bench.told<AskTables>() == Nodes{2});
  bench.say(1, DescribeBucket{kKey, kFirst, part_of(1)});
  INFO("only a redraw is due");
  CHECK(bench.coordinator.next_deadline() == bench.now + bench.c.redraw.every);
  bench.say(2, BucketBounds{kKey, kFirst, 0.5F, part_of(1)});
  bench.say(2, BucketBounds{kKey, kFirst, 0.5F, part_of(2)});
  bench.outbox.letters.clear();
  const auto room = [](api::NodeId) { return true; };
  CHECK(bench.coordinator.send_table_parts(room));
  CHECK_FALSE(bench.coordinator.send_table_parts(room));
  const auto sent = letters<BucketBounds>(bench.outbox);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].first == 1);
  CHECK(sent[0].second.part == part_of(2));
  CHECK(sent[0].second.learn_budget == 0.5F);
  INFO("what is described again is not resolved again, and what is new is");
  bench.say(1, DescribeBucket{kKey, kFirst, part_of(2)});
  bench.say(1, DescribeBucket{kKey, kFirst, part_of(3)});
  bench.now = bench.coordinator.next_deadline();
  bench.coordinator.tick(bench.now);
  while (bench.coordinator.send_table_parts(room)) continue;
  const auto fresh = letters<BucketBounds>(bench.outbox);
  REQUIRE(fresh.size() == 2);
  for (const auto& [node, bounds] : fresh)
    CHECK(decode_table_part(bounds.part).value().bucket == 3);
}

TEST_CASE("a plan that its job cannot have ends the job, whoever sends it") {
  TakeoverBench bench;
  const bool runs = GENERATE(true, false);
  std::string reason;
  SECTION("the check of plans refuses it") {
    bench.c.check_plan = [](const api::Plan&) -> Status { return Error{"a cycle"}; };
    reason = "node n1 has a plan that cannot be";
  }
  SECTION("it has a rank that the job does not have") {
    bench.members = {{1, {0}}, {2, {77}}};
    reason = "the plan that its members have names rank 77, and the job has only 2 ranks";
  }
  SECTION("it has no ranks") {
    bench.members = {{1, {}}, {2, {}}};
    reason = "the plan that its members have names no ranks";
  }
  const Report report = runs ? TakeoverBench::report(kFirst, 0) : TakeoverBench::report(0, kFirst);
  bench.begin(report);
  if (bench.coordinator.has_jobs()) bench.say(2, report);
  const auto failed = letters<Failed>(bench.outbox);
  REQUIRE_FALSE(failed.empty());
  CHECK(failed[0].first == 1);
  CHECK(failed[0].second.reason == reason);
  CHECK_FALSE(bench.coordinator.has_jobs());
}

TEST_CASE("a node that does not send its plan is named when the time is over") {
  TakeoverBench bench;
  bench.say(1, TakeoverBench::report(kFirst, 0));
  bench.now = bench.coordinator.next_deadline();
  bench.coordinator.tick(bench.now);
  const auto failed = letters<Failed>(bench.outbox);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].second.reason ==
        "node n1 did not say what it has of the job when its coordinator was lost");
}

TEST_CASE("the first redraw after a takeover waits, and asks as the file says") {
  TakeoverBench bench;
  bench.coordinator.planner_works = false;
  bench.begin(TakeoverBench::report(kNext, 0));
  bench.say(2, TakeoverBench::report(kNext, 0));
  REQUIRE(bench.coordinator.has_jobs());
  CHECK(bench.coordinator.next_deadline() == bench.now + bench.c.redraw.every);
  bench.now = bench.coordinator.next_deadline();
  bench.coordinator.tick(bench.now);
  REQUIRE(bench.coordinator.orders.size() == 1);
  CHECK_FALSE(bench.coordinator.orders[0].input.choice);
}

TEST_CASE("only tables of nodes with a part in the plan are fetched") {
  TakeoverBench bench;
  bench.members = {{1, {0}}, {2, {1}}};
  Report gone = TakeoverBench::report(kFirst, 0);
  gone.has_part = false;
  gone.table_parts = 9;
  bench.say(0, gone);
  bench.tell_plan(0, kFirst);
  Report member = TakeoverBench::report(kFirst, 0);
  member.table_parts = 1;
  bench.say(1, member);
  bench.say(2, member);
  CHECK(bench.told<AskTables>() == Nodes{1});
}

TEST_CASE("reports cannot use up epochs or slots") {
  TakeoverBench bench;
  SECTION("epochs") {
    Report last = TakeoverBench::report(kFirst, 0);
    last.newest_epoch = UINT32_MAX - 1;
    bench.say(1, last);
    CHECK_FALSE(bench.coordinator.has_jobs());
  }
  SECTION("slots") {
    Report other = TakeoverBench::report(kFirst, 0);
    for (std::uint16_t i = 0; i < kMaxJobs; ++i) {
      other.key = key_number(static_cast<std::uint8_t>(2 + i));
      bench.say(1, other);
    }
    CHECK(bench.told<Failed>().empty());
    INFO("neither another one nor one that begins has room");
    bench.say(1, TakeoverBench::report(kFirst, 0));
    CHECK(bench.told<Failed>() == Nodes{1});
    bench.join(2, 1, {1});
    CHECK(bench.told<Refused>() == Nodes{2});
  }
}
