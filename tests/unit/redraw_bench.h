// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/session/link_reports.h"
#include "control/session/redraw.h"
#include "tests/support/catch.h"
#include "tests/support/link_samples.h"
#include "tests/unit/session_bench.h"

/// A coordinator that redraws the plan of its job.
namespace gradplane::session::testing {

inline constexpr Duration kEvery = Duration::seconds(5);

/// A bench with a planner that needs the network. It returns a star from `root` with the predicted
/// time `then`, and `in_force` for the plan in force.
struct RedrawBench : CoordinatorBench {
  RedrawBench() {
    c.planner = [this](const PlanInput& input) -> Result<PlanOffer> {
      inputs.push_back(input);
      if (!failure.empty()) return Error{failure};
      PlanInput star = input;
      star.choice = PlanChoice{PlanKind::kStar, {root}};
      Result<PlanOffer> offer = sharded_planner()(star);
      offer.value().planner = planner;
      offer.value().follows_network = follows_network;
      offer.value().is_early = is_early;
      offer.value().time = then;
      offer.value().time_in_force = in_force;
      offer.value().switch_price = price;
      return offer;
    };
  }
  /// Reports the rate of a link, and lets the time pass until a plan may rely on it.
  void report(std::uint64_t bits_per_s, api::NodeId from = 1, api::NodeId to = 2) {
    REQUIRE(coordinator.on_message(
        to, protocol::ReportLinks{{}, {gradplane::testing::sample_of(from, bits_per_s)}}, now));
    pass_settling();
  }
  void pass_settling() { now = now + kReportsCalm; }
  void pass(Duration time) {
    now = now + time;
    coordinator.tick(now);
  }
  std::size_t prepares() { return letters<protocol::Prepare>(outbox).size(); }
  void answer(std::uint32_t epoch, bool from_all = true) {
    for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
      if (from_all || node == 1)
        coordinator.on_message(node, protocol::Prepared{kKey, epoch, true, 70}, now);
  }
  void end_plan(std::uint32_t epoch) {
    for (const api::NodeId node : {api::NodeId{1}, api::NodeId{2}})
      coordinator.on_message(node, protocol::PlanEnded{kKey, epoch}, now);
  }

  std::vector<PlanInput> inputs;
  std::string failure;
  api::NodeId root = 1;
  PlanKind planner = PlanKind::kAuto;
  bool follows_network = false;
  bool is_early = false;
  Duration then = Duration::seconds(1);
  std::optional<Duration> in_force;
  Duration price;
};

/// A bench whose job runs under a star from node 1.
struct RunningBench : RedrawBench {
  RunningBench() : first(ready_job()) { pass(kEvery); }
  std::uint32_t first;
};

}  // namespace gradplane::session::testing
