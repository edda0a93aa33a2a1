// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/protocol/job_key.h"
#include "control/protocol/link_sample.h"
#include "control/protocol/node_messages.h"
#include "control/protocol/socket_messages.h"
#include "control/session/admission.h"
#include "control/session/datagram.h"
#include "control/session/redraw.h"
#include "dataplane/api/bounds.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"
#include "dataplane/base/time.h"

/// What goes into a SessionManager at its construction, and what comes out of it.
namespace gradplane::session {

/// Identifies an attached rank. The caller chooses it: it is the number of the rank's connection.
using RankHandle = std::uint64_t;
/// Identifies an operator who waits for an answer.
using AskerHandle = std::uint64_t;
/// The key that authenticates the data packets between two nodes that a plan of this epoch has
/// brought together. It is derived from the job's key, the epoch and the cluster's key. So a packet
/// key does not reveal the job's key, and a packet from before the two were brought together is not
/// valid.
using PacketKey = std::array<std::byte, 16>;
PacketKey packet_key_of(const ClusterKey& cluster, const protocol::JobKey& job,
                        std::uint32_t epoch);

/// What an operator wants instead of the plan in force.
struct PlanChoice {
  PlanKind kind = PlanKind::kStar;
  std::vector<api::NodeId> roots;  // none: as the configuration says
  /// Nodes whose ranks are taken out of the job. They stay until the plan before has ended there.
  std::vector<api::NodeId> without = {};
};
/// The input of a planner. `members` are the nodes with ranks, in the order of their ids. The
/// planner may add nodes without ranks as aggregators.
struct PlanInput {
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
  std::vector<api::Member> members;
  std::optional<PlanChoice> choice = {};  // nothing: as the configuration says
  std::optional<api::Plan> in_force = {};
  /// For how long all rounds have been of the plan in force.
  Duration in_force_for = {};
  std::string label = {};  // the job's name
  /// What is known of links, with its age now.
  std::vector<protocol::LinkSample> links = {};
  /// Nodes without ranks that do not answer. A plan had better not need them.
  std::vector<api::NodeId> silent = {};
  /// The best plan is wanted, and the session decides whether it is worth a switch. Otherwise the
  /// planner may keep the plan in force where another one is hardly better.
  bool redraw = false;
};
/// What a planner has made, and what it predicts over the network that it knows.
struct PlanOffer {
  api::Plan plan;
  PlanKind planner = PlanKind::kStar;  // that was asked
  bool follows_network = false;        // another plan over another network, whatever the planner is
  /// What has been measured does not tell yet how fast the plan in force is.
  bool is_early = false;
  std::optional<Duration> time = {};  // of an all_reduce or exchange; nothing: nobody knows
  std::optional<Duration> time_in_force = {};  // under the plan in force; nothing: it cannot go on
  Duration switch_price = {};                  // what a switch costs, in the same time
  std::string note = {};                       // the prediction, for people; may be empty
  std::string note_in_force = {};              // and that of the plan in force
};
using Planner = std::function<Result<PlanOffer>(const PlanInput&)>;
using PlanCheck = std::function<Status(const api::Plan&)>;
using protocol::JobSettings;

/// The bounds of all buckets of a job.
struct ResolvedBounds {
  std::vector<api::BucketBounds> tables;  // of the given ones, in their order
  float learn_budget = 0;                 // share of all elements that learned bounds may add up to
  std::string summary;                    // for a log line
};
/// Gives the tables of a job, in the order of their ids, bounds.
using BoundsResolver = std::function<ResolvedBounds(const std::vector<api::BucketBounds>&)>;

struct SessionConfig {
  api::NodeId self = 0;
  api::NodeId coordinator = 0;
  std::vector<std::string> node_names;  // of the whole cluster, by node id
  std::uint64_t incarnation = 0;        // random, drawn once per start of the daemon; not 0
  ClusterKey cluster_key{};
  Duration heartbeat = Duration::ms(250);
  Duration suspect_after = Duration::seconds(3);
  Quotas quotas;
  JobSettings job_settings;
  BoundsResolver resolve_bounds;  // none: everything is exact, and no table is sent
  bool learn_bounds = false;      // some of what it gives begins exact and is learned
  PlanCheck check_plan;           // of every plan before it is installed, whoever made it
  bool elastic = false;           // coordinator: ranks may leave and join a job that runs
  RedrawSettings redraw;
  /// Nodes that may sum for jobs of which they have no ranks.
  std::vector<api::NodeId> relays = {};
};

/// A rank that comes: what it says of itself, and its user as the kernel says.
struct NewRank {
  RankHandle handle = 0;
  std::uint32_t user = kRootUser;
  protocol::JobKey key{};
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::string label;
};

struct LocalRank {
  RankHandle handle = 0;
  std::uint16_t rank = 0;
};

/// Send `bytes` (at most kMaxControlBytes) as the body of one control datagram.
struct SendDatagram {
  api::NodeId node = api::kNoNode;
  std::vector<std::byte> bytes;
};
/// Asks the engine to install this job. If the engine cannot, the caller reports it with
/// on_job_error(). `first_epoch` names the job from now on, among jobs that have or had its id.
struct InstallJob {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  PacketKey packet_key{};  // of the plan
  std::uint32_t world_size = 0;
  std::string label;
  api::Plan plan;
  std::vector<LocalRank> local_ranks;  // none: this node only sums
  bool learn_bounds = false;           // measure what bounds are learned from

