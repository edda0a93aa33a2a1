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

/// The configuration of a SessionManager, and the actions that it asks its caller to carry out.
namespace gradplane::session {

/// Identifies an attached rank. The caller chooses it: it is the number of the rank's connection.
using RankHandle = std::uint64_t;
/// Identifies an operator who waits for an answer.
using AskerHandle = std::uint64_t;
/// The key that authenticates the data packets between two nodes that became peers under the plan
/// of this epoch. It is derived from the job's key, the epoch and the cluster's key. So it does not
/// reveal the job's key, and packets from before the two were peers are not valid.
using PacketKey = std::array<std::byte, 16>;
PacketKey packet_key_of(const ClusterKey& cluster, const protocol::JobKey& job,
                        std::uint32_t epoch);

/// What an operator wants instead of the plan in force.
struct PlanChoice {
  PlanKind kind = PlanKind::kStar;
  std::vector<api::NodeId> roots;  // empty: as the configuration says
  /// Nodes whose ranks are taken out of the job. They stay until the plan before has ended there.
  std::vector<api::NodeId> without = {};
};
/// The input of a planner. `members` are the nodes with ranks, in the order of their ids. The
/// planner may add nodes without ranks as aggregators.
struct PlanInput {
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
  std::vector<api::Member> members;
  std::optional<PlanChoice> choice = {};  // none: as the configuration says
  std::optional<api::Plan> in_force = {};
  /// The time since the plan in force was committed or taken over, or since the plan before ended
  /// if that was later.
  Duration in_force_for = {};
  std::string label = {};  // the job's name
  /// The samples of links, with their present ages.
  std::vector<protocol::LinkSample> links = {};
  /// Nodes without ranks that do not answer. A plan should not need them.
  std::vector<api::NodeId> silent = {};
  /// True: the planner must return the best plan, and the session decides whether a switch is worth
  /// it. False: the planner may keep the plan in force if another one is hardly better.
  bool redraw = false;
};
/// A plan that a planner has made, and its predictions over the network that the planner knows.
struct PlanOffer {
  api::Plan plan;
  PlanKind planner = PlanKind::kStar;  // the planner that was asked
  bool follows_network = false;        // whether the plan depends on the network
  /// Too little has been measured to tell how fast the plan in force is.
  bool is_early = false;
  std::optional<Duration> time = {};           // of an all_reduce or exchange; none: not known
  std::optional<Duration> time_in_force = {};  // under the plan in force; none: it cannot go on
  Duration switch_price = {};                  // the time that a switch costs
  std::string note = {};                       // the prediction, for people; may be empty
  std::string note_in_force = {};              // the prediction for the plan in force
};
using Planner = std::function<Result<PlanOffer>(const PlanInput&)>;
using PlanCheck = std::function<Status(const api::Plan&)>;
using protocol::JobSettings;

/// What the log says of the bounds of a job; each may be empty.
struct BoundsTexts {
  std::string summary = {};
  std::string warning = {};
};
/// The bounds of all buckets of a job.
struct ResolvedBounds {
  std::vector<api::BucketBounds> tables;  // the given tables with bounds, in the same order
  float learn_budget = 0;                 // share of all elements that learned bounds may add up to
  BoundsTexts texts = {};
};
/// Gives bounds to the tables of a job, which come in the order of their ids.
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
  /// What in this node's file keeps jobs from having grants where job_settings.grants is kAuto, for
  /// people; empty: nothing.
  std::string grant_exclusion;
  BoundsResolver resolve_bounds;  // none: everything is exact, and no table is sent
  bool learn_bounds = false;      // whether some bounds begin exact and are learned
  PlanCheck check_plan;           // checks every plan before it is installed
  bool elastic = false;           // coordinator: ranks may leave and join a job that runs
  RedrawSettings redraw;
  /// The sections of this node's file that should be the same on every node: name and digest. All
  /// nodes have the same sections, in this order.
  std::vector<std::pair<std::string, std::uint16_t>> shared_sections = {};
  /// Nodes that may sum for jobs of which they have no ranks.
  std::vector<api::NodeId> relays = {};
};

/// A rank that wants to attach: what it says of itself, and its user as the kernel says.
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
  std::vector<LocalRank> local_ranks;  // empty: this node only sums
  bool learn_bounds = false;           // whether roots measure gradients to learn bounds
  bool grants = false;                 // whether receivers grant their links

  /// True: the job runs elsewhere already, so the engine only prepares the plan. It answers as to
  /// PreparePlan, and CommitPlan or RemoveJob follows. False: rounds may come at once.
  bool joins() const { return plan.epoch != first_epoch; }
};
struct RemoveJob {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
};
/// Asks the engine to prepare another plan of an installed job. The caller answers with
/// on_plan_prepared() or on_plan_refused(). If the plan lacks this node, the node's part in the job
/// ends with the plan before. From then until RemoveJob it only answers peers that have not ended
/// that plan.
struct PreparePlan {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  PacketKey packet_key{};  // of the plan
  api::Plan plan;
};
/// Rounds from `activation_round` on use the prepared plan, earlier ones the plan before. When the
/// last of the earlier rounds has ended here, the caller calls on_plan_ended().
struct CommitPlan {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
};
/// Asks the engine to forget the prepared plan. If the engine has refused it in the meantime, there
/// is nothing to do.
struct AbortPlan {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
};
/// Tells the engine that every node with ranks has ended the plan before, which has this epoch, so
/// no more packets of it come. A node without ranks cannot always find that out by itself.
struct EndOlderPlan {
  std::uint32_t job_id = 0;
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
};
/// Orders a plan from a planner. The caller answers with on_plan_made() when it is done. The
/// session waits for one plan of each job at a time: another order for a job replaces the one
/// before.
struct MakePlan {
  std::uint64_t ticket = 0;  // names the order
  std::uint32_t job_id = 0;
  PlanInput input;
};
/// The answer to SessionManager::replan().
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
