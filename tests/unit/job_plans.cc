// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Another plan for a job that runs: which plans a node refuses, which rounds it holds back, and
// what it does with packets of each plan.
#include <algorithm>

#include "dataplane/engine/local_plan.h"
#include "tests/support/catch.h"
#include "tests/support/core_node.h"

using namespace gradplane;
using gradplane::testing::CoreNode;
using gradplane::testing::Sent;

namespace {

constexpr std::uint32_t kElements = 8;
constexpr Instant kStart = Instant::from_ns(1'000'000'000);

/// A plan for `hosts` nodes with a rank each. Node `root` is the root.
api::Plan star(std::uint32_t epoch, api::NodeId root, std::uint16_t hosts) {
  api::Plan plan{.epoch = epoch, .activation_round = 0, .members = {}, .trees = {}};
  api::Tree tree{.weight = 1, .root = root, .parent = {}};
  for (std::uint16_t n = 0; n < hosts; ++n) {
    plan.members.push_back({.node = n, .ranks = {n}});
    tree.parent.push_back(n == root ? api::kNoNode : root);
  }
  plan.trees = {tree};
  return plan;
}

/// The same plan, but the root has no rank.
api::Plan star_below(std::uint32_t epoch, api::NodeId root, std::uint16_t hosts) {
  api::Plan plan = star(epoch, root, hosts);
  plan.members[root].ranks.clear();
  return plan;
}

job::JobConfig config_of(const api::Plan& plan, api::NodeId self) {
  job::JobConfig config;
  config.job = 1;
  config.epoch = plan.epoch;
  config.self = self;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = kMinBlockBytes;
  config.local_ranks = {{.arena = nullptr, .rank = self}};
  engine::fill_local_plan(config, plan, self, {});
  return config;
}

/// Makes a plan as the control thread does for a node that has the job already.
std::unique_ptr<job::Plan> part_of(const api::Plan& plan, const CoreNode& node) {
  const job::JobConfig& job = node.job().config();
  return std::make_unique<job::Plan>(engine::local_plan(plan, job.self, {}, job.grants), job);
}

/// The rank of a job with one rank submits rounds, which end at once.
void run_alone(CoreNode& node, std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t round = begin; round != end; ++round) {
    REQUIRE(node.submit(0, round, kElements) == job::SubmitResult::kAccepted);
    (void)node.drain(kStart);
    REQUIRE(node.events().size() == 1);
  }
}

/// Returns the push of node 1 for a round of a plan with node 0 as the root.
Sent push_of(const api::Plan& plan, std::uint32_t round) {
  job::JobConfig config = config_of(plan, 1);
  config.first_round = round;
  CoreNode leaf(config);
  REQUIRE(leaf.submit(0, round, kElements) == job::SubmitResult::kAccepted);
  const std::vector<Sent> packets = leaf.drain(kStart);
  REQUIRE(packets.size() == 1);
  return packets[0];
}

}  // namespace

TEST_CASE("a node refuses a third plan, and one that is not newer") {
  CoreNode node(config_of(star(5, 0, 1), 0));
  auto old = part_of(star(5, 0, 1), node);
  CHECK(node.job().prepare(old).refusal == PlanRefusal::kNotNewer);
  CHECK(old != nullptr);
  auto next = part_of(star(6, 0, 1), node);
  CHECK(node.job().prepare(next).refusal == PlanRefusal::kNone);
  CHECK(next == nullptr);
  auto third = part_of(star(7, 0, 1), node);
  CHECK(node.job().prepare(third).refusal == PlanRefusal::kTooMany);
  CHECK(third != nullptr);

  CHECK(node.job().abort(7) == nullptr);
  const auto back = node.job().abort(6);
  REQUIRE(back != nullptr);
  CHECK(back->epoch() == 6);
  CHECK(node.job().abort(6) == nullptr);
  CHECK(node.job().prepare(third).refusal == PlanRefusal::kNone);
}

