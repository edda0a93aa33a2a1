// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <string_view>

#include "control/cli/environment.h"

/// Translates the variables of a launcher of ranks to those of torch.distributed's env://
/// rendezvous. Pure.
namespace gradplane::cli {

inline constexpr std::array<std::string_view, 4> kLauncherNames = {"openmpi", "mpich", "slurm",
                                                                   "kubernetes"};

/// `base` with RANK, WORLD_SIZE, LOCAL_RANK and, where they are not set, MASTER_ADDR and
/// MASTER_PORT. With kubernetes the rank is the index in an indexed Job, and the user sets
/// WORLD_SIZE. An error says which variable is missing or makes no sense, and what to do.
Result<Environment> launched_environment(Environment base, std::string_view launcher);

/// The first host of a list such as "gpu[07-12,20],login" (SLURM_JOB_NODELIST); empty if none.
std::string first_host(std::string_view list);

}  // namespace gradplane::cli
