// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The grant scheduler does not allocate after its construction: 1024 sources of 16 jobs are added,
// send, lose blocks, fall silent, are withdrawn and removed, while every allocation of this process
// is counted. Prints the time per data packet and grant.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "dataplane/grants/grant_scheduler.h"
#include "tests/perf/forbidden_calls.h"
#include "tests/support/idle_job.h"

namespace {

using gradplane::Duration;
using gradplane::Instant;
using gradplane::grants::GrantScheduler;
using gradplane::grants::JobIndex;
using gradplane::grants::SourceIndex;

constexpr std::size_t kSources = 1024;
constexpr std::uint16_t kJobs = 16;
constexpr std::uint32_t kPackets = 1'000'000;
constexpr std::size_t kBlock = 1522;
/// So large that the unscheduled blocks of all sources leave most of the credit window to grants.
constexpr std::size_t kBuffer = 64 << 20;

struct Peers {
  Peers()
      : grants({.link_bits_per_second = 100'000'000'000,
                .buffer_bytes = kBuffer,
                .block_wire_bytes = kBlock,
                .max_sources = kSources + 1,
                .max_jobs = kJobs + 1}) {
    for (std::size_t i = 0; i < kSources; ++i) grants.add_source(job_of(i));
    gradplane::testing::add_idle_job(grants, JobIndex{kJobs});
  }

  static JobIndex job_of(std::size_t source) { return JobIndex::from_index(source % kJobs); }

  /// Sources send with credit, and some without. Some blocks are lost, and some sources removed.
  void send(std::uint32_t packets) {
    std::uint32_t sent = 0;
    for (std::uint32_t n = 0; sent < packets; ++n) {
      now = now + Duration::ns(125);
      while (const auto grant = grants.next_grant(now)) told[granted++ % told.size()] = *grant;
      if (grants.next_time(now) < now) ++mistakes;
      const auto any = SourceIndex::from_index(n % kSources);
      if (n % 10'007 == 0) replace(any);
      if (n % 5003 == 0) grants.withdraw(any, now);
      if (n % 997 == 0) grants.on_ring_pressure(now);
      grants.set_job_progress(job_of(any.index()), static_cast<double>(n % 1000) / 1000);
      const SourceIndex source = n % 7 == 0 ? any : told[n % told.size()].source;
      const auto view = grants.view(source);
      const std::uint32_t lost = n % 101 == 0 ? 1 : 0;
      if (view.sent_blocks == view.total_blocks && n % 7 != 0) continue;
      ++sent;
      grants.on_data(source, view.sent_blocks + 1 + lost, 1000, kBlock, n % 50 == 0, now);
    }
  }
  void replace(SourceIndex source) {
    grants.remove_source(source);
    if (grants.add_source(job_of(source.index())) != source) ++mistakes;
  }

  GrantScheduler grants;
  Instant now = Instant::from_ns(1'000'000'000);
  std::array<GrantScheduler::Grant, 16> told{};  // the newest grants
  std::uint64_t granted = 0;
  std::uint64_t mistakes = 0;
};

}  // namespace

int main() {
  Peers peers;
  peers.grants.set_policy(GrantScheduler::Policy::kMltcp);
  peers.send(10'000);

  gradplane::testing::count_forbidden_calls();
  const auto began = std::chrono::steady_clock::now();
  peers.send(kPackets);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  const bool none = gradplane::testing::no_forbidden_calls();

  std::printf("%u packets, %llu grants, %.0f ns a packet\n", kPackets,
              static_cast<unsigned long long>(peers.granted), took.count() / kPackets);
  return none && peers.granted > kPackets / 50 && peers.mistakes == 0 ? 0 : 1;
}
