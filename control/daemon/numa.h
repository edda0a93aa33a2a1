// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "control/config/config.h"

namespace gradplane::daemon {

/// A warning about poll CPUs on another NUMA node than the NIC of `port`, because each of their
/// packets crosses the link between sockets. Empty when there are none, or when the kernel does not
/// tell. `sysfs` is where the kernel describes the host.
std::string numa_warning(const std::vector<std::uint32_t>& cpus, const config::PortConfig& port,
                         const std::filesystem::path& sysfs = "/sys");

/// Makes the calling thread, and the threads that it starts, get memory of the NUMA node of this
/// CPU as long as that has some. False: there is only one node, or the kernel does not tell or
/// allow it.
bool prefer_memory_of(std::uint32_t cpu, const std::filesystem::path& sysfs = "/sys");

/// While it lives, the thread that made it gets memory as after prefer_memory_of(). Afterwards it
/// gets memory as before.
class MemoryNear {
 public:
  /// No CPU: no effect.
  explicit MemoryNear(std::optional<std::uint32_t> cpu,
                      const std::filesystem::path& sysfs = "/sys");
  ~MemoryNear();
  MemoryNear(const MemoryNear&) = delete;
  MemoryNear& operator=(const MemoryNear&) = delete;

 private:
  int policy_before_ = 0;
  unsigned long nodes_before_ = 0;
  bool is_set_ = false;
};

}  // namespace gradplane::daemon
