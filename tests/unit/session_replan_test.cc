// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Another plan for a job that runs, on a whole cluster: no rank stops, and each round has one plan.
#include <string>
#include <vector>

#include "tests/property/session_network.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

const protocol::JobKey kKey = key_number(1);
const std::uint32_t kId = protocol::job_id_of(kKey);
const PlanChoice kStarAt1{PlanKind::kStar, {1}};
const PlanChoice kSharded{PlanKind::kSharded, {}};
constexpr Duration kSoon = Duration::seconds(1);

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

/// A job of ranks 0, 1 and 2 on nodes 0, 1 and 2, which is ready. Node 3 has no rank. Node 0
/// coordinates.
struct Bench {
  explicit Bench(std::uint32_t first_round = 0, bool elastic = false)
      : cluster(1, 4, 0, sharded_planner(), good_, elastic) {
    cluster.first_round = first_round;
    for (std::uint16_t rank = 0; rank < 3; ++rank)
      handles.push_back(cluster.attach(rank, rank, 3, kKey));
    REQUIRE(cluster.run(kSoon, [&] { return cluster.all_ranks(State::kReady); }));
  }
  const AnswerReplan& answer_to(AskerHandle asker) {
    REQUIRE(asker != 0);
    REQUIRE(cluster.run(Duration::seconds(20), [&] { return cluster.answers.contains(asker); }));
    return cluster.answers[asker];
  }
  void open_rounds(std::uint32_t count) {
    for (api::NodeId node = 0; node < 4; ++node) cluster.open_rounds(node, count);
    cluster.run(kSoon);
  }
  std::uint32_t epoch() { return cluster.hosts[0].manager->jobs().at(0).epoch; }
  Rounds& rounds(api::NodeId node) { return cluster.hosts[node].rounds.at(kId); }

  static Status good_(const api::Plan&) { return Nothing{}; }
  Cluster cluster;
  std::vector<RankHandle> handles;
};

}  // namespace

TEST_CASE("a job changes its plan while it runs, twice, and back") {
  const std::uint32_t first_round = GENERATE(0U, 0xffffffc0U);  // numbers wrap in between
  Bench bench(first_round);
  const std::uint32_t first = bench.epoch();
  bench.cluster.open_rounds(0, 10);
  bench.cluster.open_rounds(1, 25);
  bench.cluster.open_rounds(2, 17);
  const AnswerReplan& answer = bench.answer_to(bench.cluster.replan(1, kId, kStarAt1));
  CHECK(answer.committed);
  CHECK(answer.epoch == first + 1);
  CHECK(answer.activation_round == first_round + 25 + 64);
  CHECK(answer.text == "star, root n1; before: sharded, roots n0, n1 and n2");
  bench.cluster.run(kSoon);
  for (api::NodeId node = 0; node < 3; ++node) {
    const JobView view = bench.cluster.hosts[node].manager->jobs().at(0);
    CHECK(view.epoch == first + 1);
    CHECK(view.plan_kind == PlanKind::kStar);
    CHECK_FALSE(view.plan_change.empty());
    CHECK(bench.rounds(node).epoch == first);  // rounds of the plan before are still to come
  }
  bench.open_rounds(200);
  for (api::NodeId node = 0; node < 3; ++node) {
    CHECK(bench.rounds(node).epoch == first + 1);
    CHECK(bench.cluster.hosts[node].manager->jobs().at(0).plan_change.empty());
  }
  const AnswerReplan& back = bench.answer_to(bench.cluster.replan(2, kId, kSharded));
  CHECK(back.committed);
  bench.open_rounds(200);
  CHECK(bench.rounds(2).epoch == first + 2);
  CHECK(bench.cluster.epoch_of_round.at(first).size() > 400);
  CHECK(bench.cluster.all_ranks(State::kReady));
  for (const RankHandle handle : bench.handles) bench.cluster.detach(handle, true);
  bench.cluster.run(kSoon);
  for (const Host& host : bench.cluster.hosts) CHECK(host.installed.empty());
}

