// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The poll loop allocates nothing: two engines exchange a million packets while every allocation of
// this process, by whatever way, is counted.
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "tests/perf/exchange.h"

namespace {

std::atomic<bool> armed{false};
std::atomic<std::uint64_t> allocations{0};

void note() {
  if (armed.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

constexpr std::uint64_t kPackets = 1'000'000;

}  // namespace

// operator new ends in malloc, so glibc's own functions are all that has to be replaced.
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

int main() {
  gradplane::testing::Exchange exchange(gradplane::kDefaultBlockBytes);
  exchange.run_packets(10'000);

  armed = true;
  std::free(std::malloc(1));  // the counter works
  const std::uint64_t own = allocations.exchange(0);
  const std::uint64_t packets = exchange.run_packets(kPackets);
  armed = false;

  std::printf(
      "%llu packets, %llu allocations, every sum %s\n", static_cast<unsigned long long>(packets),
      static_cast<unsigned long long>(allocations.load()), exchange.correct() ? "right" : "WRONG");
  return own == 1 && packets >= kPackets && allocations == 0 && exchange.correct() ? 0 : 1;
}
