// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "control/protocol/node_messages.h"
#include "control/session/bit_stream.h"
#include "control/session/plan_codec.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/operation.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;

namespace {

bool same(const api::Plan& a, const api::Plan& b) {
  if (a.epoch != b.epoch || a.kind != b.kind || a.activation_round != b.activation_round)
    return false;
  if (a.members.size() != b.members.size() || a.trees.size() != b.trees.size()) return false;
  for (std::size_t i = 0; i < a.members.size(); ++i)
    if (a.members[i].node != b.members[i].node || a.members[i].ranks != b.members[i].ranks)
      return false;
  for (std::size_t i = 0; i < a.trees.size(); ++i)
    if (a.trees[i].weight != b.trees[i].weight || a.trees[i].root != b.trees[i].root ||
        a.trees[i].parent != b.trees[i].parent)
      return false;
  return std::equal(a.routes.begin(), a.routes.end(), b.routes.begin(), b.routes.end(),
                    [](const api::Route& x, const api::Route& y) {
                      return x.from == y.from && x.to == y.to && x.via == y.via;
                    });
}

/// A plan of `nodes` members with one rank each and `trees` stars.
api::Plan stars(std::size_t nodes, std::size_t trees) {
  api::Plan plan;
  plan.epoch = 5;
  plan.activation_round = 6;
  plan.kind = PlanKind::kSharded;
  for (std::size_t i = 0; i < nodes; ++i)
    plan.members.push_back({static_cast<api::NodeId>(i), {static_cast<std::uint16_t>(i)}});
  for (std::size_t t = 0; t < trees; ++t) {
    api::Tree& tree = plan.trees.emplace_back();
    tree.weight = static_cast<std::uint32_t>(t + 1);
    tree.root = static_cast<api::NodeId>(t);
    for (std::size_t i = 0; i < nodes; ++i)
      tree.parent.push_back(i == t ? api::kNoNode : static_cast<api::NodeId>(t));
  }
  return plan;
}

}  // namespace

TEST_CASE("plans come through unchanged, the largest of stars included") {
  for (const auto& [nodes, trees] : std::vector<std::pair<std::size_t, std::size_t>>{
           {1, 1}, {2, 2}, {5, 1}, {9, 9}, {kMaxNodes, 1}, {kMaxNodes, kMaxTrees}}) {
    INFO(nodes << " nodes, " << trees << " trees");
    const api::Plan plan = stars(nodes, trees);
    const auto bytes = encode_plan(plan);
    REQUIRE(bytes.ok());
    CHECK(bytes.value().size() < protocol::kMaxPlanBytes / 4);
    const auto back = decode_plan(bytes.value());
    REQUIRE(back.ok());
    CHECK(same(plan, back.value()));
  }
}

TEST_CASE("a member with as many ranks as a node may have comes through") {
  api::Plan plan = stars(2, 1);
  plan.members[1].ranks.clear();
  for (std::uint16_t rank = 1; rank <= kMaxLocalRanks; ++rank)
    plan.members[1].ranks.push_back(rank);
  const auto bytes = encode_plan(plan);
  REQUIRE(bytes.ok());
  const auto back = decode_plan(bytes.value());
  REQUIRE(back.ok());
  CHECK(same(plan, back.value()));
}

TEST_CASE("auxiliary routes come through") {
  api::Plan plan = stars(4, 1);
  const std::size_t without = encode_plan(plan).value().size();
  plan.routes = {{1, 0, {2}}, {1, 0, {3}}, {0, 2, {1, 3}}};
  const std::vector<std::byte> bytes = encode_plan(plan).value();
  CHECK(bytes.size() <= without + (2 * 11 + 14 + 7) / 8);
  const auto back = decode_plan(bytes);
  REQUIRE(back.ok());
  CHECK(same(plan, back.value()));
  for (std::size_t size = without + 1; size < bytes.size(); ++size) {
    CHECK_FALSE(decode_plan(std::span(bytes).first(size)).ok());
  }
  plan.routes = {{1, 0, {2, 3, 1}}};
  CHECK_FALSE(encode_plan(plan).ok());
  plan.routes = {{1, 0, {4}}};
  CHECK_FALSE(encode_plan(plan).ok());
}

