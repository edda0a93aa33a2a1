// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/awareness/incoming_links.h"
#include "dataplane/hop/counters.h"
#include "dataplane/model/grant_settings.h"
#include "tests/sim/network.h"

/// Several jobs on the same daemons: a star each, one root, a rank of every job on every other
/// host. The production engines, in virtual time.
namespace gradplane::sim {

/// A job that computes and communicates in turns.
struct SharedJob {
  Duration start;
  Duration compute;
  double jitter = 0;  // standard deviation of the compute time, as a part of it
  std::uint32_t iterations = 10;
  std::uint32_t buckets = 4;   // of an iteration
  Duration bucket_gap;         // between two buckets of a rank; 0: all at once
  double skew = 0;             // standard deviation of each rank's gaps, as a part of them
  std::uint32_t elements = 0;  // fp32, of a bucket
  double weight = 1;
  CongestionSettings congestion = {};
};

struct SharedScenario {
  std::uint64_t seed = 1;
  LinkModel link;
  std::uint16_t workers = 2;
  std::size_t round_bytes = 1 << 20;
  bool grants = false;
  bool buffer_known = true;
  bool paced = true;  // nodes know their link's rate
  bool forward_order = false;
  Duration nap;  // a poll loop that has found nothing to do looks again so much later
  GrantSettings grant_settings;
  std::vector<SharedJob> jobs;
  std::vector<api::Sounding> soundings;  // of links that the stars do not use
  /// A look at what the engine of each host has measured, in this order, every `look_every`.
  std::function<void(Instant, const std::vector<const awareness::IncomingLinks*>&)> look;
  Duration look_every = Duration::ms(100);
  Duration limit = Duration::seconds(600);
};

struct SharedOutcome {
  std::string failure;  // empty: every sum was right, and all came to their end
  /// Of each job: when its first rank began to communicate and its last had all sums.
  struct Iteration {
    Instant start;
    Instant end;
  };
  std::vector<std::vector<Iteration>> iterations;
  /// Of each job, of every iteration: when the last rank had the sum of each bucket.
  std::vector<std::vector<std::vector<Instant>>> bucket_ends;
  std::uint64_t dropped = 0;  // datagrams
  /// Of each host at the end: what its engine has measured.
  std::vector<awareness::IncomingLinks> links;
  hop::Counters counters;  // of all jobs at all hosts
  Instant end;
};

SharedOutcome run(const SharedScenario& scenario);

}  // namespace gradplane::sim