TEST_CASE("a node without ranks gets a part, with the bounds of all buckets, and gives it up") {
  Bench bench;
  bench.cluster.describe(bench.handles[0], 1, 500, 100);
  bench.cluster.run(kSoon);
  REQUIRE(bench.cluster.hosts[1].bounds.at(kId).size() == 1);
  const AskerHandle asker = bench.cluster.replan(0, kId, {PlanKind::kStar, {3}});
  CHECK(bench.answer_to(asker).committed);
  bench.cluster.run(kSoon);
  REQUIRE(bench.cluster.hosts[3].installed.contains(kId));
  CHECK(bench.cluster.hosts[3].bounds.at(kId).size() == 1);
  bench.cluster.describe(bench.handles[0], 2, 5);
  bench.cluster.run(kSoon);
  for (api::NodeId node = 0; node < 4; ++node)
    CHECK(bench.cluster.hosts[node].bounds.at(kId).size() == 2);
  bench.open_rounds(100);
  CHECK(bench.rounds(3).next == bench.rounds(0).next + 64);  // node 3 began at the activation round

  // The operator asks the node that the plan drops.
  CHECK(bench.answer_to(bench.cluster.replan(3, kId, kStarAt1)).committed);
  bench.cluster.run(kSoon);
  CHECK(bench.cluster.hosts[3].installed.contains(kId));
  bench.open_rounds(300);
  CHECK_FALSE(bench.cluster.hosts[3].installed.contains(kId));
  CHECK(bench.cluster.hosts[3].manager->jobs().empty());
  bench.cluster.crash(3);
  bench.cluster.run(Duration::seconds(10));
  CHECK(bench.cluster.all_ranks(State::kReady));
  // Node 3 comes back and is told everything again. Only now the coordinator learns that the node
  // was away, so the first request fails.
  bench.cluster.start(3);
  CHECK(has(bench.answer_to(bench.cluster.replan(0, kId, {PlanKind::kStar, {3}})).text,
            "node n3 was restarted"));
  CHECK(bench.answer_to(bench.cluster.replan(0, kId, {PlanKind::kStar, {3}})).committed);
  bench.cluster.run(kSoon);
  CHECK(bench.cluster.hosts[3].bounds.at(kId).size() == 2);
}

TEST_CASE("whoever cannot prepare is named, and rounds go on under the plan in force") {
  Bench bench;
  const std::uint32_t epoch = bench.epoch();
  std::string reason;
  SECTION("refused") {
    bench.cluster.hosts[2].readiness = Readiness::kRefuses;
    reason = "node n2: no memory for a second plan";
  }
  SECTION("not answered") {
    bench.cluster.hosts[1].readiness = Readiness::kSilent;
    bench.cluster.hosts[2].readiness = Readiness::kSilent;
    reason = "nodes n1 and n2 do not answer the plan";
  }
  const AnswerReplan& answer = bench.answer_to(bench.cluster.replan(1, kId, kStarAt1));
  CHECK_FALSE(answer.committed);
  CHECK(answer.text == "the plan in force stays: " + reason);
  CHECK(bench.epoch() == epoch);
  bench.cluster.run(kSoon);
  bench.open_rounds(200);
  for (api::NodeId node = 0; node < 3; ++node) {
    CHECK(bench.rounds(node).next == 200);  // beyond the horizon of the aborted plan
    CHECK(bench.rounds(node).epoch == epoch);
  }
  for (Host& host : bench.cluster.hosts) host.readiness = Readiness::kReady;
  CHECK(bench.answer_to(bench.cluster.replan(1, kId, kStarAt1)).committed);
}

