// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <rte_mbuf_core.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/result.h"
#include "dataplane/port/dpdk/device_plan.h"
#include "dataplane/port/dpdk/dpdk_port.h"

struct rte_device;

namespace gradplane::port {

/// Memory outside DPDK that a NIC reads by DMA: which regions it may read, and how many of its
/// frames refer to each. A region's bus addresses are its virtual ones, so only a NIC behind an
/// IOMMU has such memory. add() and remove() are for the control thread, find() for the poll
/// threads.
class DmaMemory {
 public:
  /// `device` is the NIC, and must outlive this. Null: no region can be added.
  explicit DmaMemory(rte_device* device) : device_(device) {}
  /// The NIC must have been closed.
  ~DmaMemory();
  DmaMemory(const DmaMemory&) = delete;
  DmaMemory& operator=(const DmaMemory&) = delete;

  /// Maps whole pages for the NIC, and so keeps them in physical memory. At most kMaxDmaRegions.
  Status add(std::span<const std::byte> region);
  /// Ends that, if no frame refers to the region any more. False if some do; then call it again
  /// later. From the first call on, nobody may look for bytes of the region. True for a region
  /// that is not here.
  bool remove(std::span<const std::byte> region);

  /// The count of references to the region that has these bytes; null if there is none. `hint` is
  /// the caller's, and is where the next search begins.
  rte_mbuf_ext_shared_info* find(std::span<const std::byte> bytes, std::size_t& hint) noexcept;

 private:
  /// We keep references of our own, because DPDK frees the memory itself when the count falls to 0.
  /// At a count of 1, DPDK takes the caller for the only thread that changes it. Two are never 1.
  static constexpr std::uint16_t kOwnReferences = 2;
  static_assert(kMaxLateFrames + kOwnReferences <= UINT16_MAX, "DPDK counts references in 16 bits");
  struct Region {
    // Odd while begin and end change. V1, a release store, pairs with V2, an acquire load: a reader
    // that finds the same even number before and after has read a begin and an end that belong
    // together.
    std::atomic<std::uint32_t> version{0};
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};  // 0: not in use, or being removed
    rte_mbuf_ext_shared_info uses{
        .free_cb = nullptr, .fcb_opaque = nullptr, .refcnt = kOwnReferences};
    std::span<const std::byte> mapped = {};  // control thread; empty: not in use

    bool has(std::uintptr_t first, std::uintptr_t last) const noexcept;
    void publish(std::uintptr_t new_begin, std::uintptr_t new_end) noexcept;
  };
  Status map(std::span<const std::byte> region);
  void unmap(Region& region);

  rte_device* device_;
  std::array<Region, kMaxDmaRegions> regions_;
  std::atomic<std::size_t> used_{0};  // regions behind this one have never been in use
};

}  // namespace gradplane::port
