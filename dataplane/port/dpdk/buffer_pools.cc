// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/buffer_pools.h"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <atomic>
#include <string>
#include <utility>

#include "dataplane/port/dpdk/device.h"
#include "dataplane/port/dpdk/eal.h"
#include "dataplane/port/dpdk/lent_segments.h"

namespace gradplane::port {
namespace {

rte_mempool* create_pool(const char* stem, unsigned buffers, std::size_t bytes, int numa_node) {
  static std::atomic<unsigned> next{0};
  const std::string name = stem + std::to_string(next.fetch_add(1));
  const auto room = static_cast<std::uint16_t>(bytes);
  rte_mempool* pool =
      rte_pktmbuf_pool_create(name.c_str(), buffers, kPoolCacheCount, 0, room, numa_node);
  if (pool != nullptr || numa_node == SOCKET_ID_ANY) return pool;
  // That node has too few huge pages.
  (void)take_eal_log();
  return rte_pktmbuf_pool_create(name.c_str(), buffers, kPoolCacheCount, 0, room, SOCKET_ID_ANY);
}

Error no_memory(const DevicePlan& plan, unsigned buffers, std::size_t bytes) {
  return Error{"port: there is no memory for " + std::to_string(buffers) + " buffers of " +
               std::to_string(bytes) + " bytes for a queue: " + because(rte_errno) +
               "; give the process " + std::to_string(plan.memory_mb) +
               " MiB or more for each port, more huge pages, or fewer poll cores"};
}

}  // namespace

Result<BufferPools> BufferPools::create(std::uint16_t device_id, const DevicePlan& plan,
                                        bool with_segments) {
  const int node = rte_eth_dev_socket_id(device_id);  // SOCKET_ID_ANY if nobody knows
  const std::size_t room = plan.buffer_bytes + RTE_PKTMBUF_HEADROOM;
  BufferPools pools;
  pools.rx_ = create_pool("gp_rx_", plan.rx_buffer_count, room, node);
  pools.tx_ = create_pool("gp_tx_", plan.tx_buffer_count, room + plan.tx_spare_bytes, node);
  if (pools.rx_ == nullptr || pools.tx_ == nullptr) {
    return no_memory(plan, plan.rx_buffer_count + plan.tx_buffer_count, room);
  }
  if (!with_segments) return pools;
  constexpr std::size_t kRoom = RTE_PKTMBUF_HEADROOM + LentSegments::kBufferBytes;
  pools.segments_ = create_pool("gp_segments_", plan.segment_buffer_count, kRoom, node);
  if (pools.segments_ == nullptr) return no_memory(plan, plan.segment_buffer_count, kRoom);
  return pools;
}

BufferPools::BufferPools(BufferPools&& other) noexcept
    : rx_(std::exchange(other.rx_, nullptr)),
      tx_(std::exchange(other.tx_, nullptr)),
      segments_(std::exchange(other.segments_, nullptr)) {}

BufferPools::~BufferPools() {
  rte_mempool_free(rx_);
  rte_mempool_free(tx_);
  rte_mempool_free(segments_);
}

}  // namespace gradplane::port
