// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/numa.h"

#include <unistd.h>

#include <fstream>

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
