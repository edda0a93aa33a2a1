// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/election.h"
#include "control/session/peer_link.h"
#include "tests/property/session_network.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

constexpr api::NodeId kFirst = 3;  // coordinates at first, and is not a member of the job

/// A job that runs on two nodes. Both have prepared another plan and wait for its commit. The
/// coordinator does not know yet that they have.
struct PreparedJob {
  explicit PreparedJob(std::vector<api::NodeId> nodes) {
    for (std::uint16_t rank = 0; rank < nodes.size(); ++rank)
      cluster.attach(nodes[rank], rank, static_cast<std::uint32_t>(nodes.size()), key);
    cluster.run(Duration::seconds(1));
    REQUIRE(cluster.all_ranks(State::kReady));
    REQUIRE(cluster.replan(nodes[0], protocol::job_id_of(key), {PlanKind::kStar, {nodes[1]}, {}}));
    REQUIRE(
        cluster.run(Duration::seconds(1), [&] { return is_held(nodes[0]) && is_held(nodes[1]); }));
  }
  bool is_held(api::NodeId node) const {
    return cluster.hosts[node].rounds.begin()->second.horizon.has_value();
  }
  Term term_of(api::NodeId node) const { return cluster.hosts[node].manager->term().term; }

  const protocol::JobKey key = key_number(1);
  Cluster cluster{1, 4, kFirst, sharded_planner()};
};

/// The time until missing heartbeats cause doubt.
const SessionConfig kDefaults;
const Duration kDoubt = kDefaults.heartbeat * kHeartbeatsToDoubt;
const Duration kLittle = Duration::ms(100);

}  // namespace

TEST_CASE("rounds that wait for the word of a dead coordinator do not wait until it is lost") {
  PreparedJob job({0, 1});
  job.cluster.crash(kFirst);
  job.cluster.run(kDoubt - kLittle - kDefaults.heartbeat);
  CHECK(job.is_held(0));
  job.cluster.run(kDefaults.heartbeat + kLittle * 2);
  CHECK_FALSE(job.is_held(0));
  CHECK_FALSE(job.is_held(1));
  CHECK(job.term_of(0) == Term{1, 0});
  CHECK(job.cluster.all_ranks(State::kReady));
  // The new coordinator knows since when the old one is silent.
  job.cluster.run(Duration::seconds(9));
  for (const PeerView& peer : job.cluster.hosts[0].manager->peers(job.cluster.now)) {
    REQUIRE(peer.silence);
    CHECK((*peer.silence > Duration::seconds(9)) == (peer.node == kFirst));
  }
}

TEST_CASE("a coordinator that was silent for too long gives way, and no job is lost") {
  PreparedJob job({0, 1});
  job.cluster.paused.insert(kFirst);
  job.cluster.run(kDoubt + kLittle);
  CHECK(job.term_of(0) == Term{1, 0});
  job.cluster.paused.clear();
  job.cluster.run(Duration::seconds(10));
  CHECK(job.term_of(kFirst) == Term{1, 0});
  CHECK(job.cluster.hosts[kFirst].manager->jobs().empty());
  CHECK(job.cluster.all_ranks(State::kReady));
}

TEST_CASE("a coordinator that says something while another one is looked for stays") {
  PreparedJob job({1, 2});
  job.cluster.crash(0);  // so node 2 waits for node 0 before it chooses node 1
  job.cluster.paused.insert(kFirst);
  job.cluster.run(kDoubt + kLittle);
  CHECK(job.cluster.hosts[2].manager->term().is_searching);
  job.cluster.paused.clear();
  job.cluster.run(election_patience(kDefaults) * 2);
  CHECK(job.term_of(1) == Term{0, kFirst});
  CHECK(job.term_of(2) == Term{0, kFirst});
  CHECK_FALSE(job.is_held(1));
  CHECK_FALSE(job.is_held(2));
}

TEST_CASE("a node to which nobody answers does not take itself for the coordinator") {
  PreparedJob job({1, 2});
  job.cluster.cut = [](api::NodeId a, api::NodeId b) { return a == 1 || b == 1; };
  job.cluster.run(kDefaults.suspect_after - kDefaults.heartbeat - kLittle);
  CHECK(job.term_of(1) == Term{0, kFirst});
  job.cluster.cut = [](api::NodeId, api::NodeId) { return false; };
  job.cluster.run(Duration::seconds(10));
  CHECK(job.cluster.all_ranks(State::kReady));
  CHECK_FALSE(job.is_held(1));
}

TEST_CASE("a node that was stopped itself does not doubt its coordinator") {
  PreparedJob job({0, 1});
  job.cluster.paused.insert(0);
  job.cluster.run(kDoubt + kDefaults.heartbeat * 2);
  job.cluster.paused.clear();
  job.cluster.run(Duration::seconds(2));
  CHECK(job.term_of(0) == Term{0, kFirst});
  CHECK_FALSE(job.is_held(0));
}

TEST_CASE("without a prepared plan a silent coordinator is waited for") {
  PreparedJob job({0, 1});
  job.cluster.run(Duration::seconds(1));
  CHECK_FALSE(job.is_held(0));
  job.cluster.paused.insert(kFirst);
  job.cluster.run(kDoubt + kDefaults.heartbeat);
  CHECK(job.term_of(0) == Term{0, kFirst});
}
