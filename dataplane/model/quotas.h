// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/model/limits.h"

namespace gradplane {

/// What one user may hold; root may hold everything. And how long a job may hold a slot before all
/// of its ranks have come, whoever's it is.
struct Quotas {
  std::uint32_t jobs = 8;                      // on a node; by the coordinator's, in the cluster
  std::uint32_t ranks = 64;                    // on a node
  std::size_t updates = std::size_t{2} << 30;  // bytes on a node, for updates on their way
  Duration wait = Duration::seconds(10 * 60);  // for all ranks of a job
};

/// One user never takes every slot, nor the memory of every rank that a node may have.
inline constexpr std::uint32_t kMaxUserJobs = kMaxJobs - 1;
inline constexpr std::uint32_t kMaxUserRanks = kMaxUserJobs * kMaxLocalRanks;
static_assert(Quotas{}.jobs <= kMaxUserJobs && Quotas{}.ranks <= kMaxUserRanks);

}  // namespace gradplane
