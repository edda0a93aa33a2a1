// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/engine/local_plan.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace gradplane;

namespace {

/// Node 0 is the root of tree 0, and node 7 of tree 1. Node 3 relays from node 7 to node 0. Node 5
/// is in no tree.
api::Plan plan() {
  api::Plan p{.epoch = 4, .activation_round = 12, .members = {}, .trees = {}};
  p.members = {{.node = 0, .ranks = {}},
               {.node = 3, .ranks = {4}},
               {.node = 7, .ranks = {0, 1}},
               {.node = 5, .ranks = {2, 3}}};
  const auto no = api::kNoNode;
  p.trees.push_back({.weight = 2, .root = 0, .parent = {no, 0, 3, 0}});
  p.trees.push_back({.weight = 3, .root = 7, .parent = {no, 7, no, 7}});
  return p;
}

job::JobConfig seen_by(api::NodeId self, const std::vector<std::uint64_t>& rates = {}) {
  job::JobConfig config;
  engine::fill_local_plan(config, plan(), self, rates);
  return config;
}

}  // namespace

TEST_CASE("a relay knows its parent, its child and what a complete block of it names") {
  const job::JobConfig config = seen_by(3);
  CHECK(config.world_size == 5);
  CHECK(config.first_round == 12);
  REQUIRE(config.trees.size() == 2);
  const aggregate::TreeConfig& tree = config.trees[0];
  CHECK(tree.member);
  CHECK(config.peers[tree.parent.index()].node == 0);
  REQUIRE(tree.children.size() == 1);
  CHECK(config.peers[tree.children[0].peer.index()].node == 7);
  CHECK(tree.children[0].ranks == 2);
  CHECK(tree.share.begin == 0);
  CHECK(tree.share.weight == 2);
  CHECK(config.trees[1].share.begin == 2);
  CHECK(config.trees[1].share.weight == 3);
}

TEST_CASE("a root has no parent and counts whole subtrees") {
  const job::JobConfig config = seen_by(0);
  const aggregate::TreeConfig& tree = config.trees[0];
  CHECK(tree.parent == hop::kNoPeer);
  REQUIRE(tree.children.size() == 2);
  for (const aggregate::ChildConfig& child : tree.children) {
    CHECK(child.ranks == (config.peers[child.peer.index()].node == 3 ? 3 : 2));
  }
  CHECK_FALSE(config.trees[1].member);
  CHECK(config.trees[1].children.empty());
}

TEST_CASE("a neighbour in several trees is one peer") {
  const job::JobConfig config = seen_by(3);
  CHECK(config.peers.size() == 2);  // 0: parent; 7: child in tree 0, parent in tree 1
  CHECK(config.peers[config.trees[1].parent.index()].node == 7);
}

TEST_CASE("a peer's link is shared evenly by all that send to it") {
  // Nodes 3 (results of tree 0, pushes of tree 1) and 5 send to node 7, nodes 3 and 5 to node 0,
  // and nodes 0 and 7 to node 3.
  const job::JobConfig config = seen_by(3, {1000, 0, 0, 500, 0, 0, 0, 800});
  for (const hop::PeerConfig& peer : config.peers) {
    CHECK(peer.rates.rate_bits_per_second == (peer.node == 0 ? 500 : 400));
    CHECK(peer.rates_of_updates.rate_bits_per_second == peer.rates.rate_bits_per_second);
  }
  for (const hop::PeerConfig& peer : seen_by(3).peers) CHECK(peer.rates.rate_bits_per_second == 0);
}

