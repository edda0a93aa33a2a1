// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The groups that a daemon's port joins and leaves as plans come and go.
#include "control/daemon/groups.h"

#include <array>
#include <cstdlib>
#include <set>

#include "dataplane/engine/local_plan.h"
#include "dataplane/port/group_address.h"
#include "tests/unit/daemon_bench.h"

using namespace gradplane;
using namespace gradplane::daemon;
using namespace gradplane::daemon::testing;

namespace {

using Groups = std::set<port::Group>;

/// A port that can join `room` groups.
class FakePort final : public port::Port {
 public:
  std::size_t queue_count() const noexcept override { return 0; }
  port::PortQueue& queue(std::size_t) noexcept override { std::abort(); }
  Status join_group(const port::Group& group) override {
    CHECK_FALSE(groups.contains(group));
    if (groups.size() == room) return Error{"port: it is full; leave one"};
    groups.insert(group);
    ++joins;
    return Nothing{};
  }
  void leave_group(const port::Group& group) override { CHECK(groups.erase(group) == 1); }
  std::size_t mtu_payload_bytes() const noexcept override { return 1472; }
  Ipv4 address() const noexcept override { return {}; }

  Groups groups;
  std::size_t room = port::kMaxGroups;
  std::size_t joins = 0;
};

/// Node 1 of three. Every plan has a root with the two others as children.
struct GroupBench {
  GroupBench() {
    bench.config.self = 1;
    bench.config.cluster.udp_port = 47000;
    bench.config.multicast.enabled = true;
  }

  static api::Plan plan(std::uint32_t epoch, api::NodeId root = 0) {
    api::Plan plan = gradplane::testing::star_of(3);
    plan.epoch = epoch;
    plan.trees[0].root = root;
    for (api::NodeId n = 0; n < 3; ++n) plan.trees[0].parent[n] = n == root ? api::kNoNode : root;
    return plan;
  }
  void install(std::uint32_t id, api::NodeId root = 0, bool grants = false) {
    if (!bench.ranks.contains(kHandle)) bench.attach(kHandle);
    session::InstallJob order = JobBench::order(id);
    order.plan = plan(1, root);
    order.grants = grants;
    order.local_ranks = {{kHandle, 1}};
    REQUIRE(bench.jobs.install(order, bench.ranks));
    runtime = bench.next().job;
  }
  void prepare(std::uint32_t id, std::uint32_t epoch, api::NodeId root = 0) {
    session::PreparePlan order;
    order.job_id = id;
    order.first_epoch = 1;
    order.plan = plan(epoch, root);
    REQUIRE(bench.jobs.prepare_plan(order));
  }
  void commit(std::uint32_t id, std::uint32_t epoch) {
    bench.jobs.commit_plan(
        {.job_id = id, .first_epoch = 1, .epoch = epoch, .activation_round = 99});
  }
  Groups of(std::uint32_t id, std::uint32_t epoch, api::NodeId root = 0) const {
    return {port::group_of({.job = id, .epoch = epoch, .sender = root, .tree = 0},
                           bench.config.multicast.range, 47000)};
  }
  Groups now() {
    warning = membership.follow(bench.jobs);
    CHECK(membership.joined_count() == port.groups.size());
    return port.groups;
  }

