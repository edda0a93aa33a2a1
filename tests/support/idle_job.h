// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/grants/grant_scheduler.h"

namespace gradplane::testing {

/// Adds a job that has one source, never sends, and by its weight holds nearly all of the window.
/// Since it is silent, all of that is granted to the other jobs, whose sources have one unscheduled
/// block each. A test of grants would else see none: sources that are alone need no grant.
inline void add_idle_job(grants::GrantScheduler& grants, grants::JobIndex job) {
  grants.set_policy(GrantPolicy::kWeighted);
  grants.set_job_weight(job, kMaxJobWeight);
  (void)grants.add_source(job);
}

}  // namespace gradplane::testing
