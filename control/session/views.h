// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/protocol/link_sample.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/time.h"

/// Copies of what a SessionManager knows. telemetry formats them for people.
namespace gradplane::session {

enum class JobState : std::uint8_t { kWaiting, kPrepared, kReady };
std::string_view job_state_name(JobState state);

struct RankView {
  std::uint16_t rank = 0;
  api::NodeId node = api::kNoNode;  // where it is attached
};

struct JobView {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;  // names the job while it runs; 0: no plan yet
  std::uint32_t epoch = 0;        // of the plan in force; 0: no plan yet
  PlanKind plan_kind = PlanKind::kStar;
  std::string plan_change;  // the next plan, and the nodes for which it waits; empty: none
  JobState state = JobState::kWaiting;
  std::uint32_t user = UINT32_MAX;  // of its ranks here; UINT32_MAX: it has none
  std::uint32_t world_size = 0;
  std::string label;
  std::vector<RankView> ranks;         // the ones that this node knows of
  std::vector<std::uint32_t> missing;  // the first of them
  std::uint32_t missing_count = 0;
  std::string reason;  // why it waits
};

/// What was predicted for a job when a planner was asked last.
struct PlanOutlook {
  PlanKind planner = PlanKind::kStar;  // the planner of the job
  std::optional<Duration> time;        // under the plan in force; none: not known
  Instant at;
  std::string decision;  // why the job has this plan and no other one
};
struct PlanView {
  std::uint32_t job_id = 0;
  std::string label;
  api::Plan plan;  // in force
  std::optional<PlanOutlook> outlook;
  Duration outlook_age;
  std::vector<api::NodeId> roots = {};  // an operator's choice, which redraws keep; empty: any
  Duration alone_for = {};              // for how long only this plan has had open rounds
};
/// What a coordinator knows of the network and of the trees over it.
struct TopologyView {
  std::vector<protocol::LinkSample> links;  // of all reporters, with their present ages
  std::vector<api::NodeId> silent;          // nodes without ranks that may sum but do not answer
  std::vector<PlanView> plans;
};

struct FailureView {
  std::uint32_t job_id = 0;
  std::string label;
  std::string reason;
  Instant at;
};

struct PeerView {
  api::NodeId node = api::kNoNode;
  bool connected = false;
  bool watched = false;
  std::optional<Duration> silence;  // since it was heard last; none: it never was
  Duration rtt;
  std::uint64_t retransmissions = 0;
};

}  // namespace gradplane::session
