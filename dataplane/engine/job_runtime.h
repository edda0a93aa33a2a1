// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/api/bounds.h"
#include "dataplane/ipc/channel.h"
#include "dataplane/ipc/ring.h"
#include "dataplane/ipc/rounds_in_flight.h"
#include "dataplane/ipc/unique_fd.h"
#include "dataplane/job/job.h"
#include "dataplane/model/rank_fault.h"

namespace gradplane::engine {

/// A rank's channel, and the end of the doorbell that wakes its trainer. The session and the job
/// share it.
struct RankChannel {
  ipc::Channel channel;
  ipc::UniqueFd wake_trainer;
};

/// A job, or one core's part of it (JobConfig::core), as a poll loop runs it: the protocol, and
/// this core's rings in the channels of the local ranks. The control thread builds and destroys it;
/// in between it belongs to the poll loop.
class JobRuntime {
 public:
  /// `channels` has the order of `ranks`. The constructor fills config.local_ranks from both.
  JobRuntime(job::JobConfig config, std::vector<std::uint16_t> ranks,
             std::vector<std::shared_ptr<RankChannel>> channels);

  job::Job& job() { return job_; }
  const job::Job& job() const { return job_; }

  /// Makes what the poll loop needs to gather a bucket under these bounds. nullptr if the bounds
  /// contradict each other, if no round of this job is large enough, or if the bucket needs more
  /// than is left of the job's residual_bytes or inbox_bytes, or more inbox memory than the node
  /// allows. Called by the control thread while the poll loop runs the job.
  std::unique_ptr<aggregate::Bucket> make_bucket(const api::BucketBounds& bounds);
  /// Forgets a bucket that will not be handed over, because another part of the job could not make
  /// its own.
  void forget_bucket(const aggregate::Bucket* bucket) { std::erase(buckets_, bucket); }
  /// The memory of the job's inboxes, and the most that they may have from now on. Control thread.
  std::size_t inbox_bytes() const { return inbox_bytes_; }
  void allow_inbox_bytes(std::size_t most) { allowed_inbox_bytes_ = most; }

  /// Whether the job can have a further plan. At most kMaxLivePlans exist at a time; an aborted
  /// plan counts until the poll loop has given it back. Control thread.
  bool has_room_for_plan() const { return plans_.size() < kMaxLivePlans; }
  /// Makes a further plan of the job at this node, with what the job's buckets need under it.
  /// nullptr if there is no room for a plan, or if the buckets need more than is left of
  /// residual_bytes. Called by the control thread while the poll loop runs the job.
  std::unique_ptr<job::Plan> make_plan(const job::PlanConfig& config);
  /// Destroys a plan that the poll loop has given back, whether the plan was used or not. Control
  /// thread.
  void destroy_plan(job::Plan* plan);

  /// Calls Job::commit(). If this node joins the job, its ranks begin with the round `activation`.
  [[nodiscard]] bool commit(std::uint32_t epoch, std::uint32_t activation);

  /// A rank, by its local index, to which the engine no longer listens.
  struct BrokenRank {
    std::uint16_t local_rank = 0;
    RankFault fault = RankFault::kBadSubmission;
  };
  /// Moves submissions of the ranks into the job. True if something moved. A rank is broken if it
  /// did what no correct client does; take_broken() names each broken rank once.
  bool take_submissions();
  std::optional<BrokenRank> take_broken();

  /// Tells a local rank that its round is done.
  void complete(const job::Event& event);

  void beat();
  void announce_sleep();
  void end_sleep();
  /// Whether a rank has submitted something since announce_sleep().
  bool has_submissions();

 private:
  struct Rank {
    std::shared_ptr<RankChannel> channel;
    ipc::RingConsumer<ipc::Submission> submissions;
    ipc::RingProducer<ipc::Completion> completions;
    std::optional<ipc::Submission> held;  // a checked copy that waits until its slot is free
    ipc::RoundsInFlight rounds;           // rounds in flight, without `held`
    std::optional<RankFault> fault;       // set if the rank is broken
    bool fault_told = false;

    void fail(RankFault why) {
      if (!fault) fault = why;
    }
  };
  std::size_t core() const { return job_.config().core.index; }
  bool needs_residual(const job::PlanConfig& plan, bool narrows) const;
  bool take_residual_bytes(const Geometry& geometry);
  bool take_inbox_bytes(const Geometry& geometry);
  bool take_from(std::size_t index, Rank& rank);
  std::optional<ipc::Submission> take_next(Rank& rank);
  static std::optional<RankFault> fault_of(const ipc::Submission& submission, const Rank& rank);

  job::Job job_;
  // Control thread.
  std::size_t residual_bytes_ = 0;  // residuals of all buckets
  std::size_t inbox_bytes_ = 0;     // inboxes of all buckets
  std::size_t allowed_inbox_bytes_ = kMaxInboxBytes;
  std::vector<job::PlanConfig> plans_;
  std::vector<aggregate::Bucket*> buckets_;
  std::vector<Rank> ranks_;
};

}  // namespace gradplane::engine
