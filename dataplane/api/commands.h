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
/// and round reports back. Each kind has its own bounded queue. A message with a pointer hands the
/// object over until a message returns it.
namespace gradplane::api {

struct ControlBytes {
  std::uint16_t node = 0;  // the receiver of a command, the sender of an event
  std::uint16_t length_bytes = 0;
  std::array<std::byte, kMaxControlBytes> bytes;
};

struct Command {
  enum class Kind : std::uint8_t {
    // `job` passes to the poll loop. If it joins (JobConfig::joins), this also prepares its plan,
    // and kCommitPlan or kRemoveJob follows.
    kAddJob,
    kRemoveJob,     // answered with kJobRemoved
    kSendControl,   // `control` to a node
    kAddBucket,     // the poll loop may use `bucket` of `job` until the job comes back
    kFillSnapshot,  // `snapshot` passes to the poll loop; answered with kSnapshotFilled
    // Prepares `plan`, a further plan of a running job, under `epoch`. It passes to the poll loop.
    // Answered with kPlanPrepared or kPlanRefused.
    kPreparePlan,
    // Rounds of `job` from `round` on belong to the prepared plan `epoch`. Earlier ones belong to
    // the older plan, which comes back with kPlanReturned when the last of them has ended here.
    kCommitPlan,
    // The prepared plan `epoch` comes back with kPlanReturned. Does nothing if the plan was
    // refused.
    kAbortPlan,
    // All nodes with ranks have completed the rounds of `job` before the last activation, which
    // belong to the plan `epoch`.
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
    kJobRemoved,      // `job` is back at the control thread
    kJobRefused,      // kAddJob failed: `job_refusal` says why
    kSnapshotFilled,  // `snapshot` is back at the control thread
    kMismatch,        // `node` states something else about `round` than this node
    kStalled,         // nothing moves in `round` any more: `stall` says why, `node` causes it
    kRankBroken,      // the poll loop no longer listens to `local_rank` of `job`: `fault`
    // No round of `job` from `round` on is opened under any plan until kCommitPlan or kAbortPlan of
    // `epoch`. A job that joins opens no round at all.
    kPlanPrepared,
    kPlanRefused,  // `plan` of `epoch` is back at the control thread: `plan_refusal` says why
    // `plan` of `epoch` is back at the control thread: it has ended here, or was aborted.
    kPlanReturned,
  };
  Kind kind = Kind::kControl;
  engine::JobRuntime* job = nullptr;  // only kJobRemoved and kJobRefused hand it back
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

/// It names its job by the id in packets, because the job may be gone when control reads the
/// report.
struct JobRoundReport {
  std::uint32_t job = 0;
  std::uint32_t epoch = 0;
  std::uint16_t part = 0;  // part of the job; each part numbers its own reports
  RoundReport report;
};

using CommandQueue = SpscQueue<Command>;
using EventQueue = SpscQueue<Event>;
using ReportQueue = SpscQueue<JobRoundReport>;
inline constexpr std::size_t kQueueEntries = 1024;
/// The capacity of the report queue. A report wakes nobody: control reads the queue many times a
/// second, and this is enough for the reports that the smallest rounds produce in between.
inline constexpr std::size_t kReportQueueEntries = 1024;

}  // namespace gradplane::api
