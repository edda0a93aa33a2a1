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

/// What this node knows of the network and of jobs. A coordinator also has the members' reports.
struct KnownTopology {
  const JobTable& jobs;
  std::vector<telemetry::LinkStatus> links;     // to this node
  const session::TopologyView* told = nullptr;  // from the members; null: it does not coordinate
};

/// The measured links, and the trees of the jobs.
telemetry::Topology topology_page(const config::Config& config, const KnownTopology& known);

/// The question why jobs have their plans, with a copy of all that the answer needs, so that
/// another thread can work it out.
struct WhyQuestion {
  telemetry::Topology page;
  std::vector<api::Plan> plans;                 // the newest of each job of the page
  std::vector<std::vector<api::NodeId>> roots;  // those that an operator allows; empty: any
  /// For how long no other plan of the job has had open rounds, so that samples are of this plan.
  /// No value: the coordinator does not know the job.
  std::vector<std::optional<Duration>> alone_for;
  std::vector<protocol::LinkSample> samples;
  std::vector<api::NodeId> silent;  // nodes without ranks that could sum, but do not answer
};
WhyQuestion why_question(const config::Config& config, const KnownTopology& known);
/// Makes the page that compares, for each job, the plans of all planners over the network as it is
/// configured and measured. The page also has the rates that the planners use. One thread at a
/// time.
class Reasons {
 public:
  /// `config` must outlive it.
  Reasons(const config::Config& config, WhyQuestion question);
  /// Compares the plans of one more job, which may take a second. Returns the page when no job is
  /// left.
  std::optional<telemetry::Topology> step();

 private:
  const config::Config& config_;
  WhyQuestion question_;
  plan::PlanRequest request_;
  std::size_t next_ = 0;  // the job of the page that comes next
};
/// The page of a node that does not coordinate, and so cannot say why. It names the coordinator.
telemetry::Topology without_reasons(telemetry::Topology page, const std::string& coordinator);

}  // namespace gradplane::daemon
