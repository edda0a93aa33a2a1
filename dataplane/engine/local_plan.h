// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/job/job_config.h"

namespace gradplane::engine {

/// Fills `config.peers` and `config.trees` with what `self` needs to know of a valid plan, and
/// `config.world_size` and `config.first_round`. `link_bits_per_second` is the link rate of each
/// node, by id (0 or absent: not known). A peer's rate is an even share of its link among all that
/// send to it, or its whole link where `config.grants` says that it grants. Control thread.
void fill_local_plan(job::JobConfig& config, const api::Plan& plan, api::NodeId self,
                     const std::vector<std::uint64_t>& link_bits_per_second);

}  // namespace gradplane::engine