TEST_CASE("soundings come through, with routes and without, and are checked") {
  for (const bool has_routes : {false, true}) {
    CAPTURE(has_routes);
    api::Plan plan = stars(4, 1);
    if (has_routes) plan.routes = {{1, 0, {2}}};
    plan.soundings = {{1, 2}, {3, 1}};
    const std::vector<std::byte> bytes = encode_plan(plan).value();
    const auto back = decode_plan(bytes);
    REQUIRE(back.ok());
    CHECK(same(plan, back.value()));
    CHECK(back.value().soundings == plan.soundings);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      CHECK_FALSE(decode_plan(std::span(bytes).first(size)).ok());
    plan.soundings = {{1, 4}};
    CHECK_FALSE(encode_plan(plan).ok());
    plan.soundings.assign(kMaxSoundings + 1, {1, 2});
    CHECK_FALSE(encode_plan(plan).ok());
  }
}

TEST_CASE("selections come through, the most there can be included, and are checked") {
  for (const std::size_t members : {std::size_t{2}, std::size_t{5}, kMaxTrees}) {
    CAPTURE(members);
    std::mt19937 random(static_cast<unsigned>(members));
    api::Plan plan = stars(members, members);
    std::swap(plan.members.front(), plan.members.back());  // only receivers ascend
    plan.selections.resize(kMaxSelections);
    for (api::Selection& selection : plan.selections) {
      for (const api::Member& sender : plan.members) {
        std::vector<api::NodeId>& receivers = selection.receivers.emplace_back();
        for (api::NodeId node = 0; node < members; ++node)
          if (node != sender.node && random() % 3 == 0) receivers.push_back(node);
      }
    }
    const std::vector<std::byte> bytes = encode_plan(plan).value();
    const auto back = decode_plan(bytes);
    REQUIRE(back.ok());
    CHECK(same(plan, back.value()));
    CHECK(back.value().selections == plan.selections);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      CHECK_FALSE(decode_plan(std::span(bytes).first(size)).ok());
    plan.selections.clear();
    CHECK(bytes.size() - encode_plan(plan).value().size() <=
          kMaxSelections * members * (members - 1) / 8 + 1);
  }
}

TEST_CASE("selections that no plan can have are not encoded") {
  api::Plan plan = stars(3, 3);
  plan.selections = {{{{1, 2}, {0}, {}}}};
  REQUIRE(encode_plan(plan).ok());
  SECTION("too many") {
    plan.selections.resize(kMaxSelections + 1, plan.selections[0]);
  }
  SECTION("of too many members") {
    plan = stars(kMaxTrees + 1, 1);
    plan.selections.resize(1);
    plan.selections[0].receivers.resize(kMaxTrees + 1);
  }
  SECTION("of too few senders") {
    plan.selections[0].receivers.pop_back();
  }
  SECTION("a receiver that is no member") {
    plan.selections[0].receivers[2] = {3};
  }
  SECTION("a receiver of its own") {
    plan.selections[0].receivers[2] = {2};
  }
  SECTION("a receiver twice") {
    plan.selections[0].receivers[2] = {1, 1};
  }
  SECTION("receivers that do not ascend") {
    plan.selections[0].receivers[0] = {2, 1};
  }
  CHECK_FALSE(encode_plan(plan).ok());
}

