// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

#include "control/daemon/lent_memory.h"
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

}  // namespace

void HugePages::lend_by(std::weak_ptr<LentMemory> lent) {
  const std::lock_guard lock(mutex_);
  lent_ = std::move(lent);
}

std::shared_ptr<LentMemory> HugePages::lent() {
  const std::lock_guard lock(mutex_);
  return lent_.lock();
}

void* HugePages::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes < kHugePageBytes) return small_.allocate(bytes, alignment);
  GP_ASSERT(alignment <= kHugePageBytes);
  const std::size_t mapped_bytes = rounded_up(bytes);
  void* const at = map_aligned(mapped_bytes);
  // An error is ignored: without huge pages the memory is only slower.
  ::madvise(at, mapped_bytes, MADV_HUGEPAGE);
  if (const auto lent = this->lent()) lent->add({static_cast<std::byte*>(at), mapped_bytes});
  return at;
}

void HugePages::do_deallocate(void* at, std::size_t bytes, std::size_t alignment) {
  if (bytes < kHugePageBytes) return small_.deallocate(at, bytes, alignment);
  const std::size_t mapped_bytes = rounded_up(bytes);
  const auto unmap = [at, mapped_bytes] { ::munmap(at, mapped_bytes); };
  const auto lent = this->lent();
  if (lent == nullptr) return unmap();
  lent->remove({static_cast<std::byte*>(at), mapped_bytes}, unmap);
}

HugePages& huge_pages() {
  static HugePages resource;
  return resource;
}

}  // namespace gradplane::daemon