TEST_CASE("a node that cannot grant to the peers of a plan refuses it") {
  job::JobConfig config = config_of(star(1, 0, 2), 0);
  config.grants = true;
  config.authenticate = true;
  config.key = {};
  job::Job job(config);
  grants::GrantScheduler scheduler({.max_sources = 2, .max_jobs = 1});
  REQUIRE(job.join(scheduler, grants::JobIndex(0)));
  auto large = std::make_unique<job::Plan>(engine::local_plan(star(2, 0, 4), 0, {}, true), config);
  CHECK(job.prepare(large).refusal == PlanRefusal::kNoRoom);
  CHECK(job.peers().size() == 1);
  auto fits = std::make_unique<job::Plan>(engine::local_plan(star(2, 0, 3), 0, {}, true), config);
  CHECK(job.prepare(fits).refusal == PlanRefusal::kNone);
  CHECK(job.peers().size() == 2);
  CHECK(job.sources().size() == 2);
}

TEST_CASE("no round from the horizon on is opened until a plan is committed") {
  CoreNode node(config_of(star(1, 0, 1), 0));
  run_alone(node, 0, 5);
  auto plan = part_of(star(2, 0, 1), node);
  const job::Prepared answer = node.job().prepare(plan);
  CHECK(answer.horizon == 4 + kMaxActivationMarginRounds);
  run_alone(node, 5, answer.horizon);
  CHECK(node.submit(0, answer.horizon, kElements) == job::SubmitResult::kBusy);

  CHECK_FALSE(node.job().commit(3, answer.horizon));
  CHECK_FALSE(node.job().commit(2, answer.horizon - 1));
  CHECK(node.submit(0, answer.horizon, kElements) == job::SubmitResult::kBusy);
  CHECK(node.job().commit(2, answer.horizon + 2));
  CHECK(node.job().epoch() == 2);
  run_alone(node, answer.horizon, answer.horizon + 1);
  CHECK(node.job().take_ended_plan() == nullptr);
  run_alone(node, answer.horizon + 1, answer.horizon + 2);
  const auto ended = node.job().take_ended_plan();
  REQUIRE(ended != nullptr);
  CHECK(ended->epoch() == 1);
  run_alone(node, answer.horizon + 2, answer.horizon + 40);
}

TEST_CASE("rounds that a prepared plan has held back go on when it is aborted") {
  CoreNode node(config_of(star(1, 0, 1), 0));
  auto plan = part_of(star(2, 0, 1), node);
  const std::uint32_t horizon = node.job().prepare(plan).horizon;
  run_alone(node, 0, horizon);
  CHECK(node.submit(0, horizon, kElements) == job::SubmitResult::kBusy);
  CHECK(node.job().abort(2) != nullptr);
  run_alone(node, horizon, horizon + 40);
  CHECK(node.job().epoch() == 1);
}

TEST_CASE("packets whose plan and round do not agree enter no sum") {
  const api::Plan first = star(1, 0, 2);
  const api::Plan second = star(2, 0, 2);
  CoreNode root(config_of(first, 0));
  auto plan = part_of(second, root);
  const std::uint32_t horizon = root.job().prepare(plan).horizon;
  std::uint64_t number = 0;
  const auto deliver = [&](const api::Plan& of, std::uint32_t round) {
    Sent push = push_of(of, round);
    wire::number_unsealed(push.bytes, ++number);
    root.deliver(1, push.bytes, kStart);
  };
  deliver(second, 0);  // the peer has committed the plan, this node has not
  CHECK(root.drops(hop::Drop::kFutureRound) == 1);
  REQUIRE(root.job().commit(2, horizon));
  deliver(second, horizon - 1);
  CHECK(root.drops(hop::Drop::kWrongEpoch) == 1);
  deliver(first, horizon);
  CHECK(root.drops(hop::Drop::kWrongEpoch) == 2);
  deliver(star(3, 0, 2), 0);
  CHECK(root.drops(hop::Drop::kWrongEpoch) == 3);
  CHECK(root.job().counters().blocks_received == 0);
  deliver(first, 0);
  CHECK(root.job().counters().blocks_received == 1);
}

