// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <rte_mbuf_core.h>

#include <cstddef>
#include <span>

struct rte_mempool;

namespace gradplane::port {

/// Makes a frame a chain of three buffers. The middle one refers to memory outside DPDK, and the
/// last one has the bytes after it. So a driver that copies frames reads the lent bytes where they
/// are. It must have read them when its burst returns, because we do not learn when a buffer is
/// freed. One poll thread.
class LentSegments {
 public:
  /// The most bytes after lent bytes.
  static constexpr std::size_t kMaxTailBytes = 64;
  /// The size of the pool's buffers, without headroom.
  static constexpr std::size_t kBufferBytes = kMaxTailBytes;

  /// `pool` is null for a device that takes no segments.
  explicit LentSegments(rte_mempool* pool) : pool_(pool) {}
  LentSegments(const LentSegments&) = delete;
  LentSegments& operator=(const LentSegments&) = delete;

  bool can_lend() const { return pool_ != nullptr; }
  /// Puts `lent` into a frame of one segment, before its last `tail_bytes`. False, and the frame is
  /// unchanged, if the pool is empty.
  bool insert(rte_mbuf* frame, std::span<const std::byte> lent, std::size_t tail_bytes) noexcept;

 private:
  rte_mempool* pool_;
  // DPDK frees lent memory when its count falls to 0, so we keep one count for ourselves.
  rte_mbuf_ext_shared_info uses_{.free_cb = nullptr, .fcb_opaque = nullptr, .refcnt = 1};
};

}  // namespace gradplane::port
