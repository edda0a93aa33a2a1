// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <optional>
#include <string>
#include <vector>

#include "control/session/election.h"
#include "tests/property/session_network.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

const protocol::JobKey kKey = key_number(1);

struct ElectionBench {
  explicit ElectionBench(api::NodeId self) { config.self = self; }
  std::size_t asked() const {
    std::vector<bool> involved(100);
    election.mark_asked(involved);
    return static_cast<std::size_t>(std::count(involved.begin(), involved.end(), true));
  }
  std::optional<Term> tick_late(Duration late = {}) {
    now = election.next_deadline() + late;
    return election.tick(now);
  }
  SessionConfig config;
  Instant now = Instant::from_ns(1000);
  Election election{config};
};

std::vector<RankHandle> ready_job(Cluster& cluster, std::vector<api::NodeId> nodes) {
  std::vector<RankHandle> handles;
  for (std::uint16_t rank = 0; rank < nodes.size(); ++rank)
    handles.push_back(
        cluster.attach(nodes[rank], rank, static_cast<std::uint32_t>(nodes.size()), kKey));
  cluster.run(Duration::seconds(1));
  REQUIRE(cluster.all_ranks(State::kReady));
  return handles;
}

Term term_of(Cluster& cluster, api::NodeId node) {
  return cluster.hosts[node].manager->term().term;
}

}  // namespace

TEST_CASE("terms are ordered by their numbers, then by their nodes") {
  CHECK(Term{1, 0} > Term{0, 5});
  CHECK(Term{1, 2} > Term{1, 1});
  const std::vector<std::byte> bytes = seal({7, 300}, std::as_bytes(std::span("ab", 2)));
  const auto envelope = open_envelope(bytes);
  REQUIRE(envelope);
  CHECK(envelope->term == Term{7, 300});
  CHECK(envelope->message.size() == 2);
  CHECK_FALSE(open_envelope(std::span(bytes).first(kTermBytes - 1)));
  CHECK(open_envelope(std::span(bytes).first(kTermBytes)));
  CHECK_FALSE(open_envelope(seal({kMaxTermNumber + 1, 0}, {})));
}

TEST_CASE("the lowest node that answers is chosen") {
  SECTION("this one at once when no other comes before it") {
    ElectionBench bench(1);
    CHECK(bench.election.begin({4, 0}, false, bench.now) == Term{5, 1});
  }
  SECTION("the lost one when it is back") {
    ElectionBench bench(3);
    CHECK(bench.election.begin({4, 2}, true, bench.now) == Term{5, 2});
    CHECK_FALSE(bench.election.under_way());
  }
  SECTION("the first one as soon as it answers, and never the lost one") {
    ElectionBench bench(3);
    CHECK_FALSE(bench.election.begin({4, 0}, false, bench.now));
    CHECK(bench.asked() == 2);
    CHECK_FALSE(bench.election.on_heard(0));
    CHECK(bench.election.on_heard(1) == Term{5, 1});
    CHECK_FALSE(bench.election.under_way());
  }
  SECTION("a later one when those before it are silent") {
    ElectionBench bench(3);
    CHECK_FALSE(bench.election.begin({4, 0}, false, bench.now));
    CHECK_FALSE(bench.election.on_heard(2));
    CHECK_FALSE(bench.election.tick(bench.now));
    CHECK(bench.tick_late() == Term{5, 2});
  }
  SECTION("itself when all are silent, who are asked in groups that grow") {
    ElectionBench bench(60);
    CHECK_FALSE(bench.election.begin({4, 3}, false, bench.now));
    for (const std::size_t asked : {8U, 16U, 32U, 3U}) {
      CHECK(bench.asked() == asked);
      CHECK(bench.election.next_deadline() == bench.now + election_patience(bench.config));
      const std::optional<Term> choice = bench.tick_late();
      CHECK(choice == (asked == 3 ? std::optional(Term{5, 60}) : std::nullopt));
    }
  }
}

TEST_CASE("a node that was stopped asks again") {
  ElectionBench bench(3);
  CHECK_FALSE(bench.election.begin({4, 0}, false, bench.now));
  CHECK_FALSE(bench.tick_late(Duration::seconds(2)));
  CHECK(bench.election.asked_at() == bench.now);
  CHECK(bench.tick_late() == Term{5, 3});
}

TEST_CASE("a coordinator that is lost is replaced: jobs go on, and those that wait find the next") {
  Cluster cluster(1, 5, 4, sharded_planner());
  const std::vector<RankHandle> handles = ready_job(cluster, {0, 1});
  const RankHandle waiting = cluster.attach(2, 0, 2, key_number(2));
  cluster.run(Duration::seconds(1));
  cluster.crash(4);
  cluster.run(Duration::seconds(6));
  CHECK(cluster.ranks[handles[0]].state == State::kReady);
  for (api::NodeId node = 0; node < 3; ++node) CHECK(term_of(cluster, node) == Term{1, 0});
  CHECK(cluster.ranks[waiting].state == State::kWaiting);
  cluster.start(4);
  const RankHandle second = cluster.attach(4, 1, 2, key_number(2));
  cluster.run(Duration::seconds(2));
  CHECK(cluster.ranks[waiting].state == State::kReady);
  CHECK(cluster.ranks[second].state == State::kReady);
  INFO("the one that is back gives way");
  CHECK(term_of(cluster, 4) == Term{1, 0});
}