TEST_CASE("a packet of a round that is held back opens nothing") {
  const api::Plan first = star(1, 0, 2);
  job::JobConfig config = config_of(first, 0);
  config.local_ranks = {};
  CoreNode root(std::move(config));
  auto plan = part_of(star_below(2, 0, 2), root);
  const std::uint32_t horizon = root.job().prepare(plan).horizon;
  root.deliver(1, push_of(first, horizon).bytes, kStart);
  CHECK(root.drops(hop::Drop::kFutureRound) == 1);
  CHECK(root.job().counters().blocks_received == 0);
  Sent next = push_of(first, horizon - 1);
  wire::number_unsealed(next.bytes, 2);
  root.deliver(1, next.bytes, kStart);
  CHECK(root.job().counters().blocks_received == 1);
}

TEST_CASE("a peer that has lost the last ack hears from a node whose plan has ended") {
  const api::Plan first = star(1, 0, 2);
  CoreNode root(config_of(first, 0));
  CoreNode leaf(config_of(first, 1));
  std::uint32_t activation = 0;
  for (CoreNode* node : {&root, &leaf}) {
    auto plan = part_of(star(2, 1, 2), *node);
    activation = node->job().prepare(plan).horizon;
  }
  REQUIRE(root.job().commit(2, activation));
  REQUIRE(leaf.job().commit(2, activation));
  Instant now = kStart;
  const auto pass = [&](CoreNode& from, std::uint16_t node, CoreNode& to, bool lose_acks) {
    for (const Sent& packet : from.drain(now)) {
      const bool is_ack = packet.seen().type == wire::PacketType::kResultAck;
      if (!(lose_acks && is_ack)) to.deliver(node, packet.bytes, now);
    }
  };
  for (std::uint32_t round = 0; round < activation; ++round) {
    const bool is_last = round + 1 == activation;
    REQUIRE(root.submit(0, round, kElements) == job::SubmitResult::kAccepted);
    REQUIRE(leaf.submit(0, round, kElements) == job::SubmitResult::kAccepted);
    for (int step = 0; step < 8; ++step) {
      now = now + Duration::ms(1);
      pass(leaf, 1, root, is_last);
      pass(root, 0, leaf, false);
    }
    CHECK(leaf.holds_sum(0, round, kElements));
  }
  REQUIRE(leaf.job().take_ended_plan() != nullptr);
  CHECK(root.job().take_ended_plan() == nullptr);  // the root has no ack of the last result
  for (int step = 0; step < 200 && root.job().peers()[0].flow.in_flight() > 0; ++step) {
    now = now + Duration::ms(1);
    root.node().tick(now);
    leaf.node().tick(now);
    pass(root, 0, leaf, false);
    pass(leaf, 1, root, false);
  }
  CHECK(leaf.drops(hop::Drop::kPastRound) > 0);
  const auto ended = root.job().take_ended_plan();
  REQUIRE(ended != nullptr);
  CHECK(ended->epoch() == 1);
}

TEST_CASE("a plan may bring peers, and a peer keeps what is known of it") {
  CoreNode node(config_of(star(1, 0, 2), 0));
  CHECK(node.job().peers().size() == 1);
  auto plan = part_of(star(2, 2, 3), node);
  REQUIRE(node.job().prepare(plan).refusal == PlanRefusal::kNone);
  REQUIRE(node.job().peers().size() == 2);
  CHECK(node.job().peers()[1].node == 2);
  CHECK(node.job().peers()[0].edges.size() == 1);
  CHECK(node.job().peers()[1].edges.size() == 1);
  const auto back = node.job().abort(2);
  CHECK(node.job().peers().size() == 2);
  CHECK(node.job().peers()[0].edges.size() == 1);
  CHECK(node.job().peers()[1].edges.empty());
}

