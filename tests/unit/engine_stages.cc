// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// An engine counts what its turns do: bursts, sleeps, and the time of each stage of the loop.
#include <algorithm>
#include <memory>

#include "dataplane/engine/stage_clock.h"
#include "tests/support/catch.h"
#include "tests/support/engine_host.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kBlocks = 20;
constexpr std::uint32_t kElements = kBlocks * kDefaultBlockBytes / sizeof(float);
constexpr std::uint32_t kRounds = 300;
constexpr int kTurnsPerRound = 1000;

constexpr std::int64_t kClockStepNs = 10;

/// Goes on by the same time with each reading.
Instant next_clock_step() {
  static std::int64_t ns = 0;
  return Instant::from_ns(ns += kClockStepNs);
}

class TwoHosts {
 public:
  TwoHosts() {
    for (std::size_t n = 0; n < jobs_.size(); ++n)
      jobs_[n] = &cluster.host(n).add({.id = 1, .plan = star_of(2), .round_bytes = 4 * kElements});
  }
  void run_round(std::uint32_t round) {
    std::size_t complete = 0;
    for (EngineHost::Job* job : jobs_) REQUIRE(job->trainers[0].submit(round, kElements, 1));
    for (int turn = 0; turn < kTurnsPerRound && complete < jobs_.size(); ++turn) {
      cluster.turn();
      for (EngineHost::Job* job : jobs_) {
        ipc::Completion completion;
        if (job->trainers[0].completions.pop(completion)) ++complete;
      }
    }
    REQUIRE(complete == jobs_.size());
  }

  EngineCluster cluster{2, next_clock_step};

 private:
  std::array<EngineHost::Job*, 2> jobs_{};
};

}  // namespace

TEST_CASE("a snapshot has the stages, bursts and sleeps of an engine") {
  TwoHosts hosts;
  EngineHost& host = hosts.cluster.host(0);
  hosts.cluster.turns(10 * static_cast<int>(engine::kMeasuredTurns));
  const auto idle = host.snapshot(hosts.cluster.now());
  const std::uint64_t idle_ns = idle->stage_ns[0];
  for (std::uint32_t round = 0; round < kRounds; ++round) hosts.run_round(round);
  const std::uint64_t sleeps = host.snapshot(hosts.cluster.now())->sleeps;
  if (host.engine().prepare_sleep()) host.engine().end_sleep();
  const auto busy = host.snapshot(hosts.cluster.now());

  CHECK(busy->sleeps == sleeps + 1);
  // The clock is read once at the end of each stage, so all stages of a measured turn take the same
  // time.
  CHECK(busy->stage_ns[0] > idle_ns);
  for (const std::uint64_t stage_ns : busy->stage_ns) CHECK(stage_ns == busy->stage_ns[0]);
  CHECK(busy->stage_ns[0] % (kClockStepNs * engine::kMeasuredTurns) == 0);

  const port::PortCounters& port = host.queue().counters();
  CHECK(port.rx_datagrams >= std::uint64_t{kRounds} * kBlocks);
  CHECK(busy->rx_bursts > kRounds);
  CHECK(busy->rx_bursts <= port.rx_datagrams);
  CHECK(busy->tx_bursts > kRounds);
  CHECK(busy->tx_bursts <= port.tx_datagrams);
}

TEST_CASE("turns without work take no time of any stage") {
  EngineCluster cluster(1, next_clock_step);
  cluster.turns(10 * static_cast<int>(engine::kMeasuredTurns));
  const auto idle = cluster.host(0).snapshot(cluster.now());
  for (const std::uint64_t stage_ns : idle->stage_ns) CHECK(stage_ns == 0);
  CHECK(idle->rx_bursts + idle->tx_bursts == 0);
}