TEST_CASE("in exchanges a peer's link is shared by those who send it updates, else by all") {
  api::Plan p{.epoch = 1, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < 4; ++n) {
    p.members.push_back({.node = n, .ranks = {n}});
    api::Tree tree{.weight = 1, .root = n, .parent = std::vector<api::NodeId>(4, n)};
    tree.parent[n] = api::kNoNode;
    p.trees.push_back(tree);
  }
  // One node sends to node 1 in the first step, and two do in the second. No node ever sends to
  // node 2.
  p.selections = {{.receivers = {{1}, {0}, {}, {}}}, {.receivers = {{1, 3}, {}, {0}, {1}}}};
  job::JobConfig config;
  engine::fill_local_plan(config, p, 0, {60, 60, 60, 60});
  REQUIRE(config.peers.size() == 3);
  for (const hop::PeerConfig& peer : config.peers) {
    CHECK(peer.rates_of_updates.rate_bits_per_second == (peer.node == 1   ? 30
                                                         : peer.node == 2 ? 20
                                                                          : 60));
    CHECK(peer.rates.rate_bits_per_second == 20);
  }
  for (const hop::PeerConfig& peer : engine::local_plan(p, 0, {60, 60, 60, 60}, true).peers) {
    CHECK(peer.rates_of_updates.rate_bits_per_second == 60);
    CHECK(peer.rates_of_updates.senders() == (peer.node == 1 ? 2 : peer.node == 2 ? 3 : 1));
    CHECK(peer.rates.senders() == 3);
  }
}

TEST_CASE("a node that is no member of a plan is in none of its trees") {
  const job::JobConfig config = seen_by(9);
  CHECK(config.peers.empty());
  CHECK(config.world_size == 5);
  REQUIRE(config.trees.size() == 2);
  for (const aggregate::TreeConfig& tree : config.trees) CHECK_FALSE(tree.member);
  CHECK(config.trees[1].share.begin == 2);
}

TEST_CASE("every node knows the host of each rank and of each root") {
  for (const api::Member& self : plan().members) {
    const job::JobConfig config = seen_by(self.node);
    REQUIRE(config.host_of_rank.size() == 5);
    for (const api::Member& member : plan().members) {
      for (const std::uint16_t rank : member.ranks) {
        CHECK(config.hosts[config.host_of_rank[rank]].node == member.node);
      }
    }
    CHECK(config.trees[0].root_host == aggregate::HostTable::kNone);  // node 0 has no ranks
    CHECK(config.hosts[config.trees[1].root_host].node == 7);
  }
}

TEST_CASE("every node on an auxiliary route knows it and its neighbours there") {
  api::Plan p = plan();
  p.routes = {{.from = 7, .to = 3, .via = {5}}, {.from = 7, .to = 3, .via = {0}}};
  const auto view = [&p](api::NodeId self) { return engine::local_plan(p, self, {}, false); };
  const auto has_peer = [](const job::PlanConfig& config, api::NodeId node, bool with_routes) {
    return std::any_of(config.peers.begin(), config.peers.end(), [&](const hop::PeerConfig& peer) {
      return peer.node == node && peer.has_routes == with_routes;
    });
  };
  const job::PlanConfig sender = view(7);
  REQUIRE(sender.routes.size() == 2);
  CHECK(sender.routes[0].path == 1);
  CHECK(sender.routes[1].path == 2);
  CHECK(sender.routes[1].nodes == std::vector<std::uint16_t>{0, 3});
  CHECK(has_peer(sender, 3, true));
  CHECK(has_peer(sender, 0, false));
  const job::PlanConfig relay = view(0);
  REQUIRE(relay.routes.size() == 1);
  CHECK(relay.routes[0].path == 2);
  CHECK(has_peer(relay, 7, false));
  CHECK(has_peer(relay, 3, false));
  CHECK(view(3).routes.size() == 2);
}

