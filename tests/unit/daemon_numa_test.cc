// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/numa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::daemon;

namespace {

namespace fs = std::filesystem;

/// A host with CPUs 0 and 1 on NUMA node 0. CPU 2 and the NIC eth0 are on NUMA node 1.
struct Host {
  Host() {
    for (const char* folder : {"devices/system/cpu/cpu0/node0", "devices/system/cpu/cpu1/node0",
                               "devices/system/cpu/cpu2/node1", "devices/system/node/node0",
                               "class/net/eth0/device", "bus/pci/devices/0000:01:00.0"})
      fs::create_directories(sysfs / folder);
    std::ofstream(sysfs / "class/net/eth0/device/numa_node") << "1\n";
    std::ofstream(sysfs / "bus/pci/devices/0000:01:00.0/numa_node") << "-1\n";
  }
  ~Host() { fs::remove_all(sysfs); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  fs::path sysfs = fs::temp_directory_path() / ("gp-numa-" + std::to_string(getpid()));
};

/// The memory policy of this thread, and its nodes. The policy is -1 where the kernel does not
/// tell.
std::pair<int, unsigned long> memory_policy() {
  int policy = -1;
  unsigned long nodes = 0;
  (void)syscall(SYS_get_mempolicy, &policy, &nodes, 8 * sizeof nodes + 1, nullptr, 0);
  return {policy, nodes};
}

}  // namespace

TEST_CASE("poll CPUs far from the NIC are named") {
  const Host host;
  config::PortConfig port;
  port.interface = "eth0";
  CHECK(numa_warning({2}, port, host.sysfs).empty());
  const std::string warning = numa_warning({0, 2, 1}, port, host.sysfs);
  CHECK(warning.find("CPU 0, 1 of poll.core") == 0);
  CHECK(warning.find("NUMA node 1, where the NIC eth0 is") != std::string::npos);
}

TEST_CASE("where the kernel does not say which node is near, nothing is said") {
  const Host host;
  config::PortConfig port;
  CHECK(numa_warning({0}, port, host.sysfs).empty());
  port.interface = "eth1";
  CHECK(numa_warning({0}, port, host.sysfs).empty());
  port.pci = "0000:01:00.0";
  CHECK(numa_warning({0}, port, host.sysfs).empty());
  port.pci.clear();
  port.interface = "eth0";
  CHECK(numa_warning({7}, port, host.sysfs).empty());
}

TEST_CASE("on a host with one node all memory is near") {
  const Host host;
  CHECK_FALSE(prefer_memory_of(0, host.sysfs));
}

TEST_CASE("memory comes from the node of a CPU for a while, and then from where it came before") {
  const Host host;
  const auto before = memory_policy();
  if (before.first < 0) return;  // a container may forbid the question
  // The host of this test may have one node. So the kernel only accepts node 0.
  fs::create_directories(host.sysfs / "devices/system/node/node1");
  constexpr int kPreferred = 1;  // MPOL_PREFERRED
  {
    const MemoryNear near(0, host.sysfs);
    CHECK(memory_policy() == std::pair(kPreferred, 1UL));
    {
      const MemoryNear nobody(std::nullopt, host.sysfs);
      const MemoryNear unknown(7, host.sysfs);
      CHECK(memory_policy() == std::pair(kPreferred, 1UL));
    }
    CHECK(memory_policy() == std::pair(kPreferred, 1UL));
  }
  CHECK(memory_policy() == before);
}