  JobBench bench;
  FakePort port;
  GroupMembership membership{bench.config, port};
  std::optional<std::string> warning;
  engine::JobRuntime* runtime = nullptr;
};

Groups operator+(Groups a, const Groups& b) {
  a.insert(b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("the port is in the groups of a job's parents while the job is here") {
  GroupBench g;
  CHECK(g.now().empty());
  g.install(5);
  CHECK(g.now() == g.of(5, 1));
  g.bench.jobs.remove(5, 1);
  CHECK(g.now() == g.of(5, 1));  // rounds under this plan may still be open
  g.bench.jobs.on_returned(g.runtime);
  CHECK(g.now().empty());
  CHECK_FALSE(g.warning);
}

TEST_CASE("a group is at the UDP port of the core that has its tree") {
  GroupBench g;
  g.bench.config.poll.cores = {2, 3};
  auto channel = make_channel(kRoundBytes, 2);
  REQUIRE(channel.ok());
  g.bench.ranks[kHandle].channel = std::move(channel.value().channel);
  std::array<api::CommandQueue, 2> queues{api::CommandQueue(8), api::CommandQueue(8)};
  JobTable jobs(g.bench.config, {&queues[0], &queues[1]});
  session::InstallJob order = JobBench::order(5);
  order.plan = GroupBench::plan(1);
  order.local_ranks = {{kHandle, 1}};
  REQUIRE(jobs.install(order, g.bench.ranks));
  g.warning = g.membership.follow(jobs);
  Groups expected;
  for (std::uint8_t tree = 0; tree < 2; ++tree) {
    const auto udp_port = static_cast<std::uint16_t>(47000 + CorePart{0, 2}.part_of(tree));
    expected.insert(port::group_of({.job = 5, .epoch = 1, .sender = 0, .tree = tree},
                                   g.bench.config.multicast.range, udp_port));
  }
  CHECK(g.port.groups == expected);
}

TEST_CASE("a daemon that ends leaves all groups") {
  GroupBench g;
  g.install(5);
  CHECK_FALSE(g.now().empty());
  g.membership.leave_all();
  CHECK(g.port.groups.empty());
  CHECK(g.membership.joined_count() == 0);
}

TEST_CASE("a root is in no group of its own") {
  GroupBench g;
  g.install(5, 1);
  CHECK(g.now().empty());
}

TEST_CASE("the port is in the groups of two plans until the older one has been given back") {
  GroupBench g;
  g.install(5);
  g.prepare(5, 2, 2);
  CHECK(g.now() == g.of(5, 1) + g.of(5, 2, 2));
  g.commit(5, 2);
  CHECK(g.now() == g.of(5, 1) + g.of(5, 2, 2));
  g.bench.return_plan(g.runtime, 1);
  CHECK(g.now() == g.of(5, 2, 2));
}

TEST_CASE("the groups of a plan that was aborted are left, and nothing else") {
  GroupBench g;
  g.install(5);
  g.prepare(5, 2, 2);
  g.bench.jobs.abort_plan({.job_id = 5, .first_epoch = 1, .epoch = 2});
  CHECK(g.now() == g.of(5, 1) + g.of(5, 2, 2));
  g.bench.return_plan(g.runtime, 2);
  CHECK(g.now() == g.of(5, 1));
}

TEST_CASE("two plans may have one address: it is left when neither needs it") {
  GroupBench g;
  g.bench.config.multicast.range = {.first = {0xef470100}, .prefix_length = 24};
  std::uint32_t twin = 6;
  while (g.of(twin, 1) != g.of(5, 1)) ++twin;
  g.install(5);
  engine::JobRuntime* const first = g.runtime;
  g.install(twin);
  CHECK(g.now() == g.of(5, 1));
  g.bench.jobs.on_returned(first);
  CHECK(g.now() == g.of(5, 1));
  g.bench.jobs.on_returned(g.runtime);
  CHECK(g.now().empty());
}

TEST_CASE("nothing is joined twice, or looked for while no plan changes") {
  GroupBench g;
  g.install(5);
  for (int i = 0; i < 3; ++i) g.now();
  g.install(6);
  for (int i = 0; i < 3; ++i) g.now();
  CHECK(g.port.joins == 2);
}

TEST_CASE("where multicast is off or the job has grants, the port is in no group") {
  GroupBench g;
  g.install(5);
  g.bench.config.multicast.enabled = false;
  CHECK(g.now().empty());
  g.bench.config.multicast.enabled = true;
  CHECK(g.now() == g.of(5, 1));
  g.install(6, 0, true);
  CHECK(g.now() == g.of(5, 1));
}

TEST_CASE("what cannot be joined is warned of once, and joined when there is room") {
  GroupBench g;
  g.port.room = 1;
  g.install(5);
  g.now();
  CHECK_FALSE(g.warning);
  engine::JobRuntime* const first = g.runtime;
  g.install(6);
  g.now();
  REQUIRE(g.warning);
  CHECK(*g.warning ==
        "1 of 2 groups cannot be joined, so what goes to them comes by unicast: port: it is "
        "full; leave one");
  g.install(7);
  g.now();
  CHECK_FALSE(g.warning);
  g.bench.jobs.on_returned(first);
  CHECK(g.now().size() == 1);
  CHECK_FALSE(g.warning);
  g.port.room = 2;
  g.install(8, 1);  // any change of plans makes the port try again
  CHECK(g.now() == g.of(6, 1) + g.of(7, 1));
  g.port.room = 2;
  g.install(9);
  g.now();
  CHECK(g.warning);  // a new warning
}
