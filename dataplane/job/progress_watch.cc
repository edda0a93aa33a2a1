// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/progress_watch.h"

#include "dataplane/hop/block_sender.h"

namespace gradplane::job {

void ProgressWatch::look(Instant now) {
  quiet_ += std::clamp(now - last_look_, Duration{}, kLongestStep);
  last_look_ = now;
  next_look_ = now + hop::kLookInterval;
}

}  // namespace gradplane::job
