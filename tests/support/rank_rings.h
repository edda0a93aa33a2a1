// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "dataplane/ipc/channel.h"
#include "dataplane/ipc/ring.h"
#include "dataplane/model/limits.h"

namespace gradplane::testing {

/// A rank's end of the rings of all cores that share its job, in the memory that the daemon has
/// mapped.
class RankRings {
 public:
  explicit RankRings(ipc::Channel& channel) {
    for (std::size_t c = 0; c < channel.sizes().core_count; ++c)
      cores_.push_back({ipc::RingProducer<ipc::Submission>(channel.submissions(c)),
                        ipc::RingConsumer<ipc::Completion>(channel.completions(c))});
  }

  bool push(const ipc::Submission& submission) {
    return std::all_of(cores_.begin(), cores_.end(),
                       [&](Core& core) { return core.submissions.push(submission); });
  }

  /// Takes the next round that all cores have completed.
  bool pop(ipc::Completion& out) {
    for (Core& core : cores_) {
      while (core.completions.pop(out)) {
        Part& part = parts_[out.round % kRoundSlots];
        if (part.cores++ > 0) {
          out.contributors = std::min(out.contributors, part.sum.contributors);
          out.partial_blocks += part.sum.partial_blocks;
        }
        part.sum = out;
        if (part.cores < cores_.size()) continue;
        part = {};
        return true;
      }
    }
    return false;
  }

 private:
  struct Core {
    ipc::RingProducer<ipc::Submission> submissions;
    ipc::RingConsumer<ipc::Completion> completions;
  };
  struct Part {
    std::size_t cores = 0;
    ipc::Completion sum;
  };
  std::vector<Core> cores_;
  std::array<Part, kRoundSlots> parts_{};
};

}  // namespace gradplane::testing
