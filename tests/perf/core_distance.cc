// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The distance between two cores: the time for a cache line to go from one to the other and back,
// in ns, as the median of several tries. It is about 80 ns within a shared cache, and 200 to 400 ns
// otherwise. The host of a virtual machine may move its processors, which makes all communication
// between two cores faster or slower.
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

constexpr std::uint32_t kTrips = 20'000;
constexpr std::size_t kTries = 7;

using Clock = std::chrono::steady_clock;

struct alignas(64) Ball {
  std::atomic<std::uint32_t> trips{0};
};

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0) return;
  std::fprintf(stderr, "core_distance: there is no core %d\n", core);
  std::exit(1);
}

/// It is the other thread's turn when the number is odd.
void play(Ball& ball, std::uint32_t first) {
  for (std::uint32_t n = first; n < 2 * kTrips; n += 2) {
    while (ball.trips.load(std::memory_order_acquire) != n) {
    }
    ball.trips.store(n + 1, std::memory_order_release);
  }
}

double round_trip_ns(int here, int there) {
  Ball ball;
  std::thread other([&] {
    pin(there);
    play(ball, 1);
  });
  pin(here);
  const Clock::time_point begin = Clock::now();
  play(ball, 0);
  other.join();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kTrips;
}

}  // namespace

int main(int argc, char** argv) {
  const std::array cores = {argc == 3 ? std::atoi(argv[1]) : 0, argc == 3 ? std::atoi(argv[2]) : 1};
  std::array<double, kTries> tries{};
  for (double& one : tries) one = round_trip_ns(cores[0], cores[1]);
  std::sort(tries.begin(), tries.end());
  std::printf("%.0f\n", tries[kTries / 2]);
  return 0;
}
