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

/// A rank's channel and the end of a doorbell that wakes its trainer. The session's and the job's.
struct RankChannel {
  ipc::Channel channel;
  ipc::UniqueFd wake_trainer;
};

/// A job as a poll loop runs it, or a part of it (JobConfig::core): the protocol, and that part's
/// rings in the channels of its local ranks. Built and destroyed by the control thread; in between
/// it is the poll loop's alone.
class JobRuntime {
 public:
  /// `channels` in the order of the ranks; config.local_ranks is filled from them.
  JobRuntime(job::JobConfig config, std::vector<std::uint16_t> ranks,
             std::vector<std::shared_ptr<RankChannel>> channels);

  job::Job& job() { return job_; }
  const job::Job& job() const { return job_; }

  /// What the poll loop needs to gather a bucket under these bounds; nullptr when they contradict
  /// themselves, fit no round of this job, or need more than is left of its residual_bytes or
  /// inbox_bytes, or of what the node allows. Control thread, while the poll loop has the job.
  std::unique_ptr<aggregate::Bucket> make_bucket(const api::BucketBounds& bounds);
  /// One that will never be handed over, because another part of the job could not make its own.
  void forget_bucket(const aggregate::Bucket* bucket) { std::erase(buckets_, bucket); }
  /// What its inboxes have of memory, and how much they may have from now on. Control thread.
  std::size_t inbox_bytes() const { return inbox_bytes_; }
  void allow_inbox_bytes(std::size_t most) { allowed_inbox_bytes_ = most; }

  /// Whether the job can have a further plan: at most kMaxLivePlans are here, and one that was
  /// aborted counts until the poll loop has given it back. Control thread.
  bool has_room_for_plan() const { return plans_.size() < kMaxLivePlans; }
  /// A further plan of the job at this node, with what the buckets of the job need under it;
  /// nullptr when there is no room for it, or when they need more than is left of its
  /// residual_bytes. Control thread, while the poll loop has the job.
  std::unique_ptr<job::Plan> make_plan(const job::PlanConfig& config);
  /// Destroys a plan that has come back from the poll loop, whatever has become of it there.
  /// Control thread.
  void destroy_plan(job::Plan* plan);

  /// Job::commit(). Ranks of a job that joins begin with the round `activation`.
  [[nodiscard]] bool commit(std::uint32_t epoch, std::uint32_t activation);

  /// A rank that is never listened to again, by its index.
  struct BrokenRank {
    std::uint16_t local_rank = 0;
    RankFault fault = RankFault::kBadSubmission;
  };
  /// Moves what ranks have submitted into the job. True when something moved. A rank that did what
  /// no correct client does is broken; take_broken() names it once.
  bool take_submissions();
  std::optional<BrokenRank> take_broken();

  /// Tells a local rank that its round is done.
  void complete(const job::Event& event);

  void beat();
  void announce_sleep();
  void end_sleep();
  /// Something was submitted after announce_sleep().
  bool has_submissions();

 private:
  struct Rank {
    std::shared_ptr<RankChannel> channel;
    ipc::RingConsumer<ipc::Submission> submissions;
    ipc::RingProducer<ipc::Completion> completions;
    std::optional<ipc::Submission> held;  // copied, checked, waiting for its slot
    ipc::RoundsInFlight rounds;           // what it submitted, but for `held`, and we completed
    std::optional<RankFault> fault;       // set: it is broken
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
  std::size_t residual_bytes_ = 0;  // of all buckets
  std::size_t inbox_bytes_ = 0;     // of all buckets
  std::size_t allowed_inbox_bytes_ = kMaxInboxBytes;
  std::vector<job::PlanConfig> plans_;
  std::vector<aggregate::Bucket*> buckets_;
  std::vector<Rank> ranks_;
};

}  // namespace gradplane::engine
