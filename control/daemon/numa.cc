// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/numa.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <climits>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

namespace gradplane::daemon {
namespace {

namespace fs = std::filesystem;

/// MPOL_PREFERRED of linux/mempolicy.h, which is not installed everywhere.
constexpr long kPreferOneNode = 1;
constexpr std::size_t kMostNodes = sizeof(unsigned long) * CHAR_BIT;

/// "node3" is 3.
std::optional<int> number_of(std::string_view name) {
  constexpr std::string_view kPrefix = "node";
  int node = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, node);
  return error == std::errc() && rest == end ? std::optional(node) : std::nullopt;
}

std::optional<int> node_of_cpu(std::uint32_t cpu, const fs::path& sysfs) {
  std::error_code error;
  const fs::path folder = sysfs / "devices/system/cpu" / fmt::format("cpu{}", cpu);
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (const auto node = number_of(at->path().filename().string())) return node;
  }
  return std::nullopt;
}

/// The NUMA node of a port's device; none if the kernel names none, which it does by -1.
std::optional<int> node_of_port(const config::PortConfig& port, const fs::path& sysfs) {
  fs::path device;
  if (!port.pci.empty()) {
    device = sysfs / "bus/pci/devices" / port.pci;
  } else if (!port.interface.empty()) {
    device = sysfs / "class/net" / port.interface / "device";
  } else {
    return std::nullopt;
  }
  int node = -1;
  std::ifstream(device / "numa_node") >> node;
  return node >= 0 ? std::optional(node) : std::nullopt;
}

}  // namespace

std::string numa_warning(const std::vector<std::uint32_t>& cpus, const config::PortConfig& port,
                         const fs::path& sysfs) {
  const auto near = node_of_port(port, sysfs);
  if (!near) return {};
  std::string far;
  for (const std::uint32_t cpu : cpus) {
    const auto node = node_of_cpu(cpu, sysfs);
    if (node && *node != *near) far += fmt::format("{}{}", far.empty() ? "" : ", ", cpu);
  }
  if (far.empty()) return {};
  return fmt::format(
      "CPU {} of poll.core or poll.cores is not on NUMA node {}, where the NIC {} is: each packet "
      "crosses the link between the sockets. Name CPUs of /sys/devices/system/node/node{}/cpulist",
      far, *near, port.pci.empty() ? port.interface : port.pci, *near);
}

bool prefer_memory_of(std::uint32_t cpu, const fs::path& sysfs) {
  const auto node = node_of_cpu(cpu, sysfs);
  std::error_code error;
  const bool has_several = fs::exists(sysfs / "devices/system/node/node1", error);
  if (!node || !has_several || static_cast<std::size_t>(*node) >= kMostNodes) return false;
  const unsigned long nodes = 1UL << *node;
  return syscall(SYS_set_mempolicy, kPreferOneNode, &nodes, kMostNodes + 1) == 0;
}

MemoryNear::MemoryNear(std::optional<std::uint32_t> cpu, const fs::path& sysfs) {
  if (!cpu) return;
  const long got =
      syscall(SYS_get_mempolicy, &policy_before_, &nodes_before_, kMostNodes + 1, nullptr, 0);
  is_set_ = got == 0 && prefer_memory_of(*cpu, sysfs);
}

MemoryNear::~MemoryNear() {
  if (is_set_) (void)syscall(SYS_set_mempolicy, policy_before_, &nodes_before_, kMostNodes + 1);
}

}  // namespace gradplane::daemon
