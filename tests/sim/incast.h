// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dataplane/base/time.h"
#include "dataplane/grants/grant_scheduler.h"
#include "dataplane/model/congestion_settings.h"

/// Many senders, one switch, one receiver: what the production grant scheduler and the
/// production controllers make of them, packet by packet, in virtual time. Blocks carry nothing;
/// everything follows from the seed.
namespace gradplane::sim::incast {

struct Sender {
  std::uint16_t job = 0;
  std::uint64_t uplink_bits_per_second = 0;  // 0: as the downlink
  Duration extra_delay;                      // each way
  Duration late;                             // after its job's start
  Instant dead_from = Instant::never();      // it takes grants and sends nothing
  Instant dead_until = Instant::never();
  bool ignores_grants = false;  // sends as fast as its uplink goes
};

/// Every sender of a job brings `blocks` per iteration; when all have come, the job computes, and
/// then the next iteration starts.
struct Job {
  std::uint32_t blocks = 100;
  std::uint32_t iterations = 1;  // 0: its senders stay silent
  Instant start;
  Duration compute;
  double jitter = 0;  // standard deviation of the compute time, as a part of it
  double weight = 1;
  double stated_total = 1;  // what the scheduler is told an iteration brings, over what it brings
};

struct Scenario {
  std::uint64_t seed = 1;
  std::uint64_t link_bits_per_second = 1'000'000'000;
  std::size_t block_wire_bytes = 1522;
  std::size_t last_wire_bytes = 0;      // of a sender's last block; 0: like all
  Duration delay = Duration::us(50);    // one way, sender to receiver and back
  std::size_t buffer_bytes = 64 << 10;  // before the downlink, drop-tail
  std::size_t mark_bytes = 0;           // congestion experienced is marked above; 0: never
  double loss = 0;                      // of data, after the queue
  double grant_loss = 0;
  bool grants = true;
  /// What every sender's window follows; none: it has no window, and sends as grants allow. With
  /// both, send = min(grant, window).
  std::optional<CongestionSettings> congestion;
  bool tell_link = true;  // the scheduler knows the link's rate
  /// The receiver's own link, which the scheduler knows, where the one before it is narrower; 0: it
  /// is not.
  std::uint64_t own_bits_per_second = 0;
  /// Every sender has measured its path without queues, as if its job had run alone before. A job
  /// that begins beside another takes the other's queue for a part of its path.
  bool paths_known = false;
  bool tell_buffer = true;  // and the buffer; else it assumes one, as the daemon does
  grants::GrantScheduler::Policy policy = grants::GrantScheduler::Policy::kFair;
  std::vector<Sender> senders;
  std::vector<Job> jobs;
  std::uint32_t first_count = 0;  // of every sender's packets: to see the counters wrap
  Duration victim_interval;       // a small packet of somebody else over the downlink; 0: none
  Duration limit = Duration::seconds(600);
  /// Called after every event, for what a test wants to see or do.
  std::function<void(grants::GrantScheduler&, Instant)> on_event;
};

struct Iteration {
  Instant start;
  Instant end;  // the last block has come
};

struct Outcome {
  bool finished = false;  // every job ran all its iterations
  Instant ended;
  std::vector<std::vector<Iteration>> iterations;  // of each job
  std::vector<Instant> sender_ends;                // its last block of the last iteration
  std::vector<Instant> block_ends;  // job 0, last iteration: when a block had come from all senders
  std::vector<std::uint64_t> came;  // blocks of each sender, each once
  std::vector<Duration> victim_delays;
  std::uint64_t packets = 0;
  std::uint64_t drops = 0;        // by the full queue
  std::uint64_t losses = 0;       // by the link
  std::uint64_t sent_again = 0;   // blocks
  std::uint64_t grants = 0;       // messages
  std::size_t deepest_bytes = 0;  // of the queue
  std::uint32_t max_outstanding = 0;
  double max_window_used = 0;  // after a grant, as GrantScheduler::Stats tells it
  grants::GrantScheduler::Stats stats;
  std::uint64_t trace = 0;  // of everything that happened, in order
};

Outcome run(const Scenario& scenario);

/// When the last block can have come at the earliest: the wire bytes of all senders of job 0 over
/// the downlink, and the delay.
Duration bound(const Scenario& scenario);

}  // namespace gradplane::sim::incast
