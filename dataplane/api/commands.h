// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/api/snapshot.h"
#include "dataplane/base/spsc_queue.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/rank_fault.h"
#include "dataplane/model/refusal.h"
#include "dataplane/model/round_report.h"
#include "dataplane/model/stall.h"

namespace gradplane::aggregate {
class Bucket;
}
namespace gradplane::engine {
class JobRuntime;
}
namespace gradplane::job {
class Plan;
}

/// The messages between the control plane and the poll loop: commands to the poll loop, and events
/// and round reports back. Each has a bounded queue of its own. A message with a pointer passes the
/// ownership of the object until a message returns it.
namespace gradplane::api {

struct ControlBytes {
  std::uint16_t node = 0;  // to or from
  std::uint16_t length_bytes = 0;
  std::array<std::byte, kMaxControlBytes> bytes;
};

struct Command {
  enum class Kind : std::uint8_t {
    // `job` becomes the poll loop's. If it joins (JobConfig::joins), this prepares its plan, and
    // kCommitPlan or kRemoveJob follows.
    kAddJob,
    kRemoveJob,     // answered with kJobRemoved
    kSendControl,   // `control` to a node
    kAddBucket,     // `bucket` of `job` is the poll loop's too, until the job has come back
    kFillSnapshot,  // `snapshot` becomes the poll loop's; answered with kSnapshotFilled
    // Another plan of a job that runs: `plan`, which becomes the poll loop's, is prepared under
    // `epoch`. Answered with kPlanPrepared or kPlanRefused.
    kPreparePlan,
    // Rounds of `job` from `round` on have the prepared plan `epoch`, earlier ones the plan before,
    // which comes back with kPlanReturned when the last of them has ended here.
    kCommitPlan,
    // The prepared plan `epoch` comes back with kPlanReturned. Nothing happens if it was refused.
    kAbortPlan,
    // All nodes with ranks have completed the rounds of `job` before the last activation, whose
    // plan is `epoch`: no more of them comes.
    kEndOlderPlan,
  };
  Kind kind = Kind::kSendControl;
  engine::JobRuntime* job = nullptr;
  job::Plan* plan = nullptr;
  std::uint32_t epoch = 0;
  std::uint32_t round = 0;
  aggregate::Bucket* bucket = nullptr;
  EngineSnapshot* snapshot = nullptr;
  ControlBytes control;
};

struct Event {
  enum class Kind : std::uint8_t {
    kControl,         // `control` from a node
    kJobRemoved,      // `job` is control's again
    kJobRefused,      // kAddJob failed: `job_refusal` says why
    kSnapshotFilled,  // `snapshot` is control's again
    kMismatch,        // `node` said of `round` something else than we know
    kStalled,         // nothing moves in `round` any more: `stall` says why, because of `node`
    kRankBroken,      // local rank `local_rank` of `job` is not listened to any more: `fault`
    // No round of `job` from `round` on is opened under any plan until kCommitPlan or kAbortPlan of
    // `epoch`. Of a job that joins, no round at all.
    kPlanPrepared,
    kPlanRefused,   // `plan` of `epoch` is control's again: `plan_refusal` says why
    kPlanReturned,  // `plan` of `epoch` is control's again: it has ended here, or was aborted
  };
  Kind kind = Kind::kControl;
  engine::JobRuntime* job = nullptr;  // the poll loop's, but in the answers
  job::Plan* plan = nullptr;
  std::uint32_t epoch = 0;
  EngineSnapshot* snapshot = nullptr;
  std::uint32_t round = 0;
  std::uint16_t node = 0;
  std::uint16_t local_rank = 0;
  RankFault fault = RankFault::kBadSubmission;
  Statement ours;
  Statement theirs;
  Stall stall;
  JobRefusal job_refusal = JobRefusal::kNone;
  PlanRefusal plan_refusal = PlanRefusal::kNone;
  ControlBytes control;
};

/// Names its job as the wire does: it may have left when control reads this.
struct JobRoundReport {
  std::uint32_t job = 0;
  std::uint32_t epoch = 0;
  std::uint16_t part = 0;  // of the job: each counts its reports
  RoundReport report;
};

using CommandQueue = SpscQueue<Command>;
using EventQueue = SpscQueue<Event>;
using ReportQueue = SpscQueue<JobRoundReport>;
inline constexpr std::size_t kQueueEntries = 256;
/// The capacity of the report queue. A report wakes nobody: control reads the queue many times a
/// second, and this is enough for the reports that the smallest rounds produce in between.
inline constexpr std::size_t kReportQueueEntries = 1024;

}  // namespace gradplane::api
