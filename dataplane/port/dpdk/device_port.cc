// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/device_port.h"

#include <random>
#include <utility>

#include "dataplane/base/assert.h"
#include "dataplane/port/dpdk/dma_memory.h"

namespace gradplane::port {
namespace {

std::uint64_t random_seed() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

SubnetOptions subnet(const DpdkPortOptions& options) {
  return {.address = options.address,
          .prefix_length = options.prefix_length,
          .gateway = options.gateway.value_or(Ipv4{}),
          .hash_seed = random_seed()};
}

}  // namespace

DevicePort::DevicePort(const DpdkPortOptions& options, PortLock lock,
                       std::unique_ptr<Device> device, GroupFilter filter, std::uint16_t mtu)
    : lock_(std::move(lock)),
      device_(std::move(device)),
      filter_(std::move(filter)),
      handover_(device_->queue_count()),
      share_{.us = {.mac = device_->mac(),
                    .address = options.address,
                    .vlan = options.vlan,
                    .groups = &groups_},
             .mtu = mtu,
             .steering = options.steering,
             .report_seed = random_seed(),
             .device = *device_,
             .handover = handover_} {
  for (std::size_t q = 0; q < device_->queue_count(); ++q) {
    queues_.push_back(
        std::make_unique<DeviceQueue>(share_, static_cast<std::uint16_t>(q), subnet(options)));
  }
}

PortQueue& DevicePort::queue(std::size_t index) noexcept {
  GP_ASSERT(index < queues_.size());
  return *queues_[index];
}

Status DevicePort::join_group(const Group& group) {
  if (Status joined = groups_.join(group); !joined) return joined;
  Status passed = filter_.pass(group_mac(group.address), groups_.addresses());
  if (!passed) (void)groups_.leave(group);
  return passed;
}

void DevicePort::leave_group(const Group& group) {
  if (groups_.leave(group)) filter_.stop(group_mac(group.address), groups_.addresses());
}

Status DevicePort::add_memory(std::span<const std::byte> memory) {
  DmaMemory* const dma = device_->dma_memory();
  return dma == nullptr ? Status(Nothing{}) : dma->add(memory);
}

bool DevicePort::remove_memory(std::span<const std::byte> memory) {
  DmaMemory* const dma = device_->dma_memory();
  return dma == nullptr || dma->remove(memory);
}

}  // namespace gradplane::port
