// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/perf/allocations.h"

#include <atomic>
#include <cstdlib>

namespace {

std::atomic<bool> armed{false};
std::atomic<std::uint64_t> count{0};

void note() {
  if (armed.load(std::memory_order_relaxed)) count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// operator new calls malloc, so it is enough to replace glibc's functions.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t bytes) {
  note();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note();
  return __libc_calloc(count, bytes);
}
void* realloc(void* at, std::size_t bytes) {
  note();
  return __libc_realloc(at, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
}

namespace gradplane::testing {

void count_allocations() {
  count = 0;
  armed = true;
}

bool end_allocation_count(std::uint64_t& allocations) {
  allocations = count;
  std::free(std::malloc(1));
  armed = false;
  return count == allocations + 1;
}

}  // namespace gradplane::testing
