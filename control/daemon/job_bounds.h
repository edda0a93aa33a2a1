// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/config/config.h"
#include "dataplane/aggregate/bucket.h"
#include "dataplane/api/bounds.h"
#include "dataplane/api/commands.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"
#include "dataplane/base/time.h"
#include "dataplane/engine/job_runtime.h"

namespace gradplane::daemon {

/// A bucket with the bounds that it was installed with, and the state that the poll loops keep of
/// it.
struct InstalledBucket {
  api::BucketBounds table;
  std::vector<std::unique_ptr<aggregate::Bucket>> parts;  // by the job's parts

  /// One of the parts, for values that are equal in all.
  const aggregate::Bucket& any() const { return *parts.front(); }
  void set_bound(std::size_t tensor, float bound);
  /// Sums over all parts.
  std::uint64_t missing_blocks(std::size_t tensor) const;
  std::uint64_t expected_blocks(std::size_t tensor) const;
  std::uint64_t excluded_blocks(std::size_t tensor) const;
  std::uint64_t closes(CloseReason reason) const;
  double part_energy(std::size_t tensor) const;
  double sum_energy(std::size_t tensor) const;
  std::vector<aggregate::SourceReport> sources() const;
};

/// The buckets of one installed job. They live until the poll loop has given the job back. Control
/// thread.
class JobBounds {
 public:
  /// `self` is this node. `plan` says who contributes what to its sums.
  JobBounds(const api::Plan& plan, api::NodeId self) : self_(self) { use(plan); }

  /// Call it when another plan of the job comes into force. The ranks of nodes that have left stay
  /// known, because reports of earlier rounds name them.
  void use(const api::Plan& plan);

  /// Makes the bucket with all its memory; hand_over() will hand it to the poll loops. `parts` are
  /// the job's, the same at each call. An Error when there is no memory; see
  /// SessionManager::on_bucket_refused().
  Status add(const std::vector<engine::JobRuntime*>& parts, api::BucketBounds table,
             float learn_budget);
  /// Hands new buckets to the poll loop of a part, as long as its queue has more room than
  /// `keep_room` entries. False: some are left.
  bool hand_over(std::size_t part, engine::JobRuntime* runtime, api::CommandQueue& commands,
                 std::size_t keep_room);

  /// Sets the bounds that are learned anew, from what this node has measured. A node that is no
  /// root has measured nothing, and its bounds have no effect.
  void learn();

  /// A warning about the rounds that closed by the deadline or without an absent rank since the
  /// last warning: how many there were, and which nodes and tensors lacked most. Empty when there
  /// were none, or when the last warning is too recent.
  std::string take_close_warning(const config::Config& config, Instant now);

  const std::vector<InstalledBucket>& buckets() const { return buckets_; }
  /// The roots of the plan in force, by id.
  const std::vector<api::NodeId>& roots() const { return roots_; }
  std::vector<std::uint32_t> ranks_of(api::NodeId node) const;
  /// The name of a tensor; empty when it has none, or when there is no such tensor.
  std::string tensor_name(std::uint32_t bucket, std::uint32_t tensor) const;

 private:
  struct Missing {
    std::map<std::uint16_t, std::uint64_t> of_node;
    std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> of_tensor;  // bucket, tensor
  };
  Missing count_missing() const;
  std::uint64_t closes(CloseReason reason) const;

  const api::NodeId self_;
  std::map<api::NodeId, std::vector<std::uint32_t>> ranks_of_node_;
  std::vector<api::NodeId> roots_;
  std::uint32_t contributions_ = 0;  // how many enter a sum for which this node is the root
  std::vector<InstalledBucket> buckets_;
  std::vector<std::size_t> handed_over_;  // how many of buckets_ the poll loop has, by part
  float learn_budget_ = 0;

  std::uint64_t told_deadline_ = 0;
  std::uint64_t told_absent_ = 0;
  Missing told_missing_;
  Instant may_tell_at_;
};

}  // namespace gradplane::daemon
