// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/perf/core_rates.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "dataplane/ipc/rounds_in_flight.h"
#include "tests/support/shared_pair.h"

namespace gradplane::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRoundBytes = std::size_t{512} << 10;
constexpr std::uint32_t kElements = kRoundBytes / sizeof(float);
constexpr Duration kTime = Duration::ms(1500);
constexpr int kRuns = 5;

Instant now() {
  return Instant::from_ns(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count());
}

/// The ranks of both nodes. They submit whatever their slots contain. Not thread-safe.
class Ranks {
 public:
  explicit Ranks(SharedJob& job) : job_(job) {}
  void step() {
    for (std::size_t n = 0; n < rounds_.size(); ++n) {
      while (const auto completion = job_.take(n)) {
        is_right_ = is_right_ && rounds_[n].complete(completion->round) &&
                    completion->contributors == 2 && completion->partial_blocks == 0;
      }
      while (!rounds_[n].full()) {
        is_right_ = is_right_ && job_.submit_as_it_is(n, rounds_[n].next(), kElements);
        rounds_[n].submit();
      }
    }
  }
  bool is_right() const { return is_right_; }

 private:
  SharedJob& job_;
  std::array<ipc::RoundsInFlight, 2> rounds_;
  bool is_right_ = true;
};

/// Datagrams that all engines together receive in a second; 0: sums were wrong.
double received_per_second(std::uint16_t cores, bool authenticate) {
  SharedJob job(2, cores, star_of(2), {.round_bytes = kRoundBytes, .authenticate = authenticate});
  Ranks ranks(job);
  const auto received = [&job, cores] {
    std::uint64_t sum = 0;
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t c = 0; c < cores; ++c)
        sum += job.engine(n, c).queue().counters().rx_datagrams;
    }
    return sum;
  };
  const auto poll = [&job](std::size_t core, Instant at) {
    for (std::size_t n = 0; n < 2; ++n) job.engine(n, core).engine().poll_once(at);
  };
  std::atomic<bool> stopping{false};
  const Instant begin = now();
  std::vector<std::thread> loops;
  for (std::size_t c = 1; c < cores; ++c) {
    loops.emplace_back([&poll, &stopping, c] {
      while (!stopping.load(std::memory_order_relaxed)) poll(c, now());
    });
  }
  Instant at = begin;
  for (; at < begin + kTime; at = now()) {
    ranks.step();
    poll(0, at);
  }
  stopping.store(true);
  for (std::thread& loop : loops) loop.join();
  return ranks.is_right() ? static_cast<double>(received()) / (at - begin).to_seconds() : 0;
}

}  // namespace

bool print_core_rates() {
  if (std::thread::hardware_concurrency() < 2) {
    std::fprintf(stderr, "bench cores: this host has one processor; run it where there are two\n");
    return false;
  }
  for (const bool authenticate : {false, true}) {
    for (int run = 0; run < kRuns; ++run) {
      const double one = received_per_second(1, authenticate);
      const double two = received_per_second(2, authenticate);
      if (one == 0 || two == 0) return false;
      std::printf(
          "poll cores, rounds of %zu KiB, blocks of %zu bytes, %s: 1 core %5.2f Mpps, "
          "2 cores %5.2f Mpps, %4.2f times\n",
          kRoundBytes >> 10, kDefaultBlockBytes, authenticate ? "with tags" : " no tags ",
          one * 1e-6, two * 1e-6, two / one);
    }
  }
  return true;
}

}  // namespace gradplane::testing
