// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "control/session/coordinator.h"
#include "control/session/member.h"
#include "control/session/plan_codec.h"
#include "tests/property/session_network.h"
#include "tests/support/catch.h"

/// The coordinator or a member alone, for tables of messages.
namespace gradplane::session::testing {

using namespace gradplane::protocol;

inline const JobKey kKey = key_number(1);
inline const Instant kNow = Instant::from_ns(1000);

struct TestConfig : SessionConfig {
  Planner planner;  // answers MakePlan
};

inline TestConfig config(api::NodeId self, api::NodeId coordinator) {
  TestConfig c;
  c.self = self;
  c.coordinator = coordinator;
  c.node_names = {"n0", "n1", "n2"};
  c.incarnation = 40;  // so that the first epoch is 41
  c.planner = sharded_planner();
  c.check_plan = [](const api::Plan&) -> Status { return Nothing{}; };
  return c;
}

/// Takes the letters of one kind. Other letters are dropped.
template <typename Message>
std::vector<std::pair<api::NodeId, Message>> letters(Outbox& outbox) {
  std::vector<std::pair<api::NodeId, Message>> found;
  for (const Outbox::Letter& letter : outbox.letters)
    if (const auto* m = std::get_if<Message>(&letter.message)) found.emplace_back(letter.node, *m);
  outbox.letters.clear();
  return found;
}

template <typename Kind>
std::size_t count_actions(Outbox& outbox) {
  std::size_t count = 0;
  for (const Action& action : outbox.actions) count += std::holds_alternative<Kind>(action);
  outbox.actions.clear();
  return count;
}

/// A plan with rank 0 on this node (1) and rank 1 on node 0. Node 0 coordinates.
inline Prepare prepare(std::uint32_t attempt, std::uint32_t epoch, std::uint16_t our_rank = 0) {
  const auto other_rank = static_cast<std::uint16_t>(1 - our_rank);
  api::Plan plan;
  plan.epoch = epoch;
  plan.members = {{0, {other_rank}}, {1, {our_rank}}};
  plan.trees = {{1, 0, {api::kNoNode, 0}}};
  return {kKey, attempt, epoch, epoch, 2, {}, "job", encode_plan(plan).value()};
}

struct MemberBench {
  MemberBench() { REQUIRE(member.attach({7, kRootUser, kKey, 0, 2, "job"}, kNow).ok()); }
  TestConfig c = config(1, 0);
  Outbox outbox;
  Member member{c, outbox};
};

/// A coordinator whose planner answers at once. If `planner_works` is false, orders wait in
/// `orders`.
class PlannedCoordinator : public Coordinator {
 public:
  PlannedCoordinator(const TestConfig& config, Outbox& outbox)
      : Coordinator(config, outbox), config_(config), outbox_(outbox) {}

  bool on_message(api::NodeId from, const NodeMessage& message, Instant now) {
    const bool taken = Coordinator::on_message(from, message, now);
    make_plans(now);
    return taken;
  }
  void tick(Instant now) {
    Coordinator::tick(now);
    make_plans(now);
  }
  void make_plans(Instant now) {
    for (std::size_t i = 0; i < outbox_.actions.size(); ++i)
      if (const auto* order = std::get_if<MakePlan>(&outbox_.actions[i])) orders.push_back(*order);
    std::erase_if(outbox_.actions,
                  [](const Action& action) { return std::holds_alternative<MakePlan>(action); });
    while (planner_works && !orders.empty()) {
      const MakePlan order = orders.front();
      orders.erase(orders.begin());
      on_plan_made(order.ticket, config_.planner(order.input), now);
      make_plans(now);
    }
  }

  bool planner_works = true;
  std::vector<MakePlan> orders;

 private:
  const TestConfig& config_;
  Outbox& outbox_;
};

struct CoordinatorBench {
  void join(api::NodeId node, std::uint32_t attempt, std::vector<std::uint16_t> ranks) {
    REQUIRE(coordinator.on_message(node, Join{kKey, attempt, kRootUser, 2, std::move(ranks), "job"},
                                   now));
  }
  /// Like prepared_job(), and then makes the job ready.
  std::uint32_t ready_job() {
    const std::uint32_t epoch = prepared_job();
    for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
      coordinator.on_message(node, Prepared{kKey, epoch, false, 0}, now);
    outbox.letters.clear();
    return epoch;
  }
  /// Prepares a job with rank 0 on node 1 and rank 1 on node 2. Returns the epoch of its plan.
  std::uint32_t prepared_job() {
    join(1, 1, {0});
    join(2, 1, {1});
    const auto sent = letters<Prepare>(outbox);
    REQUIRE(sent.size() == 2);
    return sent[0].second.epoch;
  }
  TestConfig c = config(0, 0);
  Instant now = Instant::from_ns(1000);
  Outbox outbox;
  PlannedCoordinator coordinator{c, outbox};
};

}  // namespace gradplane::session::testing
