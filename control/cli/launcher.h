// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <string_view>

#include "control/cli/environment.h"

/// What torch.distributed reads (its env:// rendezvous), from what a launcher of ranks sets. Pure.
namespace gradplane::cli {

inline constexpr std::array<std::string_view, 4> kLauncherNames = {"openmpi", "mpich", "slurm",
                                                                   "kubernetes"};

/// `base` with RANK, WORLD_SIZE, LOCAL_RANK and, where they are not set, MASTER_ADDR and
/// MASTER_PORT. kubernetes: the index of an indexed Job is the rank, and its size is given as
/// WORLD_SIZE. An error says which variable is missing or makes no sense, and what to do.
Result<Environment> launched_environment(Environment base, std::string_view launcher);

/// The first host of a list such as "gpu[07-12,20],login" (SLURM_JOB_NODELIST); empty: it has none.
std::string first_host(std::string_view list);

}  // namespace gradplane::cli
