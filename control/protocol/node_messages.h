// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "control/protocol/job_key.h"
#include "control/protocol/link_sample.h"
#include "control/protocol/parsed.h"
#include "dataplane/model/grant_settings.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/plan_kind.h"

/// The messages of daemons about jobs. A message is small, binary, in network byte order, and goes
/// reliably and in order over a PeerLink, which also authenticates its sender.
///
/// Before a job runs, messages name a node's part in it by `attempt`, which the node counts. So an
/// answer to an older Join is never taken for an answer to the newest. Once the job runs, messages
/// name it by `first_epoch`, the epoch of the plan that it began with, and each plan by its
/// `epoch`. So a message about a job is understood whichever of its plans the sender has.
namespace gradplane::protocol {

inline constexpr std::size_t kMaxNodeMessageBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxNodeTextBytes = 512;
/// Part of a bucket's table. It is short, so that other messages of a link need not wait long.
inline constexpr std::size_t kMaxBucketPartBytes = std::size_t{16} << 10;
/// The longest encoded plan. The rest of a message is for the other members of Prepare.
inline constexpr std::size_t kMaxPlanBytes = kMaxNodeMessageBytes - 1024;
static_assert(kMaxNodeTextBytes + 64 < 1024, "a Prepare with the longest plan and label fits");
/// The most links of one ReportLinks, which then takes two or three datagrams.
inline constexpr std::size_t kMaxReportedLinks = 64;
static_assert((kMaxRanks + kMaxNodes) * 2 + kMaxNodeTextBytes + 64 < kMaxNodeMessageBytes,
              "every message that lists ranks fits");

/// Node to coordinator: these ranks of the job are attached here. The node sends the whole list
/// each time it changes; an empty list withdraws all.
struct Join {
  JobKey key{};
  std::uint32_t attempt = 0;
  std::uint32_t user = 0;  // the ranks' uid, as the kernel of their node says
  std::uint32_t world_size = 0;
  std::vector<std::uint16_t> ranks;  // at most kMaxLocalRanks
  std::string label;
  bool may_grant = false;  // nothing in the node's file excludes grants for the job
};
/// Coordinator to a node that joined: who is still missing.
struct WaitingFor {
  JobKey key{};
  std::uint32_t attempt = 0;
  std::uint32_t missing_count = 0;
  std::vector<std::uint16_t> missing;  // the first of them
  // Nodes of which the coordinator has not heard, so that it cannot know their ranks.
  std::vector<std::uint16_t> unheard = {};
};
/// Coordinator to a node that joined: these ranks cannot take part.
struct Refused {
  JobKey key{};
  std::uint32_t attempt = 0;
  std::vector<std::uint16_t> ranks;
  std::string reason;
};
/// The settings that must fit together on all members of a job. Otherwise they would drop each
/// other's packets, or their sums would have different meanings. Each node takes them from its own
/// configuration.
struct JobSettings {
  std::uint32_t block_bytes = kDefaultBlockBytes;      // block.bytes, `auto` resolved
  std::uint32_t round_bytes = kMaxRoundBytes;          // rounds.bytes
  bool authenticate = true;                            // security.authenticate
  Compensation compensation = Compensation::kRescale;  // gather.compensation
  std::uint32_t strict_rounds = 10;                    // gather.strict_rounds
  std::uint32_t floor_ppm = 500000;                    // gather.floor, in millionths
  std::uint64_t slack_ns = 0;                          // gather.slack; 0: learned
  std::uint64_t absent_after_ns = 0;                   // gather.absent_after; 0: never
  /// grants.enabled. A node with `auto` takes a job with and without grants; see Prepare::grants.
  GrantChoice grants = GrantChoice::kAuto;
  /// training.freshness + 1, which each plan of a job has; 0: training.mode is exact.
  std::uint32_t selections = 0;
  std::uint32_t average_every = 0;  // training.average_every; 0: never, or the mode is exact
  std::uint32_t staleness = 0;      // training.staleness; 0: training.mode is not selective-ssp
  std::uint32_t cores = 1;          // poll cores of the node: entries of poll.cores, at least 1
  bool operator==(const JobSettings&) const = default;
};
/// The most sections in a Prepare.
inline constexpr std::size_t kMaxSharedSections = 16;
/// Coordinator to every node that gets, keeps or loses a part in the job by this plan: prepare the
/// plan. A node that cannot, or that has other settings, answers PlanRefused.
struct Prepare {
  JobKey key{};
  std::uint32_t attempt = 0;      // 0: this node hosts no rank that waits
  std::uint32_t first_epoch = 0;  // equal to epoch if the job begins with this plan
  std::uint32_t epoch = 0;        // larger than the epochs of all earlier plans of the job
  std::uint32_t world_size = 0;
  JobSettings settings;  // the coordinator's
  std::string label;
  std::vector<std::byte> plan;  // control/session/plan_codec.h
  bool learn_bounds = false;    // the coordinator's gather.preset is auto: roots measure for it
  bool grants = false;          // receivers grant their links; the same for all plans of a job
  // Digests of the sections of the coordinator's file that should be the same on every node.
  std::vector<std::uint16_t> shared_sections = {};
};
/// Member to coordinator: it is ready. If it takes part in the job already, it opens no round from
/// `horizon` on until it hears Commit or Abort.
struct Prepared {
  JobKey key{};
  std::uint32_t epoch = 0;
  bool has_horizon = false;
  std::uint32_t horizon = 0;
};
/// Member to coordinator: it cannot carry this plan out.
struct PlanRefused {
  JobKey key{};
  std::uint32_t epoch = 0;
  std::string reason;
};
/// Coordinator to all that have prepared: rounds from `activation_round` on use this plan, earlier
/// ones the plan before. No node has opened a round from `activation_round` on.
struct Commit {
  JobKey key{};
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
};
/// Coordinator to all that got Prepare: the plan before stays in force.
struct Abort {
  JobKey key{};
  std::uint32_t epoch = 0;
  std::string reason;
};
/// Member to coordinator: the last round of this plan has ended here, and another plan is in force.
struct PlanEnded {
  JobKey key{};
  std::uint32_t epoch = 0;
};
/// Coordinator to the members that have not ended this plan: end it. All members with ranks have,
/// so no more packets of it come.
struct EndPlan {
  JobKey key{};
  std::uint32_t epoch = 0;
};
/// Coordinator to a node without a part in the plan in force: forget the job. All nodes have ended
/// the plan before, so nobody needs this node any more.
struct Dismiss {
  JobKey key{};
  std::uint32_t first_epoch = 0;
};
/// Node to coordinator: an operator wants another plan for this job.
struct Replan {
  JobKey key{};
  std::uint32_t ticket = 0;  // the node's number for this question
  PlanKind kind = PlanKind::kStar;
  std::vector<std::uint16_t> roots;         // nodes, at most kMaxTrees; empty: as configured
  std::vector<std::uint16_t> without = {};  // nodes whose ranks are taken out of the job
};
/// Coordinator to the node that asked: whether the plan is committed, and if not, why.
struct ReplanAnswer {
  JobKey key{};
  std::uint32_t ticket = 0;
  bool committed = false;
  std::uint32_t epoch = 0;             // of the plan in force now
  std::uint32_t activation_round = 0;  // when committed
  std::string text;                    // what has changed, or why nothing has
};
/// Member to coordinator: a rank is gone. `clean`: it has left in order.
struct Leave {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::uint16_t rank = 0;
  bool clean = false;
};
/// In both directions: the job cannot go on.
struct Failed {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::string reason;
};
/// Coordinator to every member: every rank has left in order.
struct Finished {
  JobKey key{};
  std::uint32_t first_epoch = 0;
};
/// The member that hosts rank 0 to the coordinator: some tensors of a bucket, in order.
struct DescribeBucket {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::vector<std::byte> part;  // control/session/bucket_tables.h
};
/// Coordinator to every member: some tensors of a bucket with their bounds, in order. In the other
/// direction it answers AskTables.
struct BucketBounds {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  float learn_budget = 0;       // share of all elements that learned bounds may add up to
  std::vector<std::byte> part;  // control/session/bucket_tables.h
};
/// Member to coordinator: what it has measured of links from other nodes to itself. The key is
/// zero, because links belong to no job. `to` of a sample is the sender of this message.
struct ReportLinks {
  JobKey key{};
  std::vector<LinkSample> links;  // at most kMaxReportedLinks
};
/// Member to a new coordinator: what it knows of a job. If all epochs are 0, it knows nothing of
/// it, which answers AskReport. Leave messages follow for the ranks that have left.
struct Report {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;             // of the plan in force here; 0: it has only been prepared
  std::uint32_t activation_round = 0;  // of that plan
  std::uint32_t next_epoch = 0;        // of a plan that is prepared here; 0: none
  std::uint32_t epoch_before = 0;      // of the plan before; 0: it has ended, as this node knows
  bool ending = false;                 // the last round of the plan before has not ended here
  bool has_part = true;                // in the plan in force
  std::uint32_t newest_epoch = 0;      // the newest that was ever prepared here
  std::uint32_t attempt = 0;           // of its ranks; 0: it never had any
  std::uint32_t user = 0;              // of its ranks; UINT32_MAX: it has none
  std::uint32_t world_size = 0;
  std::uint32_t table_parts = 0;  // BucketBounds of complete tables that it has
  std::string label;
  bool grants = false;  // Prepare::grants of the job
  bool has_job() const { return epoch != 0 || next_epoch != 0; }
};
/// Coordinator to a member: answer with a Report of this job.
struct AskReport {
  JobKey key{};
  std::uint32_t first_epoch = 0;
};
/// Coordinator to a member that has reported this plan: answer with PlanIs.
struct AskPlan {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
};
/// Member to coordinator: the plan that AskPlan has asked for.
struct PlanIs {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
  std::vector<std::byte> plan;  // control/session/plan_codec.h
};
/// Coordinator to a member: send back all BucketBounds that you have, because the other members
/// must get the same.
struct AskTables {
  JobKey key{};
  std::uint32_t first_epoch = 0;
};
/// The order gives each message its number on the wire: see docs/daemon-link.md.
using NodeMessage =
    std::variant<Join, WaitingFor, Refused, Prepare, Prepared, Commit, Leave, Failed, Finished,
                 DescribeBucket, BucketBounds, PlanRefused, Abort, PlanEnded, Replan, ReplanAnswer,
                 EndPlan, Dismiss, ReportLinks, Report, AskReport, AskPlan, PlanIs, AskTables>;

/// The bytes of a message, at most kMaxNodeMessageBytes. Texts and lists are cut to their bounds,
/// but not plans: the caller keeps them within kMaxPlanBytes.
std::vector<std::byte> encode(const NodeMessage& message);

/// Parses a message and checks the range of every field. Bytes after its end are an error.
Parsed<NodeMessage> parse_node_message(std::span<const std::byte> bytes);

}  // namespace gradplane::protocol
