// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "tests/unit/session_bench.h"

/// A node that begins to coordinate, and the reports of a job's members.
namespace gradplane::session::testing {

using namespace protocol;  // NOLINT: all that follows are its messages

inline constexpr std::uint32_t kFirst = 50;
inline constexpr std::uint32_t kNext = 60;

inline api::Plan plan_of(std::uint32_t epoch, std::vector<api::Member> members) {
  api::Plan plan;
  plan.epoch = epoch;
  plan.members = std::move(members);
  api::Tree tree;
  tree.root = plan.members[0].node;
  for (const api::Member& member : plan.members)
    tree.parent.push_back(member.node == tree.root ? api::kNoNode : tree.root);
  plan.trees.push_back(tree);
  return plan;
}

/// A job with rank 0 on node 1 and rank 1 on node 2. Node 0 begins to coordinate.
struct TakeoverBench : CoordinatorBench {
  static Report report(std::uint32_t epoch, std::uint32_t next, std::uint32_t before = 0) {
    Report r;
    r.key = kKey;
    r.first_epoch = kFirst;
    r.epoch = epoch;
    r.activation_round = epoch == kNext ? 700 : 0;
    r.next_epoch = next;
    r.epoch_before = before;
    r.ending = before != 0;
    r.newest_epoch = std::max(epoch, next);
    r.attempt = 3;
    r.user = 1000;
    r.world_size = 2;
    r.label = "job";
    return r;
  }
  void say(api::NodeId node, const NodeMessage& message) {
    REQUIRE(coordinator.on_message(node, message, now));
  }
  void tell_plan(api::NodeId node, std::uint32_t epoch) {
    say(node, PlanIs{kKey, kFirst, epoch, encode_plan(plan_of(epoch, members)).value()});
  }
  /// Takes the requests for plans to node 1. Returns their epochs. Other letters stay.
  std::vector<std::uint32_t> take_asks() {
    std::vector<std::uint32_t> epochs;
    std::erase_if(outbox.letters, [&epochs](const Outbox::Letter& letter) {
      const auto* ask = std::get_if<AskPlan>(&letter.message);
      if (ask == nullptr) return false;
      CHECK(letter.node == 1);
      epochs.push_back(ask->epoch);
      return true;
    });
    return epochs;
  }
  /// Node 1 reports, and answers with the plans that the coordinator asks for.
  void begin(const Report& first) {
    say(1, first);
    std::set<std::uint32_t> named{first.epoch, first.next_epoch, first.epoch_before};
    named.erase(0);
    std::set<std::uint32_t> asked;
    while (asked != named) {
      const std::vector<std::uint32_t> asks = take_asks();
      REQUIRE(asks.size() == 1);  // one plan at a time
      REQUIRE(asked.insert(asks[0]).second);
      tell_plan(1, asks[0]);
    }
  }
  std::vector<api::Member> members = {{1, {0}}, {2, {1}}};
  template <typename Message>
  std::set<api::NodeId> told() const {
    std::set<api::NodeId> nodes;
    for (const Outbox::Letter& letter : outbox.letters)
      if (std::holds_alternative<Message>(letter.message)) nodes.insert(letter.node);
    return nodes;
  }
};

using Nodes = std::set<api::NodeId>;

}  // namespace gradplane::session::testing
