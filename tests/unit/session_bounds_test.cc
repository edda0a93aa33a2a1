// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
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

const std::uint32_t kJob = protocol::job_id_of(kKey);

/// Attaches ranks 0..n-1, rank r on node r, and waits until all are ready.
std::vector<RankHandle> ready_job(Cluster& cluster, std::uint16_t world_size) {
  std::vector<RankHandle> handles;
  for (std::uint16_t rank = 0; rank < world_size; ++rank)
    handles.push_back(cluster.attach(rank, rank, world_size, kKey));
  REQUIRE(cluster.run(Duration::seconds(2), [&] { return cluster.all_ranks(State::kReady); }));
  return handles;
}

/// Returns how many buckets have bounds on each node.
std::vector<std::size_t> known(const Cluster& cluster) {
  std::vector<std::size_t> counts;
  for (const Host& host : cluster.hosts) {
    const auto of_job = host.bounds.find(kJob);
    counts.push_back(of_job == host.bounds.end() ? 0 : of_job->second.size());
  }
  return counts;
}

/// What the log says of bounds at this level.
std::vector<std::string> said(const Outbox& outbox, LogLevel level) {
  std::vector<std::string> texts;
  for (const Action& action : outbox.actions) {
    const auto* line = std::get_if<LogLine>(&action);
    if (line == nullptr || line->level != level) continue;
    constexpr std::string_view kMark = ": bounds: ";
    const std::size_t at = line->text.find(kMark);
    if (at != std::string::npos) texts.push_back(line->text.substr(at + kMark.size()));
  }
  return texts;
}

}  // namespace

TEST_CASE("what rank 0 says of its buckets comes back with bounds on every member") {
  // Node 3 only sums. Node 2 coordinates and hosts a rank.
  Cluster cluster(1, 4, 2, sharded_planner(3));
  const std::vector<RankHandle> handles = ready_job(cluster, 3);
  // Other ranks describe the same buckets, so their nodes do not forward it.
  cluster.describe(handles[1], 1, 3);
  cluster.run(Duration::seconds(1));
  CHECK(known(cluster) == std::vector<std::size_t>{0, 0, 0, 0});
  cluster.describe(handles[0], 1, 3);
  cluster.run(Duration::seconds(1));
  CHECK(known(cluster) == std::vector<std::size_t>{1, 1, 1, 1});
  const api::BucketBounds& table = cluster.hosts[3].bounds.at(kJob).at(1);
  REQUIRE(table.tensors.size() == 3);
  CHECK(table.elements == 30);
  CHECK(table.tensors[1].offset_elements == 10);
  CHECK(table.tensors[1].bound == 0.13F);
  CHECK(table.tensors[1].rule == "1 buckets");
}

TEST_CASE("bounds are resolved when all buckets are there, and again when new ones come") {
  Cluster cluster(1, 2, 0, sharded_planner());
  const std::vector<RankHandle> handles = ready_job(cluster, 2);
  for (std::uint32_t bucket = 1; bucket <= 4; ++bucket) {
    cluster.describe(handles[0], bucket, 2);
    cluster.run(Duration::ms(150));
    CHECK(known(cluster)[1] == 0);
  }
  cluster.run(Duration::ms(100));
  CHECK(known(cluster)[1] == 4);
  CHECK(cluster.hosts[1].bounds.at(kJob).at(1).tensors[0].rule == "4 buckets");
  cluster.describe(handles[0], 5, 2);
  cluster.run(Duration::seconds(1));
  CHECK(known(cluster)[1] == 5);
  CHECK(cluster.hosts[1].bounds.at(kJob).at(1).tensors[0].rule == "4 buckets");
  CHECK(cluster.hosts[1].bounds.at(kJob).at(5).tensors[0].rule == "5 buckets");
}

TEST_CASE("buckets that never stop coming do not keep bounds waiting for ever") {
  Cluster cluster(1, 2, 0, sharded_planner());
  const std::vector<RankHandle> handles = ready_job(cluster, 2);
  for (std::uint32_t bucket = 1; bucket <= 30; ++bucket) {
    cluster.describe(handles[0], bucket, 2);
    cluster.run(Duration::ms(100));
  }
  CHECK(known(cluster)[1] >= 15);
}

