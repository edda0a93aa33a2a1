// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Nodes that hear each other or do not, and what those hear who wait.
#include <string>
#include <vector>

#include "tests/property/session_network.h"
#include "tests/support/catch.h"
#include "tests/unit/session_bench.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

}  // namespace

TEST_CASE("a node that begins calls its coordinator until it answers, and then no more") {
  Cluster cluster(1, 3, 0, sharded_planner());
  const auto link = [&](api::NodeId at, api::NodeId of) {
    for (const PeerView& peer : cluster.hosts[at].manager->peers(cluster.now))
      if (peer.node == of) return peer;
    return PeerView();
  };
  cluster.crash(0);
  for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
    cluster.hosts[node].manager->greet(cluster.now);
  cluster.run(Duration::seconds(10));
  CHECK_FALSE(link(1, 0).connected);
  cluster.start(0);
  cluster.hosts[0].manager->greet(cluster.now);
  cluster.run(Duration::seconds(2));
  for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}}) {
    CHECK(link(node, 0).connected);
    CHECK_FALSE(link(node, 0).watched);
    CHECK(link(0, node).connected);
  }
  INFO("the coordinator then knows that it can hear the nodes whose ranks are missing");
  const RankHandle zero = cluster.attach(0, 0, 2, kKey);
  cluster.run(Duration::seconds(1));
  CHECK(cluster.ranks[zero].reason == "waiting for rank 1 of 2 to attach");
}

TEST_CASE("while ranks are missing, everyone who waits hears for whom") {
  Cluster cluster(1, 3, 0, sharded_planner());
  const RankHandle zero = cluster.attach(0, 0, 4, kKey);
  const RankHandle two = cluster.attach(1, 2, 4, kKey);
  cluster.run(Duration::seconds(1));
  for (const RankHandle handle : {zero, two}) {
    CHECK(cluster.ranks[handle].state == State::kWaiting);
    CHECK(cluster.ranks[handle].missing == std::vector<std::uint32_t>{1, 3});
    CHECK(cluster.ranks[handle].reason ==
          "waiting for ranks 1 and 3 of 4 to attach; no word has come from node n2: if ranks have "
          "attached there, see the logs of the daemons");
  }
  cluster.attach(2, 3, 4, kKey);
  cluster.run(Duration::seconds(1));
  CHECK(cluster.ranks[two].missing == std::vector<std::uint32_t>{1});
  CHECK(cluster.ranks[two].reason == "waiting for rank 1 of 4 to attach");
  cluster.detach(zero, false);
  cluster.run(Duration::seconds(1));
  CHECK(cluster.ranks[two].missing == std::vector<std::uint32_t>{0, 1});
  CHECK(cluster.ranks[two].state == State::kWaiting);

  const std::vector<JobView> jobs = cluster.hosts[0].manager->jobs();
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].missing == std::vector<std::uint32_t>{0, 1});
  CHECK(jobs[0].ranks.size() == 2);
  cluster.attach(0, 0, 4, kKey);
  cluster.attach(0, 1, 4, kKey);
  CHECK(cluster.run(Duration::seconds(1), [&] { return cluster.all_ranks(State::kReady); }));
}

TEST_CASE("who has another file than the coordinator says so, once") {
  TestConfig c = config(1, 0);
  c.shared_sections = {{"plan", 1}, {"gather", 2}};
  Outbox outbox;
  Member member(c, outbox);
  REQUIRE(member.attach({7, kRootUser, kKey, 0, 2, "job"}, kNow).ok());
  const std::uint32_t attempt = letters<protocol::Join>(outbox).at(0).second.attempt;
  const auto warnings = [&](std::uint32_t epoch, std::vector<std::uint16_t> digests) {
    outbox.actions.clear();
    protocol::Prepare asked = prepare(attempt, epoch);
    asked.shared_sections = std::move(digests);
    member.on_message(asked, kNow);
    std::string said;
    for (const Action& action : outbox.actions) {
      const auto* line = std::get_if<LogLine>(&action);
      if (line != nullptr && line->level == LogLevel::kWarn) said += line->text;
    }
    return said;
  };
  SECTION("another value") {
    const std::string said = warnings(5, {1, 3});
    CHECK(said.find("node n0, which coordinates, has other values in gather than node n1") == 0);
    CHECK(count_actions<InstallJob>(outbox) == 1);
    outbox.actions.clear();
    protocol::Prepare another = prepare(0, 6);
    another.key = key_number(2);
    another.shared_sections = {1, 3};
    member.on_message(another, kNow);
    for (const Action& action : outbox.actions)
      if (const auto* line = std::get_if<LogLine>(&action))
        CHECK(line->text.find("other values") == std::string::npos);
  }
  SECTION("the same file, or a coordinator that tells fewer sections") {
    CHECK(warnings(5, {1}).empty());
    CHECK(count_actions<InstallJob>(outbox) == 1);
  }
}

TEST_CASE("a node that begins to coordinate tells a coordinator that it has in contact already") {
  Cluster cluster(1, 3, 0, sharded_planner());
  for (const std::uint16_t rank : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{2}})
    cluster.attach(rank, rank, 4, kKey);
  cluster.run(Duration::seconds(1));
  // Node 0 hears node 2 no more, and tells node 1 so. Then node 2 does not hear node 0 either, and
  // lets node 1 coordinate. Nothing else happens that would make node 0 and node 1 talk.
  cluster.cut = [](api::NodeId from, api::NodeId to) { return from == 2 && to == 0; };
  cluster.run(Duration::ms(3500));
  cluster.cut = [](api::NodeId a, api::NodeId b) { return a + b == 2 && a != b; };
  cluster.run(Duration::seconds(20));
  cluster.cut = [](api::NodeId, api::NodeId) { return false; };
  cluster.run(Duration::seconds(5));
  for (const Host& host : cluster.hosts) CHECK(host.manager->coordinator() == 1);
  cluster.attach(0, 3, 4, kKey);
  CHECK(cluster.run(Duration::seconds(5), [&] { return cluster.all_ranks(State::kReady); }));
}