TEST_CASE("between prepare and commit a node goes on up to its horizon and no further") {
  Bench bench;
  bench.cluster.hosts[2].readiness = Readiness::kSilent;
  const AskerHandle asker = bench.cluster.replan(1, kId, kStarAt1);
  bench.cluster.run(kSoon);
  bench.open_rounds(1000);
  CHECK(bench.rounds(0).next == 64);
  CHECK(bench.rounds(1).next == 64);
  CHECK_FALSE(bench.answer_to(asker).committed);
  bench.cluster.run(kSoon);
  bench.open_rounds(1000);
  CHECK(bench.rounds(0).next == 1064);
}

TEST_CASE(
    "what ends a job while its plan changes takes both plans, and whoever asked hears of it") {
  Bench bench;
  const bool prepared = GENERATE(false, true);
  if (!prepared) bench.cluster.hosts[2].readiness = Readiness::kSilent;
  const AskerHandle asker = bench.cluster.replan(1, kId, kStarAt1);
  bench.cluster.run(kSoon);
  SECTION("a rank dies") {
    bench.cluster.detach(bench.handles[2], false);
  }
  SECTION("a round stalls") {
    bench.cluster.hosts[2].manager->on_job_error(kId, "round 7 stalls", bench.cluster.now);
  }
  SECTION("a member is lost") {
    bench.cluster.crash(2);
  }
  SECTION("the coordinator is lost") {
    bench.cluster.crash(0);
  }
  bench.cluster.run(Duration::seconds(10));
  for (const Host& host : bench.cluster.hosts) {
    CHECK(host.installed.empty());
    CHECK(host.rounds.empty());
  }
  const AnswerReplan& answer = bench.answer_to(asker);
  CHECK(answer.committed == prepared);
}

TEST_CASE("a question that makes no sense is answered at once, and says why") {
  Bench bench;
  CHECK(bench.cluster.replan(3, kId, kStarAt1) == 0);
  CHECK(has(bench.cluster.refusal, "has no part on node n3; ask a daemon whose"));
  const RankHandle waiting = bench.cluster.attach(3, 0, 2, key_number(2));
  bench.cluster.run(kSoon);
  REQUIRE(bench.cluster.ranks[waiting].state == State::kWaiting);
  const std::uint32_t other = protocol::job_id_of(key_number(2));
  CHECK(has(bench.answer_to(bench.cluster.replan(3, other, kStarAt1)).text, "it has no plan yet"));
  CHECK(has(bench.answer_to(bench.cluster.replan(1, kId, {PlanKind::kStar, {9}})).text,
            "the planner named node 9, which is not there"));
  bench.cluster.detach(bench.handles[1], true);
  bench.cluster.run(kSoon);
  CHECK(has(bench.answer_to(bench.cluster.replan(0, kId, kSharded)).text, "leaving"));
  for (std::size_t i = 0; i <= kMaxReplanQuestions; ++i) {
    bench.cluster.cut = [](api::NodeId, api::NodeId) { return true; };
    const bool taken = bench.cluster.replan(2, kId, kSharded) != 0;
    CHECK(taken == (i < kMaxReplanQuestions));
  }
  CHECK(has(bench.cluster.refusal, "has asked for 16 new plans"));
  bench.cluster.run(Duration::seconds(20));
  CHECK(bench.cluster.open_questions.empty());
}

