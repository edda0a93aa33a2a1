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

/// A bucket with the bounds that it was installed with, and what the poll loops know of it.
struct InstalledBucket {
  api::BucketBounds table;
  std::vector<std::unique_ptr<aggregate::Bucket>> parts;  // by the job's parts

  /// Alike in all parts.
  const aggregate::Bucket& any() const { return *parts.front(); }
  void set_bound(std::size_t tensor, float bound);
  /// Over all parts.
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
  /// `plan`: who contributes what to the sums of this node `self`.
  JobBounds(const api::Plan& plan, api::NodeId self) : self_(self) { use(plan); }

  /// Another plan of the job is in force. Of nodes that have left it is still known which ranks
  /// they had, because reports of earlier rounds name them.
  void use(const api::Plan& plan);

  /// Makes the bucket with all its memory. Its turn to be handed over comes. An Error: it cannot
  /// be had; see SessionManager::on_bucket_refused().
  /// `parts` of the job, always the same.
  Status add(const std::vector<engine::JobRuntime*>& parts, api::BucketBounds table,
             float learn_budget);
  /// Hands what the poll loop of a part does not have to it, as far as its queue has room beside
  /// `keep_room` entries. False: some are left.
  bool hand_over(std::size_t part, engine::JobRuntime* runtime, api::CommandQueue& commands,
                 std::size_t keep_room);

  /// Gives the tensors whose bounds are learned new ones, from what has been measured here. A node
  /// that roots nothing has measured nothing, and its bounds are of no effect.
  void learn();

  /// What to tell the operator of rounds that closed by the deadline or without somebody since it
  /// was told last: how many, and who and what lacked most. Empty: nothing, or not yet again.
  std::string take_close_warning(const config::Config& config, Instant now);

  const std::vector<InstalledBucket>& buckets() const { return buckets_; }
  /// The nodes that gather something of the job under the plan in force, by id.
  const std::vector<api::NodeId>& roots() const { return roots_; }
  std::vector<std::uint32_t> ranks_of(api::NodeId node) const;
  /// Empty when it has none, or when there is no such tensor.
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
  std::uint32_t contributions_ = 0;  // that meet in a sum at a root here
  std::vector<InstalledBucket> buckets_;
  std::vector<std::size_t> handed_over_;  // of them, by part
  float learn_budget_ = 0;

  std::uint64_t told_deadline_ = 0;
  std::uint64_t told_absent_ = 0;
  Missing told_missing_;
  Instant may_tell_at_;
};

}  // namespace gradplane::daemon
