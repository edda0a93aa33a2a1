// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Engines that share a job. Each engine and each rank has a thread of its own.
#include <atomic>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/shared_pair.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

Instant clock_now() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Instant::from_ns(ts.tv_sec * 1'000'000'000 + ts.tv_nsec);
}

}  // namespace

TEST_CASE("cores that share a job touch nothing of each other's") {
  constexpr std::uint32_t kRounds = 60;
  constexpr std::uint32_t kElements = 9'001;
  SharedJob job(2, 2, star_of(2), {.link_rate = 10'000'000'000});
  std::atomic<bool> stopping{false};
  std::vector<std::thread> loops;
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t c = 0; c < 2; ++c) {
      loops.emplace_back([&job, &stopping, n, c] {
        while (!stopping.load()) {
          if (!job.engine(n, c).engine().poll_once(clock_now())) std::this_thread::yield();
        }
      });
    }
  }
  std::array<std::uint32_t, 2> right{};  // correct rounds of each rank
  std::vector<std::thread> ranks;
  for (std::size_t n = 0; n < 2; ++n) {
    ranks.emplace_back([&job, &right, n] {
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        const auto value = static_cast<float>(round + 1);
        if (!job.submit(n, round, kElements, value)) return;
        auto completion = job.take(n);
        for (; !completion; completion = job.take(n)) std::this_thread::yield();
        const bool is_right =
            completion->round == round && job.all_are(n, round, kElements, 2 * value);
        right[n] += is_right ? 1 : 0;
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  stopping.store(true);
  for (std::thread& loop : loops) loop.join();
  CHECK(right[0] == kRounds);
  CHECK(right[1] == kRounds);
}
