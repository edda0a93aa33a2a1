// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <mutex>

namespace gradplane::daemon {

class LentMemory;

/// A memory resource that gives large blocks huge pages of their own, where the kernel has some.
/// With pages of 4 KiB the sums of a few rounds need more entries than the TLB of a processor has.
/// Small blocks come from new. Any thread; throws std::bad_alloc.
class HugePages final : public std::pmr::memory_resource {
 public:
  /// Lends large blocks that are allocated from now on, for as long as `lent` exists.
  void lend_by(std::weak_ptr<LentMemory> lent);

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
  std::shared_ptr<LentMemory> lent();

  std::pmr::memory_resource& small_ = *std::pmr::new_delete_resource();
  std::mutex mutex_;
  std::weak_ptr<LentMemory> lent_;
};

/// That of this process.
HugePages& huge_pages();

}  // namespace gradplane::daemon
