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

/// Many senders, one switch, and one receiver: runs the production grant scheduler and the
/// production controllers packet by packet, in virtual time. Blocks have no payload. Runs with the
/// same seed are the same.
namespace gradplane::sim::incast {

struct Sender {
  std::uint16_t job = 0;
  std::uint64_t uplink_bits_per_second = 0;  // 0: the downlink's rate
  Duration extra_delay;                      // one-way delay on top of the scenario's
  Duration late;                             // delay from its job's start
  Instant dead_from = Instant::never();      // it accepts grants and sends nothing
  Instant dead_until = Instant::never();
  bool ignores_grants = false;  // it sends at its uplink's rate
};

/// Every sender of a job sends `blocks` blocks in an iteration. When all have arrived, the job
/// computes, and then the next iteration starts.
struct Job {
  std::uint32_t blocks = 100;
  std::uint32_t iterations = 1;  // 0: its senders stay silent
  Instant start;
  Duration compute;
  double jitter = 0;  // standard deviation of the compute time, relative to it
  double weight = 1;
  // The total that the scheduler is told for an iteration, relative to the real one.
  double stated_total = 1;
};

struct Scenario {
  std::uint64_t seed = 1;
  std::uint64_t link_bits_per_second = 1'000'000'000;
  std::size_t block_wire_bytes = 1522;
  std::size_t last_wire_bytes = 0;      // of a sender's last block; 0: as the others
  Duration delay = Duration::us(50);    // one way, the same in both directions
  std::size_t buffer_bytes = 64 << 10;  // before the downlink, drop-tail
  std::size_t mark_bytes = 0;  // a longer queue marks packets with congestion experienced; 0: never
  double loss = 0;             // of data packets, after the queue
  double grant_loss = 0;
  bool grants = true;
  /// The controller of every sender's window. Without one, only grants limit senders. With both, a
  /// sender may send the lesser of grant and window.
  std::optional<CongestionSettings> congestion;
  bool tell_link = true;  // the scheduler knows the link's rate
  /// The rate of the receiver's own link, if the downlink before it is slower. The scheduler knows
  /// only this rate. 0: both are the same.
  std::uint64_t own_bits_per_second = 0;
  /// Every sender has measured its path without queues, as if its job had run alone before.
  /// Otherwise a job that begins while another one sends takes that queue for a part of its path.
  bool paths_known = false;
  // The scheduler knows the buffer's size; otherwise it assumes one, as the daemon does.
  bool tell_buffer = true;
  grants::GrantScheduler::Policy policy = grants::GrantScheduler::Policy::kFair;
  std::vector<Sender> senders;
  std::vector<Job> jobs;
  // Initial value of every sender's packet count, to test wrap-around.
  std::uint32_t first_count = 0;
  // Interval of small packets of another sender over the downlink; 0: none.
  Duration victim_interval;
  Duration limit = Duration::seconds(600);
  /// Called after every event, so that a test can look or intervene.
  std::function<void(grants::GrantScheduler&, Instant)> on_event;
};

struct Iteration {
  Instant start;
  Instant end;  // when the last block has arrived
};

struct Outcome {
  bool finished = false;  // every job ran all its iterations
  Instant ended;
  std::vector<std::vector<Iteration>> iterations;  // of each job
  // Of each sender: when its last block of the last iteration has arrived.
  std::vector<Instant> sender_ends;
  // Of job 0 in its last iteration: when each block has arrived from all senders.
  std::vector<Instant> block_ends;
  std::vector<std::uint64_t> came;  // different blocks that have arrived, by sender
  std::vector<Duration> victim_delays;
  std::uint64_t packets = 0;
  std::uint64_t drops = 0;        // packets that the full queue has dropped
  std::uint64_t losses = 0;       // packets that the link has lost
  std::uint64_t sent_again = 0;   // retransmitted blocks
  std::uint64_t grants = 0;       // grant messages
  std::size_t deepest_bytes = 0;  // the longest queue
  std::uint32_t max_outstanding = 0;
  double max_window_used = 0;  // after a grant, from GrantScheduler::Stats
  grants::GrantScheduler::Stats stats;
  std::uint64_t trace = 0;  // a hash of all events in their order
};

Outcome run(const Scenario& scenario);

/// The earliest time at which the last block can arrive: the time of job 0's wire bytes on the
/// downlink, and the delay.
Duration bound(const Scenario& scenario);

}  // namespace gradplane::sim::incast
