// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "dataplane/base/assert.h"

namespace gradplane::daemon {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

constexpr std::size_t rounded_up(std::size_t bytes) {
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

/// Maps memory that begins at a multiple of kHugePageBytes, and unmaps the rest around it.
void* map_aligned(std::size_t bytes) {
  const std::size_t reserved = bytes + kHugePageBytes;
  void* const at =
      ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(at);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t before = rounded_up(address) - address;
  if (before > 0) ::munmap(begin, before);
  if (const std::size_t behind = kHugePageBytes - before; behind > 0)
    ::munmap(begin + before + bytes, behind);
  return begin + before;
}

class HugePages final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes < kHugePageBytes) return small_.allocate(bytes, alignment);
    GP_ASSERT(alignment <= kHugePageBytes);
    void* const at = map_aligned(rounded_up(bytes));
    // An error is ignored: without huge pages the memory is only slower.
    ::madvise(at, rounded_up(bytes), MADV_HUGEPAGE);
    return at;
  }

  void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override {
    if (bytes < kHugePageBytes) return small_.deallocate(at, bytes, alignment);
    ::munmap(at, rounded_up(bytes));
  }

  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::pmr::memory_resource& small_ = *std::pmr::new_delete_resource();
};

}  // namespace

std::pmr::memory_resource& huge_pages() {
  static HugePages resource;
  return resource;
}

}  // namespace gradplane::daemon
