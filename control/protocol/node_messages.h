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
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/plan_kind.h"

/// What daemons tell each other about jobs. A message is small, binary, in network order, and
/// travels reliably and in order over a PeerLink, which also authenticates its sender.
///
/// Before a job runs, a node's part in it is named by the `attempt` that the node itself counts.
/// From then on the job is named by `first_epoch`, the epoch of the plan that it began with, and
/// each of its plans by an `epoch` of its own. So an answer to what a node wanted earlier is never
/// taken for an answer to what it wants now, and word of a job is understood whichever of its plans
/// the sender has.
namespace gradplane::protocol {

inline constexpr std::size_t kMaxNodeMessageBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxNodeTextBytes = 512;
/// Part of a bucket's table. Short, so that it never keeps other messages of a link waiting long.
inline constexpr std::size_t kMaxBucketPartBytes = std::size_t{16} << 10;
/// What is left for an encoded plan beside the other members of Prepare.
inline constexpr std::size_t kMaxPlanBytes = kMaxNodeMessageBytes - 1024;
static_assert(kMaxNodeTextBytes + 64 < 1024, "a Prepare with the longest plan and label fits");
/// Links of one ReportLinks. A message of that many is two or three datagrams.
inline constexpr std::size_t kMaxReportedLinks = 64;
static_assert(kMaxRanks * 2 + kMaxNodeTextBytes + 64 < kMaxNodeMessageBytes,
              "every message that lists ranks fits");

/// Node to coordinator: these ranks of the job are attached here. The whole list, each time it
/// changes; an empty list withdraws.
struct Join {
  JobKey key{};
  std::uint32_t attempt = 0;
  std::uint32_t user = 0;  // of these ranks, as the kernel of their node says
  std::uint32_t world_size = 0;
  std::vector<std::uint16_t> ranks;  // at most kMaxLocalRanks
  std::string label;
};
/// Coordinator to a node that joined: who is still missing.
struct WaitingFor {
  JobKey key{};
  std::uint32_t attempt = 0;
  std::uint32_t missing_count = 0;
  std::vector<std::uint16_t> missing;  // the first of them
};
/// Coordinator to a node that joined: these ranks cannot take part.
struct Refused {
  JobKey key{};
  std::uint32_t attempt = 0;
  std::vector<std::uint16_t> ranks;
  std::string reason;
};
/// What all members of a job must have alike, or they drop each other's packets, or their sums mean
/// something else. Each node has it from its own configuration.
struct JobSettings {
  std::uint32_t block_bytes = kDefaultBlockBytes;      // block.bytes, `auto` resolved
  std::uint32_t round_bytes = kMaxRoundBytes;          // rounds.bytes
  bool authenticate = true;                            // security.authenticate
  Compensation compensation = Compensation::kRescale;  // gather.compensation
  std::uint32_t strict_rounds = 10;                    // gather.strict_rounds
  std::uint32_t floor_ppm = 500000;                    // gather.floor, in millionths
  std::uint64_t slack_ns = 0;                          // gather.slack; 0: learned
  std::uint64_t absent_after_ns = 0;                   // gather.absent_after; 0: never
  bool grants = false;                                 // grants.enabled
  /// training.freshness + 1, which each plan of a job has; 0: training.mode is exact.
  std::uint32_t selections = 0;
  std::uint32_t average_every = 0;  // training.average_every; 0: never, or the mode is exact
  std::uint32_t staleness = 0;      // training.staleness; 0: training.mode is not selective-ssp
  std::uint32_t cores = 1;          // poll cores of the node: entries of poll.cores, at least 1
  bool operator==(const JobSettings&) const = default;
};
/// Coordinator to every node that has a part in this plan or loses one by it: get ready for it. A
/// node that cannot, or that has other settings, answers PlanRefused.
struct Prepare {
  JobKey key{};
  std::uint32_t attempt = 0;      // 0: this node hosts no rank that waits
  std::uint32_t first_epoch = 0;  // the same as epoch: the job begins with this plan
  std::uint32_t epoch = 0;        // larger than those of all earlier plans of the job
  std::uint32_t world_size = 0;
  JobSettings settings;  // of the coordinator
  std::string label;
  std::vector<std::byte> plan;  // control/session/plan_codec.h
  bool learn_bounds = false;    // the coordinator's gather.preset is auto: roots measure for it
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
/// Coordinator to all that have prepared: rounds from `activation_round` on have this plan, earlier
/// ones the plan before. Nobody has opened one of the former.
struct Commit {
  JobKey key{};
  std::uint32_t epoch = 0;
  std::uint32_t activation_round = 0;
};
/// Coordinator to all that were to prepare: the plan before stays in force.
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
/// Coordinator to the members that have not ended this plan: all members with ranks have, so that
/// nothing more of it comes.
struct EndPlan {
  JobKey key{};
  std::uint32_t epoch = 0;
};
/// Coordinator to a node without a part in the plan in force: all nodes have ended the plan before,
/// so that nobody needs this node any more.
struct Dismiss {
  JobKey key{};
  std::uint32_t first_epoch = 0;
};
/// Node to coordinator: an operator wants another plan for this job.
struct Replan {
  JobKey key{};
  std::uint32_t ticket = 0;  // the node's own number for this question
  PlanKind kind = PlanKind::kStar;
  std::vector<std::uint16_t> roots;  // nodes, at most kMaxTrees; none: as the configuration says
  std::vector<std::uint16_t> without = {};  // nodes whose ranks are taken out of the job
};
/// Coordinator to that node: the plan is committed, or why it is not.
struct ReplanAnswer {
  JobKey key{};
  std::uint32_t ticket = 0;
  bool committed = false;
  std::uint32_t epoch = 0;             // of the plan in force now
  std::uint32_t activation_round = 0;  // when committed
  std::string text;                    // what has changed, or why nothing has
};
/// Member to coordinator: a rank is gone; `clean`: in order.
struct Leave {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::uint16_t rank = 0;
  bool clean = false;
};
/// Either way: the job cannot go on.
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
/// Coordinator to every member: some tensors of a bucket with their bounds, in order. The other way
/// it answers AskTables.
struct BucketBounds {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  float learn_budget = 0;       // share of all elements that learned bounds may add up to
  std::vector<std::byte> part;  // control/session/bucket_tables.h
};
/// Member to coordinator: what it has measured of links from other nodes to itself. The key is
/// zero, because links are of no job, and `to` of a sample is the sender of this message.
struct ReportLinks {
  JobKey key{};
  std::vector<LinkSample> links;  // at most kMaxReportedLinks
};
/// Member to a node that coordinates from now on: what it has of a job. Without any epoch it has
/// nothing, which answers AskReport. The ranks that have left follow as Leave.
struct Report {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;             // of the plan in force here; 0: it has only been prepared
  std::uint32_t activation_round = 0;  // of that plan
  std::uint32_t next_epoch = 0;        // of a plan that is prepared here; 0: none
  std::uint32_t epoch_before = 0;  // until it has ended everywhere as far as is known here; or 0
  bool ending = false;             // the last round of the plan before has not ended here
  bool has_part = true;            // in the plan in force
  std::uint32_t newest_epoch = 0;  // that was ever prepared here
  std::uint32_t attempt = 0;       // of its ranks; 0: it never had any
  std::uint32_t user = 0;          // of its ranks; the last number: of none
  std::uint32_t world_size = 0;
  std::uint32_t table_parts = 0;  // parts of whole tables that it has bounds of
  std::string label;
  bool has_job() const { return epoch != 0 || next_epoch != 0; }
};
/// Coordinator to a member: answer with a Report of this job.
struct AskReport {
  JobKey key{};
  std::uint32_t first_epoch = 0;
};
/// Coordinator to a member that has reported this plan: answer with it.
struct AskPlan {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
};
/// Member to coordinator.
struct PlanIs {
  JobKey key{};
  std::uint32_t first_epoch = 0;
  std::uint32_t epoch = 0;
  std::vector<std::byte> plan;  // control/session/plan_codec.h
};
/// Coordinator to a member: send back the parts of tables that it was sent (BucketBounds), because
/// the others are to get the same.
struct AskTables {
  JobKey key{};
  std::uint32_t first_epoch = 0;
};
/// The order is the wire's: see docs/control-api.md.
using NodeMessage =
    std::variant<Join, WaitingFor, Refused, Prepare, Prepared, Commit, Leave, Failed, Finished,
                 DescribeBucket, BucketBounds, PlanRefused, Abort, PlanEnded, Replan, ReplanAnswer,
                 EndPlan, Dismiss, ReportLinks, Report, AskReport, AskPlan, PlanIs, AskTables>;

/// The bytes of a message, at most kMaxNodeMessageBytes: texts and lists are cut to their bounds
/// (a plan is not: the caller keeps it within kMaxPlanBytes).
std::vector<std::byte> encode(const NodeMessage& message);

/// Checks every field's range; bytes that are left over are an error.
Parsed<NodeMessage> parse_node_message(std::span<const std::byte> bytes);

}  // namespace gradplane::protocol
