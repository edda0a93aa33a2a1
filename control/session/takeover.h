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

/// How long a new coordinator waits for the members' reports of a job. It notices a dead member
/// after suspect_after, and asks several questions one after the other.
Duration takeover_limit(const SessionConfig& config);

/// The most bytes of messages about one job that are held during its takeover: ranks join and
/// leave, and one node describes all buckets. Each message counts kHeldMessageBytes more.
inline constexpr std::size_t kMaxHeldBytes = std::size_t{48} << 20;
inline constexpr std::size_t kHeldMessageBytes = 512;
/// A tensor of a bucket: offset, elements, bound, reason, name and an empty rule.
inline constexpr std::size_t kMaxDescribedTensorBytes = 4 + 4 + 4 + 1 + 2 + kMaxTensorNameBytes + 2;
static_assert(kMaxHeldBytes >=
                  2 * kMaxTensorsPerJob * (kMaxDescribedTensorBytes + 2) +
                      2 * kMaxNodes * (2 * kHeldMessageBytes + protocol::kMaxNodeTextBytes),
              "every honest job fits, and twice over");

/// A new coordinator adds a random step up to this to the newest epoch, so that two nodes that take
/// over jobs of one coordinator do not use the same epochs.
inline constexpr std::uint32_t kLargestEpochStep = 0xfffff;
/// The highest epoch that a report may have. No job has so many plans, and a coordinator that went
/// on from a higher one might run out of numbers.
inline constexpr std::uint32_t kMaxReportedEpoch = 0xefffffff;
static_assert(kMaxReportedEpoch < UINT32_MAX - 100 * kLargestEpochStep);

/// Reasons that a node is told when a job or a plan does not go on there.
inline constexpr const char* kWithoutNode = "the job goes on, or has begun anew, without this node";
inline constexpr const char* kChangeLost =
    "the node that coordinated it was lost; ask again for another plan";

/// The reports about one job that a new coordinator collects from the nodes with a part in it.
/// Pure.
///
/// It asks every node with a part in any plan that some node has: the plan in force, one that is
/// prepared, and the one before while it has open rounds. A node that has answered takes no more
/// orders from an earlier coordinator. So when all have answered, only this coordinator can change
/// the job.
class Takeover {
 public:
  struct Held {
    api::NodeId from = api::kNoNode;
    protocol::NodeMessage message;
    std::size_t bytes = 0;  // what it counts towards kMaxHeldBytes
  };

  Takeover(const protocol::JobKey& key, std::uint32_t first_epoch, Instant until)
      : key_(key), first_epoch_(first_epoch), until_(until) {}

  void on_report(api::NodeId from, const protocol::Report& report);
  /// Whether a node was asked for the plan of an epoch and has not sent it.
  bool awaits_plan(std::uint32_t epoch, api::NodeId from) const;
  void on_plan(std::uint32_t epoch, api::Plan plan);
  /// `is_back`: the node answers again, but everything agreed with it before is void. If it has not
  /// reported yet, it is asked once more.
  void on_lost(api::NodeId node, const std::string& why, bool is_back);
  /// The node no longer prepares this plan.
  void on_refused(api::NodeId from, std::uint32_t epoch);
  /// Holds a message until the job is known. False: kMaxHeldBytes would be exceeded.
  [[nodiscard]] bool hold(api::NodeId from, protocol::NodeMessage message);
  std::deque<Held> take_held();

  /// Sends the questions that are open, each once. It asks for one plan at a time, so that the
  /// plans of all jobs fit the link of a node that has them all.
  void ask(Outbox& outbox);
  /// Whether all nodes have answered or are lost, and every plan is known.
  bool is_complete() const;
  /// The nodes that have not answered.
  std::set<api::NodeId> awaited() const;
  /// The nodes that have not answered, or have not sent a plan for which they were asked.
  std::set<api::NodeId> silent() const;

  const protocol::JobKey& key() const { return key_; }
  std::uint32_t first_epoch() const { return first_epoch_; }
  Instant until() const { return until_; }
  const std::map<api::NodeId, protocol::Report>& reports() const { return reports_; }
  /// The report of a node; null: it is lost, or knows nothing of the job.
  const protocol::Report* job_at(api::NodeId node) const;
  std::string why_not_at(api::NodeId node) const;
  const api::Plan* plan(std::uint32_t epoch) const;
  /// The epoch of the newest plan that is in force anywhere; 0: none.
  std::uint32_t committed_epoch() const;
  std::uint32_t newest_epoch() const;
  /// The last Join of a node, with the ranks that wait there.
  const protocol::Join* waiting_at(api::NodeId node) const;
  /// The user whose quota the job counts against. As nobody reports who opened the job, it is the
  /// user of its ranks with the lowest uid. It is root only if all ranks are root's, because root
  /// has no quota.
  std::uint32_t user() const;
  /// All live nodes that have to do with the job.
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
  std::map<std::uint32_t, api::NodeId> plan_asked_;  // by epoch: the node that was asked for it
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;
};

}  // namespace gradplane::session
