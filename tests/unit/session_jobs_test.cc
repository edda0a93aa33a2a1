// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <string>
#include <vector>

#include "control/session/text.h"
#include "tests/property/session_network.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

const protocol::JobKey kKey = key_number(1);

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

/// Attaches ranks 0..n-1, rank r on node r, and waits until all are ready.
std::vector<RankHandle> ready_job(Cluster& cluster, std::uint16_t world_size) {
  std::vector<RankHandle> handles;
  for (std::uint16_t rank = 0; rank < world_size; ++rank)
    handles.push_back(cluster.attach(rank, rank, world_size, kKey));
  REQUIRE(cluster.run(Duration::seconds(2), [&] { return cluster.all_ranks(State::kReady); }));
  return handles;
}

}  // namespace

TEST_CASE("the ranks of a node that is lost while others wait are missing again") {
  Cluster cluster(1, 3, 0, sharded_planner());
  const RankHandle zero = cluster.attach(0, 0, 3, kKey);
  cluster.attach(1, 1, 3, kKey);
  cluster.run(Duration::seconds(1));
  REQUIRE(cluster.ranks[zero].missing == std::vector<std::uint32_t>{2});
  SECTION("silent") {
    cluster.crash(1);
  }
  SECTION("restarted") {
    cluster.crash(1);
    cluster.start(1);
  }
  cluster.attach(2, 2, 3, key_number(9));
  cluster.run(Duration::seconds(5));
  CHECK(cluster.ranks[zero].missing == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("a node that only sums is a member, and forgets the job with the others") {
  Cluster cluster(1, 3, 1, sharded_planner(2));
  const std::vector<RankHandle> handles = ready_job(cluster, 2);
  const std::uint32_t id = protocol::job_id_of(kKey);
  REQUIRE(cluster.hosts[2].installed.contains(id));
  CHECK(cluster.hosts[2].installed[id].local_ranks.empty());
  CHECK(cluster.hosts[0].installed[id].local_ranks.size() == 1);
  CHECK(cluster.hosts[0].installed[id].local_ranks[0].handle == handles[0]);
  CHECK(cluster.hosts[0].installed[id].packet_key == cluster.hosts[2].installed[id].packet_key);
  CHECK(cluster.hosts[0].installed[id].packet_key != kKey);
  CHECK(cluster.hosts[2].manager->jobs()[0].ranks.size() == 2);
  for (const RankHandle handle : handles) cluster.detach(handle, true);
  cluster.run(Duration::seconds(1));
  for (const Host& host : cluster.hosts) CHECK(host.installed.empty());
}

TEST_CASE("a rank that is there twice is refused by name, the first one stays") {
  Cluster cluster(1, 3, 0, sharded_planner());
  const RankHandle first = cluster.attach(1, 1, 3, kKey);
  CHECK(cluster.attach(1, 1, 3, kKey) == 0);
  CHECK(has(cluster.refusal, "rank 1 of job job"));
  CHECK(has(cluster.refusal, "is attached already on node n1"));
  const RankHandle innocent = cluster.attach(2, 0, 3, kKey);
  cluster.run(Duration::seconds(1));
  const RankHandle second = cluster.attach(2, 1, 3, kKey);
  cluster.run(Duration::seconds(1));
  CHECK(cluster.ranks[second].state == State::kFailed);
  CHECK(cluster.ranks[second].reason == "rank 1 is there twice: on node n1 and on node n2");
  CHECK(cluster.ranks[first].state == State::kWaiting);
  CHECK(cluster.ranks[innocent].state == State::kWaiting);
  cluster.ranks.erase(second);
  cluster.attach(0, 2, 3, kKey);
  CHECK(cluster.run(Duration::seconds(1), [&] { return cluster.all_ranks(State::kReady); }));
}

TEST_CASE("ranks that do not agree on their number are refused by name") {
  Cluster cluster(1, 3, 0, sharded_planner());
  const RankHandle first = cluster.attach(1, 0, 4, kKey);
  CHECK(cluster.attach(1, 1, 8, kKey) == 0);
  CHECK(has(cluster.refusal, "has 4 ranks by what rank 0 says; rank 1 says 8"));
  cluster.run(Duration::seconds(1));
  const RankHandle other = cluster.attach(2, 1, 8, kKey);
  cluster.run(Duration::seconds(1));
  CHECK(cluster.ranks[other].state == State::kFailed);
  CHECK(has(cluster.ranks[other].reason, "rank 0 on node n1 say 4, rank 1 on node n2 say 8"));
  CHECK(cluster.ranks[first].state == State::kWaiting);
}

TEST_CASE("what cannot be is refused at once") {
  Cluster cluster(1, 2, 0, sharded_planner());
  CHECK(cluster.attach(0, 4, 4, kKey) == 0);
  CHECK(cluster.attach(0, 0, 0, kKey) == 0);
  CHECK(cluster.attach(0, 0, kMaxRanks + 1, kKey) == 0);
  SECTION("too many ranks on one node") {
    for (std::uint16_t rank = 0; rank < kMaxLocalRanks; ++rank)
      REQUIRE(cluster.attach(0, rank, 2 * kMaxLocalRanks, kKey) != 0);
    CHECK(cluster.attach(0, kMaxLocalRanks, 2 * kMaxLocalRanks, kKey) == 0);
    CHECK(has(cluster.refusal, "which is the most"));
  }
  SECTION("too many jobs on one node") {
    for (std::uint8_t job = 0; job < kMaxJobsOfNode; ++job)
      REQUIRE(cluster.attach(1, 0, 2, key_number(job)) != 0);
    CHECK(cluster.attach(1, 0, 2, key_number(200)) == 0);
    CHECK(has(cluster.refusal, "serves 128 jobs already"));
  }
  SECTION("too many jobs on the coordinator") {
    for (std::uint8_t job = 0; job < kMaxJobs; ++job) cluster.attach(0, 0, 2, key_number(job));
    const RankHandle more = cluster.attach(1, 0, 2, key_number(200));
    cluster.run(Duration::seconds(1));
    CHECK(cluster.ranks[more].state == State::kFailed);
    CHECK(has(cluster.ranks[more].reason, "node n0 coordinates 64 jobs already"));
  }
  SECTION("two ranks on one connection") {
    const RankHandle handle = cluster.attach(0, 0, 4, kKey);
    const Status again =
        cluster.hosts[0].manager->attach({handle, kRootUser, kKey, 1, 4, "job"}, cluster.now);
    CHECK(!again.ok());
  }
  SECTION("a rank that comes when all are there") {
    ready_job(cluster, 2);
    CHECK(cluster.attach(0, 1, 2, kKey) == 0);
    CHECK(has(cluster.refusal, "is under way"));
  }
  SECTION("a rank that comes from a node that has no part in it") {
    cluster.attach(0, 0, 1, kKey);
    const RankHandle late = cluster.attach(1, 0, 1, kKey);
    cluster.run(Duration::seconds(1));
    CHECK(cluster.ranks[late].state == State::kFailed);
    CHECK(has(cluster.ranks[late].reason, "has begun with all its ranks (1)"));
  }
}

TEST_CASE("a job's size is told in numbers that agree with their nouns") {
  CHECK(size_text({{0, {0}}}, 1) == "1 rank on 1 node");
  CHECK(size_text({{0, {0, 1}}, {1, {2}}}, 4) == "3 of 4 ranks on 2 nodes");
}

TEST_CASE("a rank that dies ends the job for all, by name, and its key may be used again") {
  Cluster cluster(1, 3, 0, sharded_planner());
  const std::vector<RankHandle> handles = ready_job(cluster, 3);
  const std::uint32_t epoch = cluster.ranks[handles[0]].epoch;
  cluster.detach(handles[2], false);
  cluster.run(Duration::seconds(1));
  for (const RankHandle handle : {handles[0], handles[1]}) {
    CHECK(cluster.ranks[handle].state == State::kFailed);
    CHECK(cluster.ranks[handle].reason == "rank 2 on node n2 died");
  }
  for (const Host& host : cluster.hosts) CHECK(host.installed.empty());
  REQUIRE(cluster.hosts[1].manager->failures().size() == 1);
  CHECK(cluster.hosts[1].manager->failures()[0].reason == "rank 2 on node n2 died");
  cluster.ranks.clear();
  const std::vector<RankHandle> again = ready_job(cluster, 3);
  CHECK(cluster.ranks[again[0]].epoch == epoch + 1);
}

TEST_CASE("a rank that leaves while others stay gives them a grace, then ends the job by name") {
  Cluster cluster(1, 3, 0, sharded_planner());
  const std::vector<RankHandle> handles = ready_job(cluster, 3);
  const bool another_leaves = GENERATE(false, true);
  cluster.detach(handles[1], true);
  cluster.run(Duration::ms(2000));
  // The grace counts from the first rank that left.
  if (another_leaves) cluster.detach(handles[2], true);
  cluster.run(Duration::ms(900));
  CHECK(cluster.ranks[handles[0]].state == State::kReady);
  cluster.run(Duration::seconds(1));
  CHECK(cluster.ranks[handles[0]].state == State::kFailed);
  CHECK(cluster.ranks[handles[0]].reason == (another_leaves
                                                 ? "ranks 1 and 2 left; still here: rank 0"
                                                 : "rank 1 left; still here: ranks 0 and 2"));
  if (!another_leaves) CHECK(cluster.ranks[handles[2]].state == State::kFailed);
}

TEST_CASE("a node that is stopped after its ranks have left fails nobody who leaves in time") {
  Cluster cluster(1, 3, 0, sharded_planner());
  const std::vector<RankHandle> handles = ready_job(cluster, 3);
  cluster.detach(handles[2], true);
  cluster.run(Duration::ms(20));
  cluster.hosts[2].manager->say_goodbye(cluster.now);
  cluster.run(Duration::ms(300));  // with the next heartbeat the goodbye goes
  cluster.crash(2);
  cluster.run(Duration::ms(500));
  CHECK(cluster.ranks[handles[0]].state == State::kReady);
  for (const int r : {0, 1}) cluster.detach(handles[static_cast<std::size_t>(r)], true);
  cluster.run(Duration::seconds(1));
  for (const int host : {0, 1})
    CHECK(cluster.hosts[static_cast<std::size_t>(host)].manager->failures().empty());
}

TEST_CASE("a member that is lost ends the job by name on the others") {
  Cluster cluster(1, 3, 0, sharded_planner());
  const std::vector<RankHandle> handles = ready_job(cluster, 3);
  SECTION("it falls silent") {
    cluster.crash(2);
    cluster.run(Duration::seconds(5));
    CHECK(has(cluster.ranks[handles[0]].reason, "node n2 has been silent for 3."));
  }
  SECTION("it is restarted") {
    cluster.crash(2);
    cluster.start(2);
    cluster.run(Duration::seconds(5));
    CHECK(has(cluster.ranks[handles[1]].reason, "node n2 was restarted"));
  }
  CHECK(cluster.ranks[handles[0]].state == State::kFailed);
  CHECK(cluster.ranks[handles[1]].state == State::kFailed);
}

TEST_CASE("an engine that cannot go on ends the job on all nodes, with its words") {
  Cluster cluster(1, 2, 0, sharded_planner());
  const std::vector<RankHandle> handles = ready_job(cluster, 2);
  cluster.hosts[1].manager->on_job_error(12345, "another job", cluster.now);
  cluster.hosts[1].manager->on_job_error(
      protocol::job_id_of(kKey), "round 7: rank 0 has 5 elements, rank 1 has 6", cluster.now);
  cluster.run(Duration::seconds(1));
  for (const RankHandle handle : handles) {
    CHECK(cluster.ranks[handle].state == State::kFailed);
    CHECK(cluster.ranks[handle].reason == "node n1: round 7: rank 0 has 5 elements, rank 1 has 6");
  }
}

TEST_CASE("a plan that cannot be made, or that a member does not take, is told to the ranks") {
  SECTION("the planner has none") {
    Cluster cluster(1, 2, 0, [](const PlanInput&) -> Result<PlanOffer> {
      return Error{"no node is an aggregator"};
    });
    const RankHandle handle = cluster.attach(1, 0, 1, kKey);
    cluster.run(Duration::seconds(1));
    CHECK(cluster.ranks[handle].reason == "there is no plan for it: no node is an aggregator");
  }
  SECTION("it names a node that is not there") {
    Cluster cluster(1, 2, 0, sharded_planner(9));
    const RankHandle handle = cluster.attach(1, 0, 1, kKey);
    cluster.run(Duration::seconds(1));
    CHECK(has(cluster.ranks[handle].reason, "named node 9, which is not there"));
  }
  SECTION("a member refuses it") {
    int checks = 0;
    Cluster cluster(1, 2, 0, sharded_planner(), [&](const api::Plan&) -> Status {
      if (++checks > 1) return Error{"tree 0 has a cycle"};
      return Nothing{};
    });
    const RankHandle handle = cluster.attach(1, 0, 1, kKey);
    cluster.run(Duration::seconds(1));
    CHECK(cluster.ranks[handle].state == State::kFailed);
    CHECK(cluster.ranks[handle].reason == "node n1: tree 0 has a cycle");
    CHECK(cluster.hosts[1].installed.empty());
  }
  SECTION("a member that only sums does not answer") {
    Cluster cluster(1, 3, 0, sharded_planner(2));
    cluster.crash(2);
    const RankHandle handle = cluster.attach(1, 0, 1, kKey);
    cluster.run(Duration::seconds(8));
    CHECK(cluster.ranks[handle].state == State::kFailed);
    CHECK(has(cluster.ranks[handle].reason, "node n2 has not answered for 3."));
    CHECK(has(cluster.ranks[handle].reason, "; is its gradplaned running"));
  }
}

TEST_CASE("nodes that are configured otherwise say so to every rank, and the job does not begin") {
  Cluster cluster(1, 4, 0, sharded_planner(3));
  JobSettings settings;
  std::string expected;
  api::NodeId node = 2;
  SECTION("rounds.bytes") {
    settings.round_bytes = 1048576;
    expected = "rounds.bytes is 1048576 on node n2 and 4194304 on node n0; make the files the same";
  }
  SECTION("security.authenticate, on a node that only sums") {
    node = 3;
    settings.authenticate = false;
    expected =
        "security.authenticate is false on node n3 and true on node n0; make the files the same";
  }
  SECTION("poll.cores") {
    settings.cores = 2;
    expected =
        "the number of poll cores (poll.cores) is 2 on node n2 and 1 on node n0; make the files "
        "the same";
  }
  SECTION("several at once") {
    settings.block_bytes = 512;
    settings.authenticate = false;
    expected =
        "block.bytes is 512 on node n2 and 1408 on node n0 (auto follows port.mtu); "
        "security.authenticate is false on node n2 and true on node n0; make the files the same";
  }
  SECTION("training.mode") {
    settings.selections = 5;
    settings.average_every = 100;
    expected =
        "training.mode is selective-bsp on node n2 and exact on node n0; make the files the "
        "same";
  }
  SECTION("training.mode, of the selective ones") {
    settings.selections = 5;
    settings.staleness = 4;
    expected =
        "training.mode is selective-ssp on node n2 and exact on node n0; make the files the "
        "same";
  }
  cluster.start(node, settings);
  const RankHandle first = cluster.attach(1, 0, 2, kKey);
  const RankHandle second = cluster.attach(2, 1, 2, kKey);
  cluster.run(Duration::seconds(1));
  for (const RankHandle handle : {first, second}) {
    CHECK(cluster.ranks[handle].state == State::kFailed);
    CHECK(cluster.ranks[handle].reason == expected);
  }
  for (const Host& host : cluster.hosts) CHECK(host.installed.empty());
}

TEST_CASE("datagrams of strangers are counted by reason and change nothing") {
  Cluster cluster(1, 2, 0, sharded_planner());
  cluster.tapped = true;
  const std::vector<RankHandle> handles = ready_job(cluster, 2);
  SessionManager& manager = *cluster.hosts[0].manager;
  const auto drops = [&](DatagramDrop drop) {
    return manager.drops()[static_cast<std::size_t>(drop)];
  };
  const std::vector<std::byte> garbage(100, std::byte{1});
  CHECK(manager.on_datagram(garbage, cluster.now) == DatagramDrop::kBadTag);
  CHECK(drops(DatagramDrop::kBadTag) == 1);
  manager.on_datagram({}, cluster.now);
  CHECK(drops(DatagramDrop::kTruncated) == 1);
  // The datagrams are for another node, from a node that does not exist, and from this node itself.
  std::uint64_t not_for_us = 0;
  for (const auto& [source, destination] : {std::pair{1, 1}, std::pair{2, 0}, std::pair{0, 0}}) {
    Datagram datagram;
    datagram.flags = kWantsReply;
    datagram.source = static_cast<api::NodeId>(source);
    datagram.destination = static_cast<api::NodeId>(destination);
    datagram.source_incarnation = 1;
    ClusterKey key;
    key.fill(std::byte{7});
    CHECK(manager.on_datagram(encode_datagram(key, datagram), cluster.now) ==
          DatagramDrop::kNotForUs);
    CHECK(drops(DatagramDrop::kNotForUs) == ++not_for_us);
  }
  for (int turn = 0; turn < 3; ++turn)
    for (const auto& [to, bytes] : std::vector(cluster.wiretap))
      cluster.hosts[to].manager->on_datagram(bytes, cluster.now);
  cluster.run(Duration::seconds(10));
  CHECK(cluster.ranks[handles[0]].state == State::kReady);
  CHECK(cluster.ranks[handles[1]].state == State::kReady);
}

TEST_CASE("a thousand nodes get ready with few datagrams") {
  Cluster cluster(1, kMaxNodes, 0, sharded_planner());
  cluster.faults.loss = 0.01;
  for (std::uint16_t rank = 0; rank < kMaxRanks; ++rank) {
    REQUIRE(cluster.attach(rank, rank, kMaxRanks, kKey) != 0);
    cluster.run(Duration::us(500));
  }
  CHECK(cluster.run(Duration::seconds(10), [&] { return cluster.all_ranks(State::kReady); }));
  CHECK(cluster.datagram_count < 200 * kMaxNodes);
}
