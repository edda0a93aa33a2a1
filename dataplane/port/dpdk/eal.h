// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "dataplane/base/result.h"
#include "dataplane/port/dpdk/dpdk_port.h"

/// DPDK's environment abstraction layer (EAL). A process has one; it is started once and never
/// stopped.
namespace gradplane::port {

struct EalOptions {
  HugePages huge_pages = HugePages::kAuto;
  std::size_t memory_mb = 0;
  std::string pci_address;  // empty: no PCI device is looked for
};

/// Starts the EAL with the options of the first call; later calls return the result of the first.
/// Prints nothing: take_eal_log() returns what DPDK logs. Control thread.
Status start_eal(const EalOptions& options);

/// The end of what DPDK has logged since the last call, on one line, for an error message. Any
/// thread.
std::string take_eal_log();

/// What an error number of DPDK means, and what DPDK has logged about it.
std::string because(int error);

/// Runs `work` on DPDK's interrupt thread, on which drivers handle their own sockets and alarms,
/// and waits for its end. False if it has not ended within a few seconds; it may then run later, so
/// it must own what it uses. Control thread.
bool run_on_interrupt_thread(std::function<void()> work);

/// Directs the output of libbpf and libxdp to DPDK's log, if DPDK has loaded them.
void capture_bpf_log();

/// Registers the calling thread with DPDK until it ends. Cheap if it is registered already.
void attach_poll_thread() noexcept;

}  // namespace gradplane::port