TEST_CASE("a plan of deep trees comes through, one that is too large says so") {
  std::mt19937 random(1);
  api::Plan plan = stars(kMaxNodes, 20);
  for (api::Tree& tree : plan.trees)
    for (api::NodeId& parent : tree.parent)
      if (parent != api::kNoNode) parent = static_cast<api::NodeId>(random() % kMaxNodes);
  const auto bytes = encode_plan(plan);
  REQUIRE(bytes.ok());
  const auto back = decode_plan(bytes.value());
  REQUIRE(back.ok());
  CHECK(same(plan, back.value()));
  while (plan.trees.size() < kMaxTrees) {
    api::Tree& tree = plan.trees.emplace_back(plan.trees.front());
    std::shuffle(tree.parent.begin(), tree.parent.end(), random);
  }
  const auto too_large = encode_plan(plan);
  REQUIRE(!too_large.ok());
  CHECK(too_large.error().message.find("bytes") != std::string::npos);
}

TEST_CASE("what is no plan within the bounds is not encoded") {
  api::Plan plan = stars(2, 1);
  SECTION("no trees") {
    plan.trees.clear();
  }
  SECTION("no members") {
    plan.members.clear();
  }
  SECTION("a parent too few") {
    plan.trees[0].parent.pop_back();
  }
  SECTION("ranks") {
    plan.members[0].ranks.resize(kMaxLocalRanks + 1);
  }
  SECTION("trees") {
    plan.trees.resize(kMaxTrees + 1, plan.trees[0]);
  }
  SECTION("a root that is no member") {
    plan.trees[0].root = 7;
  }
  SECTION("a parent that is no member") {
    plan.trees[0].parent[0] = 7;
  }
  CHECK(!encode_plan(plan).ok());
}

TEST_CASE("a plan with anything wrong in it is refused") {
  api::Plan plan = stars(3, 2);
  const auto good = encode_plan(plan);
  SECTION("a node twice") {
    plan.members[2].node = 0;
  }
  SECTION("a rank twice") {
    plan.members[1].ranks[0] = 0;
  }
  SECTION("a rank out of range") {
    plan.members[1].ranks[0] = kMaxRanks;
  }
  SECTION("a node out of range") {
    plan.members[2].node = kMaxNodes;
  }
  SECTION("weight 0") {
    plan.trees[1].weight = 0;
  }
  SECTION("a strange kind") {
    plan.kind = static_cast<PlanKind>(kPlanKindNames.size());
  }
  const auto bytes = encode_plan(plan);
  REQUIRE(bytes.ok());
  REQUIRE(bytes.value() != good.value());
  CHECK(!decode_plan(bytes.value()).ok());
}

TEST_CASE("trees of one network take some bits for each parent") {
  // Nodes are neighbours of nodes with similar numbers, as in a grid.
  constexpr std::size_t kNodes = 1000;
  constexpr std::size_t kTrees = 8;
  constexpr std::size_t kNear = 4;
  std::mt19937 random(2);
  api::Plan plan = stars(kNodes, kTrees);
  for (api::Tree& tree : plan.trees) {
    tree.root = 0;
    tree.parent[0] = api::kNoNode;
    for (std::size_t m = 1; m < kNodes; ++m)
      tree.parent[m] = static_cast<api::NodeId>(m - std::min(m, 1 + random() % kNear));
  }
  const auto bytes = encode_plan(plan);
  REQUIRE(bytes.ok());
  CHECK(bytes.value().size() < kNodes * kTrees);  // one byte for each parent would be more
  const auto back = decode_plan(bytes.value());
  REQUIRE(back.ok());
  CHECK(same(plan, back.value()));
}

namespace {

struct Odd {
  std::uint32_t root = 0;
  std::uint32_t first_parent = 5;  // the place behind five members: no parent
  std::uint32_t neighbour = 0;     // codes the first member's parent in the second tree
};

/// Writes a plan of five members and two stars, bit by bit.
std::vector<std::byte> raw_plan(const Odd& odd) {
  constexpr unsigned kPlaceBits = 3;
  BitWriter out;
  for (const std::uint32_t number : {1U, 0U}) out.write(number, 32);  // epoch and round
  out.write(0, 3);                                                    // star
  out.write(5, 11);
  for (int m = 0; m < 5; ++m) out.write(1, 1);  // a flag: the next node has the next rank
  out.write(2, 7);
  for (int t = 0; t < 2; ++t) {
    out.write(1, 32);  // weight
    out.write(odd.root, kPlaceBits);
    out.write(0, kPlaceBits);  // no runs
    if (t == 0) {
      out.write(odd.first_parent, kPlaceBits);
      for (int m = 1; m < 5; ++m) out.write(0, kPlaceBits);
    } else {
      out.write(odd.neighbour, kPlaceBits);  // no neighbour, or one of four
      for (int m = 1; m < 5; ++m) out.write(0, 1);
    }
  }
  out.write(0, 16);  // routes
  out.write(0, 10);  // soundings
  out.write(0, 4);   // selections
  return out.take();
}

}  // namespace