TEST_CASE("what is described before the job is ready is not forgotten") {
  Cluster cluster(1, 3, 2, sharded_planner());
  const RankHandle zero = cluster.attach(0, 0, 2, kKey);
  cluster.describe(zero, 1, 3);
  cluster.run(Duration::seconds(1));
  cluster.attach(1, 1, 2, kKey);
  cluster.run(Duration::seconds(1));
  CHECK(known(cluster) == std::vector<std::size_t>{1, 1, 0});
}

TEST_CASE("ten thousand tensors reach everybody over a lossy network, and cost no peer") {
  Cluster cluster(1, 4, 3, sharded_planner(2));
  const std::vector<RankHandle> handles = ready_job(cluster, 2);
  cluster.faults.loss = 0.05;
  cluster.faults.min_delay = Duration::ms(5);
  cluster.faults.max_delay = Duration::ms(10);
  // These are far more frames than may wait for one peer.
  for (std::uint32_t bucket = 1; bucket <= 4; ++bucket)
    cluster.describe(handles[0], bucket, 10000, 120);
  const bool done = cluster.run(Duration::seconds(60), [&] {
    return known(cluster) == std::vector<std::size_t>{4, 4, 4, 0};
  });
  CHECK(done);
  CHECK(cluster.all_ranks(State::kReady));
  CHECK(cluster.hosts[2].bounds.at(kJob).at(4).tensors.size() == 10000);
}

TEST_CASE("while tables are on their way other messages do not wait for them") {
  Cluster cluster(1, 3, 2, sharded_planner());
  const std::vector<RankHandle> handles = ready_job(cluster, 2);
  cluster.faults.min_delay = cluster.faults.max_delay = Duration::ms(50);
  for (std::uint32_t bucket = 1; bucket <= 4; ++bucket)
    cluster.describe(handles[0], bucket, 10000, 120);
  cluster.run(Duration::seconds(1));
  REQUIRE(known(cluster)[1] == 0);
  cluster.detach(handles[0], false);
  cluster.run(Duration::ms(600));
  CHECK(cluster.ranks[handles[1]].state == State::kFailed);
  CHECK(cluster.ranks[handles[1]].reason == "rank 0 on node n0 died");
}

TEST_CASE("a job that begins again gets its bounds again") {
  Cluster cluster(1, 2, 0, sharded_planner());
  std::vector<RankHandle> handles = ready_job(cluster, 2);
  cluster.describe(handles[0], 1, 3);
  cluster.run(Duration::seconds(1));
  CHECK(known(cluster) == std::vector<std::size_t>{1, 1});
  cluster.detach(handles[1], false);
  cluster.run(Duration::seconds(1));
  CHECK(known(cluster) == std::vector<std::size_t>{0, 0});
  cluster.ranks.clear();
  handles = ready_job(cluster, 2);
  cluster.describe(handles[0], 1, 5);
  cluster.run(Duration::seconds(1));
  CHECK(known(cluster) == std::vector<std::size_t>{1, 1});
  CHECK(cluster.hosts[1].bounds.at(kJob).at(1).tensors.size() == 5);
}

