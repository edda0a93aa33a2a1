// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/base/result.h"

struct rte_mempool;

namespace gradplane::port {

struct DevicePlan;

/// The size of a thread's cache of a pool's buffers: a few bursts.
inline constexpr unsigned kPoolCacheCount = 128;
/// The most buffers that a thread keeps of a pool before it gives some back. A thread to which
/// another hands frames over never takes buffers from their pool, so it may keep these for ever.
inline constexpr unsigned kMaxCachedBuffers = kPoolCacheCount * 3 / 2;

/// The buffers of one queue of a device. Each direction has its own, so that received frames cannot
/// use up the buffers for sending. No other queue takes any, so poll threads share no pool, except
/// where one gives back a frame that another has handed over to it.
class BufferPools {
 public:
  BufferPools() = default;
  ~BufferPools();
  BufferPools(BufferPools&& other) noexcept;
  BufferPools& operator=(BufferPools&& other) = delete;

  /// Makes the pools of one queue of the device `device_id`, near the device where that NUMA node
  /// has DPDK memory. `with_segments`: also the pool of buffers for lent bytes. Control thread.
  static Result<BufferPools> create(std::uint16_t device_id, const DevicePlan& plan,
                                    bool with_segments);

  rte_mempool* rx() const { return rx_; }
  rte_mempool* tx() const { return tx_; }
  /// Null if a frame must be one buffer.
  rte_mempool* segments() const { return segments_; }

 private:
  rte_mempool* rx_ = nullptr;
  rte_mempool* tx_ = nullptr;
  rte_mempool* segments_ = nullptr;
};

}  // namespace gradplane::port
