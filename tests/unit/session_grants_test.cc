// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Whether a job has grants: the rule, what nodes compare, and that all plans of a job agree.
#include "control/session/grants.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "control/session/settings.h"
#include "tests/support/catch.h"
#include "tests/unit/takeover_bench.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

/// All nodes send to node 0.
Result<PlanOffer> star_planner(const PlanInput& input) {
  PlanInput star = input;
  star.choice = PlanChoice{PlanKind::kStar, {}, {}};
  return sharded_planner()(star);
}

/// A cluster in which each node has a rank of one job.
struct Job {
  explicit Job(std::uint16_t nodes, Planner planner = star_planner)
      : cluster(1, nodes, 0, std::move(planner)) {}

  /// Starts all nodes with this choice, and `odd` on the last one.
  void configure(GrantChoice choice, GrantChoice odd, const std::string& exclusion_of_last = {}) {
    const auto last = static_cast<api::NodeId>(cluster.hosts.size() - 1);
    for (api::NodeId node = 0; node <= last; ++node) {
      cluster.grant_exclusion = node == last ? exclusion_of_last : exclusion;
      protocol::JobSettings settings;
      settings.grants = node == last ? odd : choice;
      settings.cores = cores;
      cluster.start(node, settings);
    }
  }
  void configure(GrantChoice choice) { configure(choice, choice, exclusion); }
  /// Attaches all ranks. Returns why the job has failed; empty: it runs.
  std::string begin() {
    const auto world = static_cast<std::uint16_t>(cluster.hosts.size());
    for (std::uint16_t rank = 0; rank < world; ++rank) cluster.attach(rank, rank, world, kKey);
    cluster.run(Duration::seconds(3), [&] { return cluster.all_ranks(State::kReady); });
    return cluster.all_ranks(State::kReady) ? std::string() : cluster.ranks.begin()->second.reason;
  }
  /// Whether the nodes have installed the job with grants; all must say the same.
  bool has_grants() const {
    std::size_t with = 0;
    for (const Host& host : cluster.hosts) {
      REQUIRE(host.installed.size() == 1);
      with += host.installed.begin()->second.grants ? 1 : 0;
    }
    CHECK((with == 0 || with == cluster.hosts.size()));
    return with > 0;
  }

  Cluster cluster;
  std::string exclusion;
  std::uint32_t cores = 1;
};

api::Plan star_of(std::uint16_t leaves) {
  std::vector<api::Member> members;
  for (std::uint16_t node = 0; node <= leaves; ++node) members.push_back({node, {node}});
  return plan_of(1, std::move(members));
}

std::string difference(GrantChoice ours, GrantChoice theirs, bool grants, std::uint32_t cores = 1) {
  const protocol::JobSettings here{.grants = ours, .cores = cores};
  const protocol::JobSettings there{.grants = theirs, .cores = cores};
  return difference_text(here, "node w1", there, "node agg", grants);
}

}  // namespace

TEST_CASE("the senders of a node are its neighbours in all trees") {
  CHECK(most_senders(star_of(7)) == 7);
  api::Plan plan = star_of(3);
  plan.trees.push_back({1, 1, {1, api::kNoNode, 1, api::kNoNode}});  // 0 and 2 below 1, without 3
  CHECK(most_senders(plan) == 3);
  // A chain: the one in the middle gets pushes from below and results from above.
  plan.trees = {{1, 0, {api::kNoNode, 0, 1, 2}}};
  CHECK(most_senders(plan) == 2);
  plan.trees.clear();
  CHECK(most_senders(plan) == 0);
}

TEST_CASE("grants pay from 80 senders on, where nothing excludes them") {
  struct Row {
    GrantCase known;
    std::string why;
  };
  const std::string few = "fewer than 80 nodes send to one";
  const std::string full = "other jobs with grants have taken the places for senders";
  const Row rows[] = {
      {{.senders = 0}, few},
      {{.senders = 79}, few},
      {{.senders = 80}, ""},
      {{.senders = 1023}, ""},
      {{.senders = 80, .exclusion = "multicast.enabled is true"}, "multicast.enabled is true"},
      {{.senders = 79, .exclusion = "multicast.enabled is true"}, few},
      {{.senders = 80, .has_one_tree = false}, "its plan has several trees"},
      {{.senders = 80, .needs_soundings = true},
       "its plan follows the network, which soundings measure"},
      {{.senders = 1000, .other_sources = 1048}, ""},
      {{.senders = 1000, .other_sources = 1049}, full},
  };
  for (const Row& row : rows) {
    INFO(row.known.senders << " senders, " << row.known.other_sources << " elsewhere");
    CHECK(why_no_grants(row.known) == row.why);
  }
}

