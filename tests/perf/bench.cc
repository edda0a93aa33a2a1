// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How fast one core is without a network: the loop over the loopback port, and the sums alone.
// Prints numbers; judges nothing.
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/aggregate/bucket.h"
#include "dataplane/engine/local_plan.h"
#include "dataplane/job/plan.h"
#include "dataplane/reduce/kernels.h"
#include "tests/perf/exchange.h"
#include "tests/support/hosts.h"

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

/// A round of 64 KiB under bounds, in which every source sends all: what the poll loop does for the
/// bounds alone, for each block.
void bench_gather(std::uint16_t sources, std::uint32_t tensors) {
  constexpr std::uint32_t kElements = (64 << 10) / sizeof(float);
  aggregate::BucketConfig config;
  config.geometry = Geometry::of(ElementType::kFloat32, kElements, kDefaultBlockBytes, 1);
  config.limits.strict_rounds = 0;
  for (std::uint32_t t = 0; t < tensors; ++t) {
    config.tensors.push_back({t * (kElements / tensors), kElements / tensors, 0.1F});
  }
  std::vector<std::uint16_t> nodes;
  for (std::uint16_t s = 0; s < sources; ++s) nodes.push_back(s);
  config.gathered = {{.tree = 0, .sources = testing::hosts_as_sources(nodes)}};
  aggregate::Bucket bucket(config);
  aggregate::Gather& gather = *bucket.gather(0, 0);
  const std::uint32_t blocks = config.geometry.blocks;
  const auto rounds = static_cast<int>(1 + 20'000 / sources);
  const double seconds = seconds_of([&] {
    for (int round = 0; round < rounds; ++round) {
      gather.open({0, blocks});
      for (std::uint16_t s = 0; s < sources; ++s) {
        for (std::uint32_t b = 0; b < blocks; ++b) {
          gather.on_block(s, {.block = b, .last = false, .bounded = true, .rtt = {}}, Instant());
        }
      }
      gather.close(CloseReason::kFull, Instant());
      bucket.count_close(CloseReason::kFull, gather);
    }
  });
  std::printf("bounds, %4u sources, %5u tensors: %9.1f us a round, %6.1f ns a block\n",
              unsigned{sources}, tensors, seconds / rounds * 1e6,
              seconds / rounds / sources / blocks * 1e9);
}

/// What the root of a star does when a round opens: of an all_reduce, and of an operation with a
/// shard for each of the hosts.
void bench_open(std::uint16_t hosts) {
  job::JobConfig config;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = hosts * kMinBlockBytes;
  config.local_ranks = {{.arena = nullptr, .rank = 0}};
  engine::fill_local_plan(config, testing::star_of(hosts), 0, {});
  job::Plan plan(config, config);
  constexpr int kRounds = 200;
  for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather}) {
    const Statement said{.elements = hosts * std::uint32_t{kMinBlockBytes} / 4,
                         .operation = operation};
    const double seconds = seconds_of([&] {
      for (std::uint32_t r = 0; r < kRounds; ++r) {
        aggregate::Round round;
        round.id = r;
        round.geometry = Geometry::of(said, kMinBlockBytes, hosts);
        plan.open(round);
      }
    });
    std::printf("opening an %s of %4u blocks at the root of %4u hosts: %8.1f us\n",
                std::string(operation_name(operation)).c_str(), unsigned{hosts}, unsigned{hosts},
                seconds / kRounds * 1e6);
  }
}

}  // namespace

int main() {
  for (const std::uint16_t hosts : std::initializer_list<std::uint16_t>{16, 64, 256, 1000}) {
    bench_open(hosts);
  }
  for (const std::uint16_t sources : std::initializer_list<std::uint16_t>{16, 128, 1000}) {
    for (const std::uint32_t tensors : {4U, 16384U}) bench_gather(sources, tensors);
  }
  for (const std::size_t block_bytes : {kMinBlockBytes, kDefaultBlockBytes, kMaxBlockBytes}) {
    bench_engine(block_bytes);
  }
  for (const ElementType type : kElementTypes) {
    bench_accumulate(type, std::size_t{64} << 10);
    bench_accumulate(type, std::size_t{64} << 20);
  }
}
