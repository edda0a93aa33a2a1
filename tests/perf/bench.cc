// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How fast one core is without a network: the loop over the loopback port, and the sums alone.
// Prints numbers; judges nothing.
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/reduce/kernels.h"
#include "tests/perf/exchange.h"

using namespace gradplane;

namespace {

/// Of the processor, so that what else runs on the machine matters less.
double seconds_of(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void bench_engine(std::size_t block_bytes) {
  testing::Exchange exchange(block_bytes);
  exchange.run_packets(50'000);
  std::uint64_t packets = 0;
  const double seconds = seconds_of([&] { packets = exchange.run_packets(1'000'000); });
  const double rate = static_cast<double>(packets) / seconds;
  std::printf("engine, blocks of %4zu bytes: %5.2f Mpps received by two engines on one core\n",
              block_bytes, rate * 1e-6);
}

void bench_accumulate(ElementType type, std::size_t working_set_bytes) {
  const std::size_t block = kDefaultBlockBytes;
  const std::size_t blocks = working_set_bytes / block;
  const std::size_t elements = block / element_bytes(type);
  std::vector<std::byte> sums(blocks * elements * accumulator_bytes(type));
  const std::vector<std::byte> wire(block);
  const auto& kernels = reduce::kernels_for(type);
  constexpr std::size_t kTotalBytes = std::size_t{2} << 30;
  const std::size_t repeats = kTotalBytes / working_set_bytes;
  const double seconds = seconds_of([&] {
    for (std::size_t r = 0; r < repeats; ++r) {
      for (std::size_t b = 0; b < blocks; ++b) {
        kernels.accumulate(sums.data() + b * elements * accumulator_bytes(type), wire.data(),
                           elements);
      }
    }
  });
  std::printf("accumulate %s, %5zu KiB of sums: %6.2f GB/s of wire bytes\n",
              std::string(element_type_name(type)).c_str(), working_set_bytes >> 10,
              static_cast<double>(repeats * blocks * block) / seconds * 1e-9);
}

}  // namespace

int main() {
  for (const std::size_t block_bytes : {kMinBlockBytes, kDefaultBlockBytes, kMaxBlockBytes}) {
    bench_engine(block_bytes);
  }
  for (const ElementType type : kElementTypes) {
    bench_accumulate(type, std::size_t{64} << 10);
    bench_accumulate(type, std::size_t{64} << 20);
  }
}
