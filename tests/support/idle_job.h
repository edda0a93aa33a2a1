// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/grants/grant_scheduler.h"

namespace gradplane::testing {

/// Adds a job with one source that never sends, and with a weight that gives it nearly all of the
/// credit window. Since that source is silent, all of its share is granted to the other jobs, whose
/// sources have one unscheduled block each. Without this job a test would see no grants, because a
/// source that is alone needs none.
inline void add_idle_job(grants::GrantScheduler& grants, grants::JobIndex job) {
  grants.set_policy(GrantPolicy::kWeighted);
  grants.set_job_weight(job, kMaxJobWeight);
  (void)grants.add_source(job);
}

}  // namespace gradplane::testing