TEST_CASE("the ranks of a node leave a job that runs, and join it again") {
  Bench bench(0xffffffa0U, true);
  const std::uint32_t first = bench.epoch();
  bench.cluster.describe(bench.handles[0], 1, 5);
  bench.cluster.run(kSoon);
  bench.open_rounds(10);
  const PlanChoice without{PlanKind::kStar, {1}, {2}};
  const AnswerReplan left = bench.answer_to(bench.cluster.replan(0, kId, without));
  REQUIRE(left.committed);
  bench.cluster.run(kSoon);
  CHECK(bench.cluster.all_ranks(State::kReady));  // rank 2 takes part in the rounds before
  for (api::NodeId node = 0; node < 2; ++node) bench.cluster.open_rounds(node, 300);
  bench.cluster.run(kSoon);
  // No node begins a round without rank 2 until node 2 has ended the rounds before.
  CHECK(bench.rounds(0).next == left.activation_round);
  bench.open_rounds(200);
  bench.open_rounds(100);
  CHECK(bench.rounds(0).next == left.activation_round + 100);
  RankLog& gone = bench.cluster.ranks[bench.handles[2]];
  CHECK(gone.state == State::kFailed);
  CHECK(gone.reason == "the job goes on without the ranks of node n2 from round " +
                           std::to_string(left.activation_round) + " on");
  CHECK_FALSE(bench.cluster.hosts[2].installed.contains(kId));
  CHECK(bench.cluster.hosts[0].manager->jobs().at(0).reason == "goes on without rank 2");
  bench.cluster.detach(bench.handles[2], false);  // the job goes on
  bench.cluster.run(kSoon);
  CHECK(bench.rounds(0).epoch == first + 1);

  const RankHandle again = bench.cluster.attach(2, 2, 3, kKey);
  REQUIRE(again != 0);
  bench.cluster.run(Duration::ms(100));
  CHECK(bench.cluster.ranks[again].state == State::kWaiting);
  bench.cluster.run(kSoon * 2);
  CHECK(bench.cluster.all_ranks(State::kReady));
  CHECK(bench.cluster.ranks[again].epoch == first);
  CHECK(bench.rounds(2).epoch == first + 2);
  CHECK(bench.rounds(2).next == bench.rounds(0).next + 64);
  CHECK(bench.cluster.hosts[2].bounds.at(kId).size() == 1);
  bench.open_rounds(200);
  CHECK(bench.rounds(0).epoch == first + 2);
  CHECK(bench.cluster.hosts[0].manager->jobs().at(0).plan_kind == PlanKind::kStar);
  for (const RankHandle rank : {bench.handles[0], bench.handles[1], again})
    bench.cluster.detach(rank, true);
  bench.cluster.run(kSoon);
  for (const Host& host : bench.cluster.hosts) CHECK(host.installed.empty());
}

TEST_CASE("a rank that is taken out and dies before its last round costs the job") {
  Bench bench(0, true);
  REQUIRE(bench.answer_to(bench.cluster.replan(0, kId, {PlanKind::kStar, {1}, {2}})).committed);
  bench.cluster.run(kSoon);
  bench.cluster.detach(bench.handles[2], false);
  bench.cluster.run(kSoon);
  CHECK(has(bench.cluster.ranks[bench.handles[0]].reason, "died"));
  for (const Host& host : bench.cluster.hosts) CHECK(host.installed.empty());
}

TEST_CASE("a training may end before a plan that takes ranks out is in force") {
  Bench bench(0, true);
  REQUIRE(bench.answer_to(bench.cluster.replan(0, kId, {PlanKind::kStar, {1}, {2}})).committed);
  bench.cluster.run(kSoon);
  const auto last = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{2});
  for (std::size_t rank = 0; rank < 3; ++rank)
    if (rank != last) bench.cluster.detach(bench.handles[rank], true);
  bench.cluster.run(kSoon);
  // The last rank may lack results, so it keeps its job.
  CHECK_FALSE(bench.cluster.hosts[last].installed.empty());
  CHECK(bench.cluster.ranks[bench.handles[last]].state == State::kReady);
  bench.cluster.detach(bench.handles[last], true);
  bench.cluster.run(kSoon);
  for (const Host& host : bench.cluster.hosts) CHECK(host.installed.empty());
}