TEST_CASE("a plan knows which of its hosts the plan before has, in whatever order") {
  constexpr std::uint16_t kOld = 70;  // more than the bits of a word
  constexpr std::uint16_t kAll = 200;
  api::Plan before = star(1, 0, kOld);
  std::reverse(before.members.begin(), before.members.end());
  std::reverse(before.trees[0].parent.begin(), before.trees[0].parent.end());
  const job::JobConfig first = config_of(before, 0);
  const job::JobConfig second = config_of(star(2, 0, kAll), 0);
  const job::Plan old_plan(first, first);
  job::Plan plan(second, second);
  plan.follow(old_plan);
  for (std::uint16_t host = 0; host < kAll; ++host) {
    CHECK(aggregate::has_host(plan.hosts_of_plan_before(), host) == (host < kOld));
  }
  job::Plan back(first, first);
  back.follow(plan);
  CHECK(std::ranges::equal(back.hosts_of_plan_before(), back.hosts().all()));
  back.follow(old_plan);
  CHECK(std::ranges::equal(back.hosts_of_plan_before(), back.hosts().all()));
}

TEST_CASE("a job that joins opens no round before its plan is committed, and begins with that") {
  const api::Plan first = star(5, 0, 2);
  job::JobConfig config = config_of(first, 0);
  config.local_ranks = {};
  config.joins = true;
  CoreNode root(std::move(config));
  CHECK(root.job().is_joining());
  std::uint64_t number = 0;
  const auto deliver = [&](std::uint32_t round) {
    Sent push = push_of(first, round);
    wire::number_unsealed(push.bytes, ++number);
    root.deliver(1, push.bytes, kStart);
  };
  deliver(0);
  deliver(1000);
  CHECK(root.drops(hop::Drop::kFutureRound) == 2);
  auto further = part_of(star_below(6, 0, 2), root);
  CHECK(root.job().prepare(further).refusal == PlanRefusal::kTooMany);
  CHECK(root.job().abort(5) == nullptr);
  CHECK_FALSE(root.job().commit(6, 1000));
  CHECK(root.job().is_joining());
  REQUIRE(root.job().commit(5, 1000));
  deliver(999);
  CHECK(root.drops(hop::Drop::kPastRound) == 1);
  CHECK(root.job().counters().blocks_received == 0);
  deliver(1000);
  CHECK(root.job().counters().blocks_received == 1);
  // The horizon is that of a node whose first round is this one.
  CHECK(root.job().prepare(further).horizon == 1000 + kMaxActivationMarginRounds);
}

TEST_CASE("a peer that no plan has named for a while begins anew, with the key of the plan") {
  job::JobConfig config = config_of(star(1, 0, 2), 0);
  config.grants = true;
  config.authenticate = true;
  config.key = {};
  job::Job job(config);
  grants::GrantScheduler scheduler({.max_sources = 2, .max_jobs = 1});
  REQUIRE(job.join(scheduler, grants::JobIndex(0)));
  const auto part = [&](const api::Plan& plan, std::byte key) {
    job::PlanConfig local = engine::local_plan(plan, 0, {}, true);
    local.key.fill(key);
    return std::make_unique<job::Plan>(local, config);
  };
  const auto prepare = [&](const api::Plan& plan, std::byte key) {
    auto made = part(plan, key);
    return job.prepare(made).refusal == PlanRefusal::kNone;
  };
  const auto has_key = [&](std::size_t peer, std::byte byte) {
    wire::Key key;
    key.fill(byte);
    return job.peers()[peer].key->tag({}, {}) == wire::Gmac(key).tag({}, {});
  };
  REQUIRE(prepare(star(2, 0, 3), std::byte{2}));
  CHECK(has_key(0, std::byte{0}));  // peer 0 was in the plan before
  CHECK(has_key(1, std::byte{2}));
  CHECK(job.sources().size() == 2);
  CHECK(job.abort(2) != nullptr);
  CHECK(job.sources()[1] == job::Incoming::kNoSource);
  REQUIRE(prepare(star(3, 0, 3), std::byte{3}));
  CHECK(has_key(0, std::byte{0}));
  CHECK(has_key(1, std::byte{3}));
  CHECK(job.sources()[1] != job::Incoming::kNoSource);
  CHECK(job.peers().size() == 2);
}

