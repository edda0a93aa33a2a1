// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "dataplane/port/dpdk/dpdk_port.h"
#include "dataplane/port/dpdk/frame.h"

namespace gradplane::port {

/// The most frames of a NIC that refer to memory outside DPDK at a time.
inline constexpr unsigned kMaxLateFrames = 1U << 15;

/// What a kind of device needs: a driver, its arguments, and memory.
struct DevicePlan {
  std::string driver;  // its library is librte_<driver>; empty for pci, where it depends on the NIC
  std::string arguments;  // arguments of the driver
  std::uint16_t mtu = kDefaultMtu;
  std::uint32_t buffer_bytes = 0;  // for one frame, without the headroom
  // For each queue.
  unsigned rx_buffer_count = 0;
  unsigned tx_buffer_count = 0;
  unsigned segment_buffer_count = 0;  // 0: no frame contains lent bytes
  bool reads_late = false;            // the device may read frames after their burst
  std::uint16_t tx_spare_bytes = 0;   // room in a sent frame's buffer beyond the longest frame
  std::size_t memory_mb = 0;
};

/// Makes the plan for a device with this final MTU. Pure: it opens nothing.
DevicePlan plan_device(const DpdkPortOptions& options, std::uint16_t mtu);

}  // namespace gradplane::port