TEST_CASE("ranks that join get the plan that is in force, and not one that was aborted") {
  Bench bench(0, true);
  REQUIRE(bench.answer_to(bench.cluster.replan(0, kId, {PlanKind::kStar, {1}, {2}})).committed);
  bench.cluster.run(kSoon);
  bench.open_rounds(200);
  bench.open_rounds(10);
  bench.cluster.hosts[0].readiness = Readiness::kRefuses;
  CHECK_FALSE(bench.answer_to(bench.cluster.replan(0, kId, {PlanKind::kSharded, {}})).committed);
  bench.cluster.hosts[0].readiness = Readiness::kReady;
  bench.cluster.run(kSoon);
  const RankHandle late = bench.cluster.attach(3, 2, 3, kKey);
  bench.cluster.run(kSoon * 2);
  CHECK(bench.cluster.ranks[late].state == State::kReady);
  CHECK(bench.cluster.hosts[0].manager->jobs().at(0).plan_kind == PlanKind::kStar);
}

TEST_CASE("ranks that cannot join a job that runs are told why, and it goes on") {
  const bool elastic = GENERATE(false, true);
  Bench bench(0, elastic);
  const AnswerReplan out =
      bench.answer_to(bench.cluster.replan(0, kId, {PlanKind::kStar, {1}, {2}}));
  CHECK(out.committed == elastic);
  if (!elastic) CHECK(has(out.text, "ranks.elastic"));
  if (elastic) {
    const auto why_not = [&](const PlanChoice& choice) {
      const AnswerReplan answer = bench.answer_to(bench.cluster.replan(0, kId, choice));
      CHECK_FALSE(answer.committed);
      return answer.text;
    };
    bench.open_rounds(200);
    bench.open_rounds(10);
    CHECK(has(why_not({PlanKind::kStar, {1}, {3}}), "node n3 has no ranks of the job"));
    CHECK(has(why_not({PlanKind::kStar, {1}, {0, 1}}), "none of the ranks of now"));
    CHECK(has(why_not({PlanKind::kStar, {1}, {1}}), "node n1 would sum for others"));
  }
  bench.open_rounds(200);
  const auto refusal = [&](std::uint16_t rank, std::uint32_t world) {
    const RankHandle late = bench.cluster.attach(3, rank, world, kKey);
    REQUIRE(late != 0);
    bench.cluster.run(kSoon);
    CHECK(bench.cluster.ranks[late].state == State::kFailed);
    return bench.cluster.ranks[late].reason;
  };
  CHECK(has(refusal(1, 3), elastic ? "rank 1 is in the job already" : "with all its ranks (3)"));
  if (elastic) CHECK(has(refusal(2, 4), "the job has 3 ranks, and not 4"));
  CHECK(bench.cluster.ranks[bench.handles[0]].state == State::kReady);
  if (!elastic) return;
  SECTION("its node refuses") {
    bench.cluster.hosts[0].readiness = Readiness::kRefuses;
    CHECK(has(refusal(2, 3), "no memory for a second plan"));
  }
  SECTION("it goes again at once") {
    const RankHandle late = bench.cluster.attach(3, 2, 3, kKey);
    bench.cluster.run(Duration::ms(GENERATE(10, 499)));
    bench.cluster.detach(late, false);
    bench.cluster.run(kSoon);
    CHECK(bench.epoch() == out.epoch);
  }
  SECTION("it goes while its plan is prepared") {
    bench.cluster.hosts[0].readiness = Readiness::kSilent;
    const RankHandle late = bench.cluster.attach(3, 2, 3, kKey);
    bench.cluster.run(kSoon);
    CHECK(has(bench.cluster.hosts[0].manager->jobs().at(0).plan_change, "is being prepared"));
    bench.cluster.detach(late, false);
    bench.cluster.run(kSoon);
    CHECK(bench.epoch() == out.epoch);
    CHECK(bench.cluster.hosts[0].manager->jobs().at(0).plan_change.empty());
  }
  SECTION("it joins on another node") {
    const RankHandle late = bench.cluster.attach(3, 2, 3, kKey);
    bench.cluster.run(kSoon * 2);
    CHECK(bench.cluster.ranks[late].state == State::kReady);
  }
  bench.open_rounds(200);
  CHECK(bench.cluster.ranks[bench.handles[0]].state == State::kReady);
}
