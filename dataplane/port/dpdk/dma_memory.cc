// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// rte_dev_dma_map() is the only way to map memory for a device, and still counts as experimental.
#define ALLOW_EXPERIMENTAL_API
#include "dataplane/port/dpdk/dma_memory.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "dataplane/base/assert.h"

namespace gradplane::port {
namespace {

std::uintptr_t address_of(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}

std::string mib_text(std::size_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

}  // namespace

bool DmaMemory::Region::has(std::uintptr_t first, std::uintptr_t last) const noexcept {
  const std::uint32_t before = version.load(std::memory_order_acquire);    // V2
  const std::uintptr_t own_begin = begin.load(std::memory_order_acquire);  // V2
  const std::uintptr_t own_end = end.load(std::memory_order_acquire);      // V2
  const bool is_whole = version.load(std::memory_order_relaxed) == before && before % 2 == 0;
  return is_whole && own_begin <= first && last <= own_end;
}

void DmaMemory::Region::publish(std::uintptr_t new_begin, std::uintptr_t new_end) noexcept {
  const std::uint32_t now = version.load(std::memory_order_relaxed);
  version.store(now + 1, std::memory_order_relaxed);
  begin.store(new_begin, std::memory_order_release);  // V1
  end.store(new_end, std::memory_order_release);      // V1
  version.store(now + 2, std::memory_order_release);  // V1
}

Status DmaMemory::map(std::span<const std::byte> region) {
  auto* const at = const_cast<std::byte*>(region.data());  // the NIC reads only
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (rte_extmem_register(at, region.size(), nullptr, 0, page_bytes) != 0) {
    return Error{"DPDK does not register " + mib_text(region.size()) +
                 " of memory: " + rte_strerror(rte_errno)};
  }
  if (rte_dev_dma_map(device_, at, address_of(at), region.size()) == 0) return Nothing{};
  const std::string cause = rte_strerror(rte_errno);
  (void)rte_extmem_unregister(at, region.size());
  return Error{"the IOMMU does not map " + mib_text(region.size()) + " for the NIC: " + cause +
               "; raise the limit of locked memory (ulimit -l), or run as root"};
}

void DmaMemory::unmap(Region& region) {
  auto* const at = const_cast<std::byte*>(region.mapped.data());
  (void)rte_dev_dma_unmap(device_, at, address_of(at), region.mapped.size());
  (void)rte_extmem_unregister(at, region.mapped.size());
  region.mapped = {};
}

Status DmaMemory::add(std::span<const std::byte> region) {
  GP_ASSERT(!region.empty());
  if (device_ == nullptr) return Error{"the device reads no memory but DPDK's"};
  const auto free = std::find_if(regions_.begin(), regions_.end(),
                                 [](const Region& r) { return r.mapped.empty(); });
  if (free == regions_.end()) {
    return Error{"the NIC already reads " + std::to_string(kMaxDmaRegions) +
                 " regions of memory, which is the limit"};
  }
  if (Status mapped = map(region); !mapped) return mapped.error();
  free->mapped = region;
  free->publish(address_of(region.data()), address_of(region.data()) + region.size());
  const auto count = static_cast<std::size_t>(free - regions_.begin()) + 1;
  used_.store(std::max(used_.load(std::memory_order_relaxed), count), std::memory_order_release);
  return Nothing{};
}

bool DmaMemory::remove(std::span<const std::byte> region) {
  const auto found = std::find_if(regions_.begin(), regions_.end(), [&](const Region& r) {
    return !r.mapped.empty() && r.mapped.data() == region.data();
  });
  if (found == regions_.end()) return true;
  found->publish(0, 0);
  if (rte_mbuf_ext_refcnt_read(&found->uses) > kOwnReferences) return false;
  unmap(*found);
  return true;
}

rte_mbuf_ext_shared_info* DmaMemory::find(std::span<const std::byte> bytes,
                                          std::size_t& hint) noexcept {
  const std::uintptr_t first = address_of(bytes.data());
  const std::uintptr_t last = first + bytes.size();
  if (regions_[hint].has(first, last)) return &regions_[hint].uses;
  const std::size_t used = used_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    if (!regions_[i].has(first, last)) continue;
    hint = i;
    return &regions_[i].uses;
  }
  return nullptr;
}

DmaMemory::~DmaMemory() {
  for (Region& region : regions_) {
    if (!region.mapped.empty()) unmap(region);
  }
}

}  // namespace gradplane::port
