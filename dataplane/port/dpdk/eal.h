// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <string>

#include "dataplane/base/result.h"
#include "dataplane/port/dpdk/dpdk_port.h"

/// DPDK's environment: one for a process, started once, never stopped.
namespace gradplane::port {

struct EalOptions {
  HugePages huge_pages = HugePages::kAuto;
  std::size_t memory_mb = 0;
  std::string pci_address;  // empty: no PCI device is looked for
};

/// Starts the EAL by the options of the first call; later calls answer as the first did. Quiet:
/// what DPDK logs goes to take_eal_log(). Control thread.
Status start_eal(const EalOptions& options);

/// The last that DPDK logged since the last call, on one line, for an error message. Any thread.
std::string take_eal_log();

/// Sends what libbpf and libxdp say, once DPDK has loaded them, to the same place as DPDK's log.
void capture_bpf_log();

/// Makes the calling thread one that DPDK knows, for as long as it runs. Cheap when it is already.
void attach_poll_thread() noexcept;

}  // namespace gradplane::port
