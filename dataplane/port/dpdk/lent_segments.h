// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <rte_mbuf_core.h>

#include <cstddef>
#include <span>

#include "dataplane/port/dpdk/dma_memory.h"

struct rte_mempool;

namespace gradplane::port {

/// Makes a frame a chain of three buffers. The middle one refers to memory outside DPDK, and the
/// last one has the bytes after it. So the device reads the lent bytes where they are. A driver
/// that copies frames has read them when its burst returns, so any bytes may be lent to it. A NIC
/// reads them later, so they must be in memory that is mapped for it. One poll thread.
class LentSegments {
 public:
  /// The most bytes after lent bytes.
  static constexpr std::size_t kMaxTailBytes = 64;
  /// The size of the pool's buffers, without headroom.
  static constexpr std::size_t kBufferBytes = kMaxTailBytes;

  /// `pool` is null for a device that takes no segments. `dma` is null for a driver that copies.
  LentSegments(rte_mempool* pool, DmaMemory* dma) : pool_(pool), dma_(dma) {}
  LentSegments(const LentSegments&) = delete;
  LentSegments& operator=(const LentSegments&) = delete;

  bool can_lend() const { return pool_ != nullptr; }
  /// The count of references to these bytes, which insert() wants; null if they must be copied.
  rte_mbuf_ext_shared_info* uses_of(std::span<const std::byte> lent,
                                    std::size_t tail_bytes) noexcept;
  /// Puts `lent` into a frame of one segment, before its last `tail_bytes`. False, and the frame is
  /// unchanged, if the pool is empty.
  bool insert(rte_mbuf* frame, std::span<const std::byte> lent, std::size_t tail_bytes,
              rte_mbuf_ext_shared_info& uses) noexcept;

 private:
  rte_mempool* pool_;
  DmaMemory* dma_;
  std::size_t last_region_ = 0;
  // References of a driver that copies. DPDK frees lent memory when the count falls to 0, so we
  // keep one reference for ourselves.
  rte_mbuf_ext_shared_info copied_{.free_cb = nullptr, .fcb_opaque = nullptr, .refcnt = 1};
};

}  // namespace gradplane::port
