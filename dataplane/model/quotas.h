// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/model/limits.h"

namespace gradplane {

/// What one user may hold; root may hold everything. Also how long any job may hold a slot before
/// all its ranks have come.
struct Quotas {
  std::uint32_t jobs = 32;   // on a node; in the cluster by the coordinator's quota
  std::uint32_t ranks = 64;  // on a node
  // Bytes on a node, for updates that wait for a result.
  std::size_t updates = std::size_t{2} << 30;
  Duration wait = Duration::seconds(10 * 60);  // until all ranks of a job have come
};

/// One user can take neither every slot nor the memory of every rank that a node may have.
inline constexpr std::uint32_t kMaxUserJobs = kMaxJobs - 1;
inline constexpr std::uint32_t kMaxUserRanks = kMaxRanksOfNode - kMaxLocalRanks;
static_assert(Quotas{}.jobs <= kMaxUserJobs && Quotas{}.ranks <= kMaxUserRanks);

}  // namespace gradplane
