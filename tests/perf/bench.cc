// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How fast one core is without a network: the poll loop over the loopback port, and the kernels
// alone. Prints numbers and checks nothing. `bench engine` prints only the rows of the poll loop,
// for a profiler, `bench kernels` those of the kernels, `bench tags` those of tags, and `bench
// cores` those of one and two poll cores.
#include <cstdio>
#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/aggregate/bucket.h"
#include "dataplane/engine/local_plan.h"
#include "dataplane/job/job.h"
#include "dataplane/job/plan.h"
#include "dataplane/wire/gmac.h"
#include "tests/perf/core_rates.h"
#include "tests/perf/exchange.h"
#include "tests/perf/kernel_rates.h"
#include "tests/support/hosts.h"

using namespace gradplane;

namespace {

/// CPU time of this process, on which other processes have little influence.
double seconds_of(const std::function<void()>& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void bench_engine(const testing::Exchange::Settings& settings) {
  testing::Exchange exchange(settings);
  exchange.run_packets(50'000);
  std::uint64_t packets = 0;
  const double seconds = seconds_of([&] { packets = exchange.run_packets(1'000'000); });
  const double rate = static_cast<double>(packets) / seconds;
  std::printf("engine, rounds of %4zu KiB, blocks of %4zu bytes, %s: %5.2f Mpps\n",
              settings.round_bytes >> 10, settings.block_bytes,
              settings.authenticate ? "with tags" : " no tags ", rate * 1e-6);
}

/// The cost of a round besides its bytes: rounds of one small block, which both engines open, send,
/// sum, ack and end.
void bench_smallest_rounds(bool authenticate) {
  testing::Exchange exchange(
      {.block_bytes = kMinBlockBytes, .round_bytes = kMinBlockBytes, .authenticate = authenticate});
  exchange.run_packets(50'000);
  const auto rounds = [&] { return exchange.job(0).runtime->job().counters().rounds_completed; };
  const std::uint64_t before = rounds();
  const double seconds = seconds_of([&] { exchange.run_packets(1'000'000); });
  std::printf("engine, rounds of one block of %zu bytes, %s: %5.2f us a round at both ends\n",
              std::size_t{kMinBlockBytes}, authenticate ? "with tags" : " no tags ",
              seconds / static_cast<double>(rounds() - before) * 1e6);
}

/// The time of a tag. Packets lie one after the other in memory that fits the second cache, as
/// those of a burst do.
void bench_tags() {
  constexpr std::size_t kMemory = 512 << 10;
  constexpr int kTags = 400'000;
  const wire::Gmac key({});
  const std::vector<std::byte> memory(kMemory);
  wire::Gmac::Nonce nonce{};
  for (const std::size_t bytes : {std::size_t{64}, kDefaultBlockBytes, kMaxBlockBytes}) {
    std::size_t at = 0;
    const double seconds = seconds_of([&] {
      for (int i = 0; i < kTags; ++i) {
        nonce[0] = key.tag(nonce, std::span(memory).subspan(at, bytes))[0];
        at = at + 2 * bytes <= kMemory ? at + bytes : 0;
      }
    });
    std::printf("tag of %4zu bytes: %6.1f ns\n", bytes, seconds / kTags * 1e9);
  }
}

/// A round of 64 KiB with loss bounds, in which all blocks of all sources arrive: the cost of loss
/// bounds for each block.
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

/// The cost at the root of a star when a round opens: of an all_reduce, and of an operation with a
/// shard for each host.
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

/// What the root of a star pays in each turn in which nothing waits for any of its children.
void bench_looks(std::uint16_t hosts) {
  constexpr int kLooks = 200'000;
  job::JobConfig config;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = kMinBlockBytes;
  config.local_ranks = {{.arena = nullptr, .rank = 0}};
  engine::fill_local_plan(config, testing::star_of(hosts), 0, {});
  job::Job job(config);
  std::vector<std::byte> out(2048);
  std::size_t found = 0;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kLooks; ++i) found += job.poll_data(out, Instant()) ? 1 : 0;
  });
  std::printf("a look for blocks to send at the root of %4u hosts: %8.1f ns (%zu found)\n",
              unsigned{hosts}, seconds / kLooks * 1e9, found);
}

/// The number of packets that two engines on one core receive. Small rounds stay in the core's own
/// caches.
void bench_engines() {
  for (const std::size_t round_bytes : {std::size_t{32} << 10, std::size_t{512} << 10}) {
    for (const bool authenticate : {false, true}) {
      for (const std::size_t block_bytes : {kMinBlockBytes, kDefaultBlockBytes, kMaxBlockBytes}) {
        bench_engine({block_bytes, round_bytes, authenticate});
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view only = argc > 1 ? argv[1] : "";
  if (only == "cores") return testing::print_core_rates() ? 0 : 1;
  if (only == "tags") {
    bench_tags();
    return 0;
  }
  if (only == "kernels") return testing::print_kernel_rates() ? 0 : 1;
  bench_engines();
  for (const bool authenticate : {false, true}) bench_smallest_rounds(authenticate);
  if (only == "engine") return 0;
  bench_tags();
  for (const std::uint16_t hosts : std::initializer_list<std::uint16_t>{16, 64, 256, 1000}) {
    bench_open(hosts);
    bench_looks(hosts);
  }
  for (const std::uint16_t sources : std::initializer_list<std::uint16_t>{16, 128, 1000}) {
    for (const std::uint32_t tensors : {4U, 16384U}) bench_gather(sources, tensors);
  }
  return testing::print_kernel_rates() ? 0 : 1;
}
