// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "control/config/config.h"
#include "control/daemon/jobs.h"
#include "control/plan/planner.h"
#include "control/session/views.h"
#include "control/telemetry/status.h"
#include "control/telemetry/topology.h"

namespace gradplane::daemon {

/// What this node knows of the network and of jobs. A coordinator has been told more.
struct KnownTopology {
  const JobTable& jobs;
  std::vector<telemetry::LinkStatus> links;     // to this node
  const session::TopologyView* told = nullptr;  // by all members; null: it does not coordinate
};

/// The measured links, and the trees of the jobs.
telemetry::Topology topology_page(const config::Config& config, const KnownTopology& known);

/// The question why some jobs have their plans: a copy of all that the answer needs, so that any
/// thread can give it.
struct WhyQuestion {
  telemetry::Topology page;
  std::vector<api::Plan> plans;                 // the newest of each job of the page
  std::vector<std::vector<api::NodeId>> roots;  // that an operator restricts it to; none: any
  /// For how long the coordinator counts on samples under each; nothing: it knows no such job.
  std::vector<std::optional<Duration>> alone_for;
  std::vector<protocol::LinkSample> samples;
  std::vector<api::NodeId> silent;  // would sum without ranks, and do not answer
};
WhyQuestion why_question(const config::Config& config, const KnownTopology& known);
/// Makes the page with what all planners would make of each job, over the network as it is
/// configured and measured, and with the rates that they count on. Any one thread.
class Reasons {
 public:
  /// `config` must outlive it.
  Reasons(const config::Config& config, WhyQuestion question);
  /// Compares the plans of one more job, which may take a second. The page, once none is left.
  std::optional<telemetry::Topology> step();

 private:
  const config::Config& config_;
  WhyQuestion question_;
  plan::PlanRequest request_;
  std::size_t next_ = 0;  // of the jobs of the page
};
/// The page of a node that cannot know: it names the coordinator.
telemetry::Topology without_reasons(telemetry::Topology page, const std::string& coordinator);

}  // namespace gradplane::daemon