TEST_CASE("a node with auto takes a job with grants and one without, and others must match") {
  using enum GrantChoice;
  struct Row {
    GrantChoice ours;
    GrantChoice theirs;
    bool grants;
    std::string said;  // of our and their value; empty: no difference
  };
  const Row rows[] = {
      {kAuto, kAuto, true, ""},
      {kAuto, kAuto, false, ""},
      {kAuto, kTrue, true, ""},
      {kAuto, kFalse, false, ""},
      {kTrue, kTrue, true, ""},
      {kFalse, kFalse, false, ""},
      {kTrue, kAuto, true, ""},
      {kFalse, kAuto, false, ""},
      {kTrue, kFalse, false, "true on node w1 and false on node agg"},
      {kFalse, kTrue, true, "false on node w1 and true on node agg"},
      {kTrue, kAuto, false, "true on node w1 and auto (false for this job) on node agg"},
      {kFalse, kAuto, true, "false on node w1 and auto (true for this job) on node agg"},
      // The job has them from an earlier coordinator.
      {kFalse, kFalse, true, "false on node w1 and false (true for this job) on node agg"},
  };
  for (const Row& row : rows) {
    INFO(row.said);
    const std::string expected =
        row.said.empty() ? "" : "grants.enabled is " + row.said + "; make the files the same";
    CHECK(difference(row.ours, row.theirs, row.grants) == expected);
  }
}

TEST_CASE("a node with several cores and auto takes no job with grants") {
  using enum GrantChoice;
  CHECK(difference(kAuto, kFalse, false, 2).empty());
  CHECK(difference(kTrue, kTrue, true, 2).empty());
  CHECK(difference(kAuto, kTrue, true, 2) ==
        "grants.enabled is auto (false, with several poll.cores) on node w1 and true on node agg; "
        "make the files the same");
}

TEST_CASE("with auto a job of many nodes has grants, and a small one has none") {
  for (const std::uint16_t nodes : std::initializer_list<std::uint16_t>{8, 80, 81}) {
    INFO(nodes << " nodes");
    Job job(nodes);
    job.configure(GrantChoice::kAuto);
    CHECK(job.begin().empty());
    CHECK(job.has_grants() == (nodes > 80));
  }
}

TEST_CASE("with auto a job of many nodes whose plan has several trees has no grants") {
  Job job(81, sharded_planner());
  job.configure(GrantChoice::kAuto);
  CHECK(job.begin().empty());
  CHECK_FALSE(job.has_grants());
}

TEST_CASE("what is not auto decides whatever the number of senders is") {
  for (const std::uint16_t nodes : std::initializer_list<std::uint16_t>{8, 81}) {
    for (const GrantChoice choice : {GrantChoice::kTrue, GrantChoice::kFalse}) {
      Job job(nodes);
      job.exclusion = "grants.enabled is false";
      job.configure(choice);
      CHECK(job.begin().empty());
      CHECK(job.has_grants() == (choice == GrantChoice::kTrue));
    }
  }
}

TEST_CASE("a large job has no grants by auto where the file of any of its nodes excludes them") {
  Job job(81);
  SECTION("of the coordinator") {
    job.exclusion = "multicast.enabled is true";
    job.configure(GrantChoice::kAuto, GrantChoice::kAuto);
  }
  SECTION("of a member") {
    job.configure(GrantChoice::kAuto, GrantChoice::kAuto, "multicast.enabled is true");
  }
  SECTION("of a member that wants none") {
    job.configure(GrantChoice::kAuto, GrantChoice::kFalse, "grants.enabled is false");
  }
  CHECK(job.begin().empty());
  CHECK_FALSE(job.has_grants());
}

TEST_CASE("a member that wants grants ends a small job that has none, and says why") {
  Job job(3);
  job.configure(GrantChoice::kAuto, GrantChoice::kTrue);
  CHECK(job.begin() ==
        "grants.enabled is true on node n2 and auto (false for this job) on node n0; make the "
        "files the same");
}

