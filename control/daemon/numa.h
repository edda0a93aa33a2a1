// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "control/config/config.h"

namespace gradplane::daemon {

/// What to tell the operator of poll CPUs that are on another NUMA node than the NIC of `port`:
/// each packet of theirs crosses the link between sockets. Empty: none is, or the kernel does not
/// say. `sysfs`: where the kernel describes the host.
std::string numa_warning(const std::vector<std::uint32_t>& cpus, const config::PortConfig& port,
                         const std::filesystem::path& sysfs = "/sys");

/// From now on the calling thread, and those that it starts, get memory of the NUMA node of this
/// CPU as long as it has some. False: there is one node, or the kernel does not say or allow it.
bool prefer_memory_of(std::uint32_t cpu, const std::filesystem::path& sysfs = "/sys");

}  // namespace gradplane::daemon
