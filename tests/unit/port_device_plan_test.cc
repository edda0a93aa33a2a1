// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/device_plan.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "dataplane/port/dpdk/buffer_pools.h"
#include "tests/support/catch.h"

namespace gradplane::port {
namespace {

bool has(const DevicePlan& plan, const char* argument) {
  return plan.arguments.find(argument) != std::string::npos;
}

TEST_CASE("device plan: a NIC that fills two rings leaves as many buffers to hold as others") {
  const auto left_to_hold = [](DeviceKind kind, unsigned rings) {
    DpdkPortOptions o;
    o.kind = kind;
    return plan_device(o, kDefaultMtu).rx_buffer_count - rings * o.rx_descriptors;
  };
  CHECK(left_to_hold(DeviceKind::kPci, 2) == left_to_hold(DeviceKind::kAfPacket, 1));
}

TEST_CASE(
    "device plan: a memif's ring takes no buffers of the pools, and is longer for long frames") {
  const auto plan = [](DeviceKind kind, std::uint16_t mtu) {
    DpdkPortOptions o;
    o.kind = kind;
    return plan_device(o, mtu);
  };
  const DevicePlan memif = plan(DeviceKind::kMemif, kDefaultMtu);
  const DevicePlan other = plan(DeviceKind::kAfPacket, kDefaultMtu);
  const DpdkPortOptions defaults;
  CHECK(memif.rx_buffer_count == other.rx_buffer_count - defaults.rx_descriptors);
  CHECK(memif.tx_buffer_count == other.tx_buffer_count - defaults.tx_descriptors);
  CHECK(has(memif, ",rsize=10"));
  CHECK(has(plan(DeviceKind::kMemif, 9000), ",rsize=11"));
}

TEST_CASE("device plan: a queue has enough buffers when all other threads keep some of its own") {
  for (const auto kind : {DeviceKind::kAfPacket, DeviceKind::kMemif, DeviceKind::kPci}) {
    DpdkPortOptions o;
    o.kind = kind;
    const unsigned alone = plan_device(o, kDefaultMtu).rx_buffer_count;
    o.steering.queue_count = kMaxQueues;
    const DevicePlan plan = plan_device(o, kDefaultMtu);
    CHECK(plan.rx_buffer_count == alone + (kMaxQueues - 1) * kMaxCachedBuffers);
    const std::size_t bytes =
        kMaxQueues * (plan.rx_buffer_count + plan.tx_buffer_count) * plan.buffer_bytes;
    CHECK(plan.memory_mb > bytes >> 20);
  }
}

}  // namespace
}  // namespace gradplane::port
