// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The poll loop makes no allocation, takes no lock and calls no kernel: two engines exchange a
// million packets, with and without tags, in short and in long blocks, while such calls are
// counted.
#include <cstdio>

#include "tests/perf/exchange.h"
#include "tests/perf/forbidden_calls.h"

namespace {

using gradplane::testing::Exchange;

constexpr std::uint64_t kPackets = 300'000;

bool runs_without_calls(const Exchange::Settings& settings) {
  Exchange exchange(settings);
  exchange.run_packets(10'000);

  gradplane::testing::count_forbidden_calls();
  const std::uint64_t packets = exchange.run_packets(kPackets);
  const bool none = gradplane::testing::no_forbidden_calls();

  std::printf("%llu packets %s with blocks of %zu bytes, every sum %s\n",
              static_cast<unsigned long long>(packets),
              settings.authenticate ? "with tags" : "without tags", settings.block_bytes,
              exchange.correct() ? "right" : "WRONG");
  return none && packets >= kPackets && exchange.correct();
}

}  // namespace

int main() {
  bool good = true;
  for (const bool authenticate : {false, true}) {
    for (const std::size_t block_bytes : {gradplane::kDefaultBlockBytes, gradplane::kMaxBlockBytes})
      good = runs_without_calls({.block_bytes = block_bytes, .authenticate = authenticate}) && good;
  }
  return good ? 0 : 1;
}
