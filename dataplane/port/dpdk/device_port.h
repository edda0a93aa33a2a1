// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "dataplane/port/dpdk/device.h"
#include "dataplane/port/dpdk/device_queue.h"
#include "dataplane/port/dpdk/group_filter.h"
#include "dataplane/port/dpdk/handover.h"
#include "dataplane/port/dpdk/interface.h"
#include "dataplane/port/dpdk/memif_lock.h"
#include "dataplane/port/group_table.h"
#include "dataplane/port/port.h"

namespace gradplane::port {

using PortLock = std::variant<DeviceLock, MemifLock>;

/// The port on a DPDK device.
class DevicePort final : public Port {
 public:
  /// `lock` keeps other processes off the device for as long as the port lives.
  DevicePort(const DpdkPortOptions& options, PortLock lock, std::unique_ptr<Device> device,
             GroupFilter filter, std::uint16_t mtu);

  std::size_t queue_count() const noexcept override { return queues_.size(); }
  PortQueue& queue(std::size_t index) noexcept override;
  Status join_group(const Group& group) override;
  void leave_group(const Group& group) override;
  Status add_memory(std::span<const std::byte> memory) override;
  bool remove_memory(std::span<const std::byte> memory) override;
  std::size_t mtu_payload_bytes() const noexcept override { return share_.payload_bytes(); }
  Ipv4 address() const noexcept override { return share_.us.address; }

 private:
  PortLock lock_;
  std::unique_ptr<Device> device_;
  GroupTable groups_;
  GroupFilter filter_;
  Handover handover_;  // must be destroyed before the device, because it frees frames
  DeviceShare share_;
  std::vector<std::unique_ptr<DeviceQueue>> queues_;
};

}  // namespace gradplane::port