TEST_CASE("a coordinator that only restarts coordinates on, in a term of its own") {
  Cluster cluster(1, 4, 3, sharded_planner());
  ready_job(cluster, {0, 1});
  cluster.crash(3);
  cluster.start(3);
  cluster.run(Duration::seconds(2));
  CHECK(cluster.all_ranks(State::kReady));
  CHECK(term_of(cluster, 0) == Term{1, 3});
  CHECK(cluster.hosts[3].manager->jobs().size() == 1);
}

TEST_CASE("a coordinator that was stopped gives way when it goes on") {
  Cluster cluster(1, 4, 3, sharded_planner());
  ready_job(cluster, {1, 2});
  cluster.paused.insert(3);
  cluster.run(Duration::seconds(8));
  CHECK(term_of(cluster, 1) == Term{1, 0});
  CHECK(term_of(cluster, 3) == Term{0, 3});
  cluster.paused.clear();
  cluster.run(Duration::seconds(2));
  CHECK(term_of(cluster, 3) == Term{1, 0});
  CHECK(cluster.hosts[3].manager->jobs().empty());
  CHECK(cluster.all_ranks(State::kReady));
}

TEST_CASE("of two coordinators that have jobs the one of the lower term gives way") {
  Cluster cluster(1, 5, 0, sharded_planner());
  const auto apart = [](api::NodeId a, api::NodeId b) { return (a < 2) != (b < 2); };
  cluster.cut = apart;
  cluster.attach(0, 0, 2, kKey);
  cluster.attach(3, 1, 2, kKey);
  cluster.run(Duration::seconds(10));
  CHECK(term_of(cluster, 0) == Term{0, 0});
  CHECK(term_of(cluster, 3) == Term{1, 2});
  cluster.cut = [](api::NodeId, api::NodeId) { return false; };
  cluster.run(Duration::seconds(2));
  CHECK(cluster.all_ranks(State::kReady));
  CHECK(term_of(cluster, 0) == Term{1, 2});
}

TEST_CASE("a node whose file lets another node coordinate first finds the others") {
  Cluster cluster(1, 3, 0, sharded_planner());
  SessionConfig config;
  config.self = 2;
  config.coordinator = 1;
  config.node_names = {"n0", "n1", "n2"};
  config.incarnation = 77;
  config.cluster_key.fill(std::byte{7});
  config.check_plan = [](const api::Plan&) -> Status { return Nothing{}; };
  cluster.hosts[2].manager = std::make_unique<SessionManager>(config);
  cluster.attach(2, 0, 2, kKey);
  cluster.attach(0, 1, 2, kKey);
  cluster.run(Duration::seconds(1));
  CHECK(cluster.all_ranks(State::kReady));
  CHECK(term_of(cluster, 0) == Term{0, 1});
}

TEST_CASE("what an earlier coordinator still says is not obeyed") {
  Cluster cluster(1, 3, 2, sharded_planner(1));
  SessionConfig config;
  config.self = 0;
  config.coordinator = 0;
  config.node_names = {"n0", "n1", "n2"};
  config.incarnation = 77;
  config.cluster_key.fill(std::byte{7});
  config.check_plan = [](const api::Plan&) -> Status { return Nothing{}; };
  cluster.hosts[0].manager = std::make_unique<SessionManager>(config);
  cluster.attach(0, 0, 1, kKey);  // node 0 asks node 1 to prepare its plan
  cluster.run(Duration::seconds(1));
  const DropCounters& drops = cluster.hosts[1].manager->drops();
  CHECK(drops[static_cast<std::size_t>(DatagramDrop::kStaleTerm)] > 0);
  CHECK(cluster.all_ranks(State::kReady));
  CHECK(cluster.hosts[2].manager->jobs().size() == 1);
}

TEST_CASE("a node obeys the coordinator of its term alone") {
  SessionConfig config;
  config.self = 1;
  config.node_names = {"n0", "n1", "n2"};
  config.incarnation = 77;
  config.check_plan = [](const api::Plan&) -> Status { return Nothing{}; };
  SessionManager manager(config);
  Instant now = Instant::from_ns(1000);
  PeerLink stranger({2, 1, 99, {}, config.heartbeat, config.suspect_after}, now);
  const api::Plan plan = sharded_planner()({5, 0, {{1, {}}, {2, {0}}}, {}, {}, {}}).value().plan;
  const protocol::Prepare order{kKey, 0, 5, 5, 1, {}, "job", encode_plan(plan).value()};
  stranger.send(seal(manager.term().term, protocol::encode(order)), now);
  bool installed = false;
  for (int turn = 0; turn < 10; ++turn) {
    now = now + Duration::ms(100);
    stranger.tick(now);
    for (const std::vector<std::byte>& bytes : stranger.take_datagrams())
      manager.on_datagram(bytes, now);
    while (const auto action = manager.next_action()) {
      installed |= std::holds_alternative<InstallJob>(*action);
      const auto* send = std::get_if<SendDatagram>(&*action);
      Datagram datagram;
      if (send == nullptr || send->node != 2) continue;
      REQUIRE(decode_datagram({}, send->bytes, datagram) == DatagramDrop::kCount);
      stranger.receive(datagram, now);
    }
  }
  CHECK_FALSE(installed);
  CHECK(manager.drops()[static_cast<std::size_t>(DatagramDrop::kNotExpected)] == 1);
}
