// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The poll loop does not allocate: two engines exchange a million packets while every allocation of
// this process is counted.
#include <cstdio>

#include "tests/perf/allocations.h"
#include "tests/perf/exchange.h"

namespace {

constexpr std::uint64_t kPackets = 1'000'000;

}  // namespace

int main() {
  gradplane::testing::Exchange exchange({});
  exchange.run_packets(10'000);

  gradplane::testing::count_allocations();
  const std::uint64_t packets = exchange.run_packets(kPackets);
  std::uint64_t allocations = 0;
  const bool counted = gradplane::testing::end_allocation_count(allocations);

  std::printf("%llu packets, %llu allocations, every sum %s\n",
              static_cast<unsigned long long>(packets),
              static_cast<unsigned long long>(allocations), exchange.correct() ? "right" : "WRONG");
  return counted && packets >= kPackets && allocations == 0 && exchange.correct() ? 0 : 1;
}
