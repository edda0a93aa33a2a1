// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "control/config/config.h"

namespace gradplane::daemon {

/// The poll cores of this node that have a part in a job: `count` of them, from `first` on.
struct Placement {
  std::size_t first = 0;
  std::size_t count = 1;
};

/// The number of poll cores of this node.
std::size_t core_count(const config::Config& config);
/// The CPU of a poll core; none: the kernel's choice.
std::optional<std::uint32_t> poll_cpu(const config::Config& config, std::size_t core);
/// Why only one core carries each job, however many there are; empty: all cores share each job.
std::string why_one_core(const config::Config& config);
/// The poll cores of a job. It is the same on all nodes, because they have equally many cores.
Placement placement_of(const config::Config& config, std::uint32_t job_id);

}  // namespace gradplane::daemon