namespace {

/// A coordinator whose plans are stars of one node with a rank and `leaves` others. Only the node
/// beside it has a rank, too.
struct StarBench : CoordinatorBench {
  StarBench() {
    c.node_names.resize(kMaxNodes, "n");
    c.planner = [this](const PlanInput& input) -> Result<PlanOffer> {
      api::Plan plan = star_of(leaves);
      for (api::Member& member : plan.members) member.ranks.clear();
      for (const api::Member& member : input.members) plan.members[member.node] = member;
      return PlanOffer{
          .plan = plan, .planner = PlanKind::kStar, .follows_network = follows_network};
    };
  }
  /// Whether the next job has grants.
  bool has_grants() {
    const JobKey key = key_number(++jobs);
    for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
      REQUIRE(coordinator.on_message(
          node, Join{key, 1, kRootUser, 2, {static_cast<std::uint16_t>(node - 1)}, "job", true},
          now));
    const auto sent = letters<Prepare>(outbox);
    REQUIRE(sent.size() == leaves + std::size_t{1});
    return sent[0].second.grants;
  }
  std::uint16_t leaves = 80;
  bool follows_network = false;
  std::uint8_t jobs = 0;
};

}  // namespace

TEST_CASE("a plan that follows the network leaves a job without grants") {
  StarBench bench;
  CHECK(bench.has_grants());
  bench.follows_network = true;
  CHECK_FALSE(bench.has_grants());
}

TEST_CASE("jobs have grants by auto as long as nodes have places for all their senders twice") {
  StarBench bench;
  bench.leaves = 1000;
  CHECK(bench.has_grants());
  bench.leaves = 900;
  CHECK(bench.has_grants());
  bench.leaves = 149;
  CHECK_FALSE(bench.has_grants());
  bench.leaves = 148;
  CHECK(bench.has_grants());
}

TEST_CASE("a job keeps what was decided when it began") {
  SECTION("for plans with more ranks, or another coordinator: the member refuses others") {
    MemberBench bench;
    const bool grants = GENERATE(false, true);
    Prepare first = prepare(1, 50);
    first.grants = grants;
    REQUIRE(bench.member.on_message(first, kNow));
    REQUIRE(bench.member.on_message(Commit{kKey, 50, 0}, kNow));
    bench.outbox.letters.clear();
    Prepare next = prepare(0, 60);
    next.first_epoch = 50;
    next.grants = !grants;
    REQUIRE(bench.member.on_message(next, kNow));
    const auto refused = letters<PlanRefused>(bench.outbox);
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].second.reason ==
          std::string("node n1: the job has ") +
              (grants ? "grants here, and the plan is for a job without"
                      : "no grants here, and the plan is for a job with them"));
    next.grants = grants;
    REQUIRE(bench.member.on_message(next, kNow));
    CHECK(letters<PlanRefused>(bench.outbox).empty());
    CHECK(count_actions<PreparePlan>(bench.outbox) == 1);
  }
  SECTION("by the reports of its members, when another node coordinates it") {
    for (const bool grants : {false, true}) {
      TakeoverBench bench;
      Report report = TakeoverBench::report(kFirst, 0);
      report.grants = grants;
      bench.begin(report);
      bench.say(2, report);
      bench.outbox.letters.clear();
      bench.say(2, Replan{kKey, 9, PlanKind::kStar, {2}, {}});
      const auto sent = letters<Prepare>(bench.outbox);
      REQUIRE_FALSE(sent.empty());
      CHECK(sent[0].second.grants == grants);
    }
  }
  SECTION("and a member reports it") {
    MemberBench bench;
    Prepare first = prepare(1, 50);
    first.grants = true;
    REQUIRE(bench.member.on_message(first, kNow));
    bench.outbox.letters.clear();
    bench.member.on_new_term();
    const auto told = letters<Report>(bench.outbox);
    REQUIRE(told.size() == 1);
    CHECK(told[0].second.grants);
  }
}

TEST_CASE("a join says whether the node may grant") {
  for (const std::string exclusion : {"", "multicast.enabled is true"}) {
    TestConfig c = config(1, 0);
    c.grant_exclusion = exclusion;
    Outbox outbox;
    Member member(c, outbox);
    REQUIRE(member.attach({7, kRootUser, kKey, 0, 2, "job"}, kNow).ok());
    const auto joined = letters<Join>(outbox);
    REQUIRE(joined.size() == 1);
    CHECK(joined[0].second.may_grant == exclusion.empty());
  }
}