  /// The job runs elsewhere already: the plan is prepared only. The engine answers as to
  /// PreparePlan, and CommitPlan or RemoveJob follows. Otherwise its rounds may come at once.
  bool joins() const { return plan.epoch != first_epoch; }
};
struct RemoveJob {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
};
/// Let the engine get ready for another plan of an installed job, and answer with
/// on_plan_prepared() or on_plan_refused(). A plan without this node: its part in the job ends with
/// the plan before. Then it only answers the peers that have not ended that plan, until RemoveJob.
struct PreparePlan {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  PacketKey packet_key{};  // of the plan
  api::Plan plan;
};
/// Rounds from `activation_round` on have the prepared plan, earlier ones the plan before. When the
/// last of those has ended here, say so with on_plan_ended().
struct CommitPlan {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
};
/// Forget the prepared plan. It may have been refused in the meantime: then there is nothing to do.
struct AbortPlan {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
};
/// Every node with ranks has ended the plan before, which is `epoch`: nothing more of it comes. A
/// node without ranks cannot always tell so by itself.
struct EndOlderPlan {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
};
/// Let a planner work on this and answer with on_plan_made(), whenever it is done. The session
/// waits for one plan of each job at a time: another order for a job takes the place of the one
/// before.
struct MakePlan {
  std::uint64_t ticket = 0;  // names the order
  std::uint32_t job_id = 0;
  PlanInput input;
};
/// What came of SessionManager::replan().
struct AnswerReplan {
  AskerHandle asker = 0;
  bool committed = false;
  std::uint32_t epoch = 0;             // of the plan in force; 0: not known
  std::uint32_t activation_round = 0;  // when committed
  std::string text;                    // what has changed, or why nothing has
};
/// Sets the bounds of a bucket: from now on its rounds may miss what the table allows. It comes
/// once for each bucket of an installed job.
struct InstallBounds {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  api::BucketBounds table;
  float learn_budget = 0;  // share of all elements that the learned bounds of the job may add up to
};
/// Sends a notice to a rank. After JobFailed the session has forgotten the handle, and the rank may
/// attach again.
using RankNotice = std::variant<protocol::Waiting, protocol::Ready, protocol::JobFailed>;
struct NotifyRank {
  RankHandle handle = 0;
  RankNotice notice;
};
enum class LogLevel : std::uint8_t { kError, kWarn, kInfo, kDebug };
struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::string text;
};
using Action =
    std::variant<SendDatagram, InstallJob, RemoveJob, PreparePlan, CommitPlan, AbortPlan,
                 EndOlderPlan, InstallBounds, NotifyRank, AnswerReplan, MakePlan, LogLine>;

}  // namespace gradplane::session