namespace {

/// Writes a plan of so many members and one star, bit by bit, with empty selections.
std::vector<std::byte> raw_star(std::uint32_t members, std::uint32_t selections) {
  const auto place_bits = static_cast<unsigned>(std::bit_width(members));
  BitWriter out;
  for (const std::uint32_t number : {1U, 0U}) out.write(number, 32);  // epoch and round
  out.write(1, 3);                                                    // sharded
  out.write(members, 11);
  for (std::uint32_t m = 0; m < members; ++m) out.write(1, 1);
  out.write(1, 7);
  out.write(1, 32);  // weight
  // The root and two runs of parents: the root has no parent, and the others have the root.
  for (const std::uint32_t place : {0U, 2U, 1U, members, members - 1, 0U})
    out.write(place, place_bits);
  out.write(0, 16);  // routes
  out.write(0, 10);  // soundings
  out.write(selections, 4);
  for (std::uint32_t bit = 0; bit < selections * members * (members - 1); ++bit) out.write(0, 1);
  return out.take();
}

}  // namespace

TEST_CASE("more selections than a plan may have are refused, and any of too many members") {
  CHECK(decode_plan(raw_star(3, 0)).ok());
  CHECK(decode_plan(raw_star(3, kMaxSelections)).value().selections.size() == kMaxSelections);
  CHECK_FALSE(decode_plan(raw_star(3, kMaxSelections + 1)).ok());
  CHECK(decode_plan(raw_star(kMaxTrees, 1)).ok());
  CHECK(decode_plan(raw_star(kMaxTrees + 1, 0)).ok());
  CHECK_FALSE(decode_plan(raw_star(kMaxTrees + 1, 1)).ok());
}

TEST_CASE("a place behind the last member is refused") {
  const auto plan = decode_plan(raw_plan({}));
  REQUIRE(plan.ok());
  CHECK(encode_plan(plan.value()).value() == raw_plan({}));
  CHECK(plan.value().trees[1].parent == plan.value().trees[0].parent);
  CHECK_FALSE(decode_plan(raw_plan({.root = 5})).ok());  // no member
  CHECK_FALSE(decode_plan(raw_plan({.root = 6})).ok());
  CHECK_FALSE(decode_plan(raw_plan({.first_parent = 6})).ok());
  CHECK_FALSE(decode_plan(raw_plan({.neighbour = 6})).ok());
  CHECK_FALSE(decode_plan(raw_plan({.neighbour = 7})).ok());
  std::vector<std::byte> filled = raw_plan({});  // 218 bits and six padding zeros
  filled.back() |= std::byte{1};
  CHECK_FALSE(decode_plan(filled).ok());
}

TEST_CASE("a plan that is cut or goes on is refused, and no damage does harm") {
  std::vector<std::byte> bytes = encode_plan(stars(40, 3)).value();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    REQUIRE(!decode_plan(std::span(bytes).first(size)).ok());
  bytes.push_back(std::byte{0});
  CHECK(!decode_plan(bytes).ok());
  bytes.pop_back();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> damaged = bytes;
      damaged[at] = static_cast<std::byte>(value);
      const auto plan = decode_plan(damaged);
      if (plan.ok()) CHECK(encode_plan(plan.value()).ok());
    }
  }
}