namespace {

/// Trees in which nodes have 0, 1, 2 and 3 children. In tree 0 node 0 has the children 1, 2 and 3.
/// In tree 1 node 1 has 0 and 2, and node 2 has 3. Tree 2 is a chain.
api::Plan plan_with_groups() {
  api::Plan p{.epoch = 4, .activation_round = 0, .members = {}, .trees = {}};
  p.members = {{.node = 0, .ranks = {0}},
               {.node = 1, .ranks = {1}},
               {.node = 2, .ranks = {2}},
               {.node = 3, .ranks = {3}}};
  const auto no = api::kNoNode;
  p.trees.push_back({.weight = 1, .root = 0, .parent = {no, 0, 0, 0}});
  p.trees.push_back({.weight = 1, .root = 1, .parent = {1, no, 1, 2}});
  p.trees.push_back({.weight = 1, .root = 3, .parent = {1, 2, 3, no}});
  return p;
}

std::vector<bool> multicasts(api::NodeId self, bool grants, bool multicast) {
  std::vector<bool> out;
  for (const auto& tree :
       engine::local_plan(plan_with_groups(), self, {}, grants, multicast).trees) {
    out.push_back(tree.multicasts_results);
  }
  return out;
}

}  // namespace

TEST_CASE("a node with several children sends them results together where it may") {
  CHECK(multicasts(0, false, true) == std::vector<bool>{true, false, false});
  CHECK(multicasts(1, false, true) == std::vector<bool>{false, true, false});
  CHECK(multicasts(2, false, true) == std::vector<bool>{false, false, false});
  CHECK(multicasts(0, false, false) == std::vector<bool>{false, false, false});
  CHECK(multicasts(0, true, true) == std::vector<bool>{false, false, false});
  job::JobConfig config;
  engine::fill_local_plan(config, plan_with_groups(), 0, {}, true);
  CHECK(config.trees[0].multicasts_results);
}

TEST_CASE("a node is in the groups of its parents that have one, and of no other") {
  const auto groups = [](api::NodeId self) {
    return engine::groups_of(plan_with_groups(), 7, self);
  };
  const GroupName first{.job = 7, .epoch = 4, .sender = 0, .tree = 0};
  const GroupName second{.job = 7, .epoch = 4, .sender = 1, .tree = 1};
  CHECK(groups(0) == std::vector{second});
  CHECK(groups(1) == std::vector{first});
  CHECK(groups(2) == std::vector{first, second});
  CHECK(groups(3) == std::vector{first});
  CHECK(groups(4).empty());
}

TEST_CASE("a node is in the groups of those whose updates it receives together with others") {
  api::Plan p{.epoch = 4, .activation_round = 0, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < 4; ++n) p.members.push_back({.node = n, .ranks = {n}});
  // Trees need not be in the order of members.
  for (const std::uint16_t root : std::to_array<std::uint16_t>({1, 0, 2, 3})) {
    api::Tree tree{.weight = 1, .root = root, .parent = std::vector<api::NodeId>(4, root)};
    tree.parent[root] = api::kNoNode;
    p.trees.push_back(tree);
  }
  p.selections = {{.receivers = {{1, 2}, {0}, {}, {0, 1, 2}}},
                  {.receivers = {{1, 2, 3}, {2, 3}, {0}, {}}}};
  const auto updates = [&p](api::NodeId self) {
    std::vector<GroupName> names = engine::groups_of(p, 7, self);
    std::erase_if(names, [](const GroupName& name) { return !name.selection; });
    return names;
  };
  const auto name = [](std::uint16_t sender, std::uint8_t tree, std::uint8_t selection) {
    return GroupName{.job = 7, .epoch = 4, .sender = sender, .tree = tree, .selection = selection};
  };
  CHECK(updates(0) == std::vector{name(3, 3, 0)});
  CHECK(updates(1) == std::vector{name(0, 1, 0), name(3, 3, 0), name(0, 1, 1)});
  CHECK(updates(3) == std::vector{name(1, 0, 1), name(0, 1, 1)});
  CHECK(engine::groups_of(p, 7, 3).size() == 3 + 2);  // its own groups and those of its parents
  CHECK(engine::groups_of(p, 7, 9).empty());
  CHECK(engine::local_plan(p, 0, {}, false, true).multicasts_updates);
  CHECK_FALSE(engine::local_plan(p, 0, {}, false, false).multicasts_updates);
  CHECK_FALSE(engine::local_plan(p, 0, {}, true, true).multicasts_updates);
  p.selections.clear();
  CHECK_FALSE(engine::local_plan(p, 0, {}, false, true).multicasts_updates);
}
