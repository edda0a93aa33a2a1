// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/protocol/node_messages.h"
#include "control/session/bucket_tables.h"
#include "control/session/outbox.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/time.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::session {

/// How long a node that begins to coordinate a job waits for all that its members have of it. A
/// member that is dead is noticed after suspect_after; questions follow one another.
Duration takeover_limit(const SessionConfig& config);

/// All nodes together send no more of one job while they are asked: their ranks join and leave, and
/// one node describes all buckets. A message counts with its bytes and what it takes beside them.
inline constexpr std::size_t kMaxHeldBytes = std::size_t{48} << 20;
inline constexpr std::size_t kHeldMessageBytes = 512;
/// One of a bucket: offset, elements, bound, reason, name and an empty rule.
inline constexpr std::size_t kMaxDescribedTensorBytes = 4 + 4 + 4 + 1 + 2 + kMaxTensorNameBytes + 2;
static_assert(kMaxHeldBytes >=
                  2 * kMaxTensorsPerJob * (kMaxDescribedTensorBytes + 2) +
                      2 * kMaxNodes * (2 * kHeldMessageBytes + protocol::kMaxNodeTextBytes),
              "every honest job fits, and twice over");

/// Two nodes that take over jobs of one coordinator do not count on from the same number.
inline constexpr std::uint32_t kLargestEpochStep = 0xfffff;
/// No job has so many plans. A coordinator that counted on from more might come to the end.
inline constexpr std::uint32_t kMaxReportedEpoch = 0xefffffff;
static_assert(kMaxReportedEpoch < UINT32_MAX - 100 * kLargestEpochStep);

/// Why a node hears that a job, or a plan, does not go on there.
inline constexpr const char* kWithoutNode = "the job goes on, or has begun anew, without this node";
inline constexpr const char* kChangeLost =
    "the node that coordinated it was lost; ask again for another plan";

/// What the nodes with a part in one job have reported of it to a node that begins to coordinate.
/// Pure.
///
/// Everybody who has a part in a plan that some node has is asked: in the plan in force, in one
/// that is prepared, and in the one before while it has open rounds. Nobody who has answered takes
/// orders from an earlier coordinator any more. So when all have answered, nothing changes but by
/// this one.
class Takeover {
 public:
  struct Held {
    api::NodeId from = api::kNoNode;
    protocol::NodeMessage message;
    std::size_t bytes = 0;  // that it counts as
  };

  Takeover(const protocol::JobKey& key, std::uint32_t first_epoch, Instant until)
      : key_(key), first_epoch_(first_epoch), until_(until) {}

  void on_report(api::NodeId from, const protocol::Report& report);
  void on_plan(std::uint32_t epoch, api::Plan plan);
  /// `is_back`: it answers again, but what was agreed with it before is void. If it has not
  /// reported yet, that was of an earlier time, and it is asked once more.
  void on_lost(api::NodeId node, const std::string& why, bool is_back);
  /// It no longer prepares this plan.
  void on_refused(api::NodeId from, std::uint32_t epoch);
  /// For later, when the job is known. False: it would be more than a takeover keeps.
  [[nodiscard]] bool hold(api::NodeId from, protocol::NodeMessage message);
  std::deque<Held> take_held();

  /// Asks whom and what has to be asked. Each question once. One plan at a time: so the plans of
  /// all jobs find room on the link of a node that has them all.
  void ask(Outbox& outbox);
  /// All have answered or are lost, and every plan is known.
  bool is_complete() const;
  /// Who has not answered.
  std::set<api::NodeId> awaited() const;
  /// Who has not answered, or has not sent a plan that it was asked for.
  std::set<api::NodeId> silent() const;

  const protocol::JobKey& key() const { return key_; }
  std::uint32_t first_epoch() const { return first_epoch_; }
  Instant until() const { return until_; }
  const std::map<api::NodeId, protocol::Report>& reports() const { return reports_; }
  /// What this node has reported; nullptr: it is lost, or has nothing of the job.
  const protocol::Report* job_at(api::NodeId node) const;
  std::string why_not_at(api::NodeId node) const;
  const api::Plan* plan(std::uint32_t epoch) const;
  /// The newest plan that is in force anywhere; 0: none.
  std::uint32_t committed_epoch() const;
  std::uint32_t newest_epoch() const;
  /// The ranks that have said last that they wait on this node.
  const protocol::Join* waiting_at(api::NodeId node) const;
  /// Whose quota the job counts against: of the users of its ranks the one with the lowest number.
  /// Root is that only if all are root's, because root has no quota. Nobody has said who opened it.
  std::uint32_t user() const;
  /// All that have to do with the job, as far as they live.
  std::set<api::NodeId> nodes() const;

 private:
  std::set<std::uint32_t> named_epochs() const;
  void ask_plan(Outbox& outbox);

  protocol::JobKey key_;
  std::uint32_t first_epoch_;
  Instant until_;
  std::map<api::NodeId, protocol::Report> reports_;
  std::map<api::NodeId, std::string> lost_;
  std::map<std::uint32_t, api::Plan> plans_;  // by epoch
  std::set<api::NodeId> asked_;
  std::map<std::uint32_t, api::NodeId> plan_asked_;  // whom, by epoch
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;
};

}  // namespace gradplane::session