TEST_CASE("a coordinator takes tables of the job's first rank alone, and of sane senders") {
  TestConfig config;
  config.node_names = {"n0", "n1", "n2"};
  config.incarnation = 40;
  config.planner = sharded_planner();
  config.resolve_bounds = resolve_for_test;
  config.check_plan = [](const api::Plan&) -> Status { return Nothing{}; };
  Outbox outbox;
  PlannedCoordinator coordinator(config, outbox);
  Instant now = Instant::from_ns(1000);
  coordinator.on_message(1, protocol::Join{kKey, 1, kRootUser, 2, {0}, "job"}, now);
  coordinator.on_message(2, protocol::Join{kKey, 1, kRootUser, 2, {1}, "job"}, now);
  constexpr std::uint32_t kEpoch = 41;
  const std::vector<std::byte> part =
      encode_table({1, ElementType::kFloat32, 5, {{"a", 0, 5, 0, {}, ""}}}).at(0);
  const std::vector<std::byte> another =
      encode_table({2, ElementType::kFloat32, 5, {{"a", 0, 5, 0, {}, ""}}}).at(0);
  const std::vector<std::byte> third =
      encode_table({3, ElementType::kFloat32, 5, {{"a", 0, 5, 0, {}, ""}}}).at(0);
  const auto sent = [&] {
    now = now + Duration::seconds(3);
    coordinator.tick(now);
    outbox.letters.clear();
    const bool any = coordinator.send_table_parts([](api::NodeId) { return true; });
    CHECK(outbox.letters.size() == (any ? 2U : 0U));
    return any;
  };
  coordinator.on_message(1, protocol::DescribeBucket{kKey, kEpoch, part}, now);
  CHECK_FALSE(sent());  // the job is not ready yet
  for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
    coordinator.on_message(node, protocol::Prepared{kKey, kEpoch, false, 0}, now);
  coordinator.on_message(2, protocol::DescribeBucket{kKey, kEpoch, part}, now);
  coordinator.on_message(0, protocol::DescribeBucket{kKey, kEpoch, part}, now);
  coordinator.on_message(1, protocol::DescribeBucket{kKey, kEpoch + 1, part}, now);
  CHECK_FALSE(sent());
  coordinator.on_message(1, protocol::DescribeBucket{kKey, kEpoch, {}}, now);
  CHECK_FALSE(sent());
  coordinator.on_message(1, protocol::DescribeBucket{kKey, kEpoch, part}, now);
  outbox.actions.clear();
  CHECK(sent());
  CHECK(said(outbox, LogLevel::kInfo) == std::vector<std::string>{"test"});
  CHECK(said(outbox, LogLevel::kWarn) == std::vector<std::string>{"a test's warning"});
  CHECK_FALSE(sent());
  coordinator.on_message(1, protocol::DescribeBucket{kKey, kEpoch, part}, now);
  CHECK_FALSE(sent());  // each bucket counts once
  coordinator.on_message(1, protocol::DescribeBucket{kKey, kEpoch, another}, now);
  outbox.actions.clear();
  CHECK(sent());
  CHECK(said(outbox, LogLevel::kDebug) == std::vector<std::string>{"test"});
  CHECK(said(outbox, LogLevel::kWarn).empty());  // it has been said
  coordinator.on_message(1, protocol::DescribeBucket{kKey, kEpoch, third}, now);
  CHECK(sent());
  CHECK(said(outbox, LogLevel::kWarn) ==
        std::vector<std::string>{"every pattern fits a tensor now"});
  CHECK_FALSE(sent());  // the first one is not sent again
}

TEST_CASE("a bucket that cannot be described stays exact, or ends a job with staleness") {
  TestConfig config;
  config.node_names = {"n0", "n1", "n2"};
  config.incarnation = 40;
  config.planner = sharded_planner();
  config.resolve_bounds = resolve_for_test;
  config.check_plan = [](const api::Plan&) -> Status { return Nothing{}; };
  config.job_settings.staleness = GENERATE(0U, 3U);
  Outbox outbox;
  PlannedCoordinator coordinator(config, outbox);
  const Instant now = Instant::from_ns(1000);
  coordinator.on_message(1, protocol::Join{kKey, 1, kRootUser, 2, {0}, "job"}, now);
  coordinator.on_message(2, protocol::Join{kKey, 1, kRootUser, 2, {1}, "job"}, now);
  for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
    coordinator.on_message(node, protocol::Prepared{kKey, 41, false, 0}, now);
  outbox.letters.clear();
  coordinator.on_message(1, protocol::DescribeBucket{kKey, 41, {}}, now);
  if (config.job_settings.staleness == 0) {
    CHECK(outbox.letters.empty());
    return;
  }
  REQUIRE(outbox.letters.size() == 2);
  for (const auto& letter : outbox.letters) {
    const auto* failed = std::get_if<protocol::Failed>(&letter.message);
    REQUIRE(failed != nullptr);
    CHECK(failed->reason == "node n1 described a bucket that cannot be: its begin makes no sense");
  }
}

TEST_CASE("a part waits until there is room for it") {
  SendStream stream;
  CHECK(stream.size() < kTableFrames);
  const std::vector<std::byte> part(protocol::kMaxBucketPartBytes + 64);
  while (stream.size() < kTableFrames) REQUIRE(stream.push(part));
  CHECK(stream.size() <= kTableFrames + kMaxFramesPerTablePart);
}