TEST_CASE("ranks that a plan leaves out submit none of its rounds, and the plan before ends") {
  CoreNode node(config_of(star(1, 0, 1), 0));
  api::Plan other = star(2, 0, 1);
  other.members[0].node = other.trees[0].root = 5;
  auto plan = part_of(other, node);
  const std::uint32_t activation = node.job().prepare(plan).horizon;
  REQUIRE(node.job().commit(2, activation));
  run_alone(node, 0, activation);
  CHECK(node.submit(0, activation, kElements) == job::SubmitResult::kBusy);
  CHECK(node.job().waiting().open_rounds == 0);
  CHECK(node.job().take_ended_plan() != nullptr);
  CHECK(node.submit(0, activation, kElements) == job::SubmitResult::kBusy);
}

TEST_CASE("a plan that gives a node a part with other ranks than it has is refused") {
  CoreNode node(config_of(star(1, 0, 2), 0));
  auto without = part_of(star_below(2, 0, 2), node);
  CHECK(node.job().prepare(without).refusal == PlanRefusal::kOtherRanks);
  CHECK(without != nullptr);
  api::Plan more = star(2, 0, 2);
  more.members[0].ranks.push_back(2);
  auto with_more = part_of(more, node);
  CHECK(node.job().prepare(with_more).refusal == PlanRefusal::kOtherRanks);

  job::JobConfig config = config_of(star_below(1, 0, 2), 0);
  config.local_ranks = {};
  CoreNode aggregator(std::move(config));
  auto with_ranks = part_of(star(2, 0, 2), aggregator);
  CHECK(aggregator.job().prepare(with_ranks).refusal == PlanRefusal::kOtherRanks);
  auto as_before = part_of(star_below(2, 0, 2), aggregator);
  CHECK(aggregator.job().prepare(as_before).refusal == PlanRefusal::kNone);
}

TEST_CASE("nobody goes on without a host before it has all results of the rounds that it had") {
  CoreNode root(config_of(star(1, 0, 2), 0));
  CoreNode leaf(config_of(star(1, 0, 2), 1));
  std::uint32_t activation = 0;
  for (CoreNode* node : {&root, &leaf}) {
    auto plan = part_of(star(2, 0, 1), *node);
    activation = node->job().prepare(plan).horizon;
  }
  REQUIRE(root.job().commit(2, activation));
  REQUIRE(leaf.job().commit(2, activation));
  Instant now = kStart;
  for (std::uint32_t round = 0; round < activation; ++round) {
    REQUIRE(root.submit(0, round, kElements) == job::SubmitResult::kAccepted);
    REQUIRE(leaf.submit(0, round, kElements) == job::SubmitResult::kAccepted);
    for (int step = 0; step < 8; ++step) {
      now = now + Duration::ms(1);
      for (const Sent& packet : leaf.drain(now)) root.deliver(1, packet.bytes, now);
      for (const Sent& packet : root.drain(now)) leaf.deliver(0, packet.bytes, now);
    }
    CHECK(root.events().size() == 1);
  }
  REQUIRE(root.job().take_ended_plan() != nullptr);
  CHECK(root.submit(0, activation, kElements) == job::SubmitResult::kBusy);
  root.job().end_older_plan(2);
  CHECK(root.submit(0, activation, kElements) == job::SubmitResult::kBusy);
  root.job().end_older_plan(1);
  run_alone(root, activation, activation + 40);
}
