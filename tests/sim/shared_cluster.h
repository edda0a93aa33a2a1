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

/// Several jobs on the same daemons, with the production engines in virtual time. Each job is a
/// star: all have the same root, and each has a rank on every other host.
namespace gradplane::sim {

/// A job that computes and communicates in turns.
struct SharedJob {
  Duration start;
  Duration compute;
  double jitter = 0;  // standard deviation of the compute time, relative to it
  std::uint32_t iterations = 10;
  std::uint32_t buckets = 4;   // in an iteration
  Duration bucket_gap;         // time between two buckets of a rank; 0: all are submitted at once
  double skew = 0;             // standard deviation of each rank's gaps, relative to them
  std::uint32_t elements = 0;  // of fp32 in a bucket
  double weight = 1;
  bool shares = false;  // the job has no grants, whatever SharedScenario::grants says
  CongestionSettings congestion = {};
};

struct SharedScenario {
  std::uint64_t seed = 1;
  LinkModel link;
  std::uint16_t workers = 2;
  std::size_t round_bytes = 1 << 20;
  bool grants = false;
  bool buffer_known = true;
  bool paced = true;  // nodes know the rate of their link
  bool forward_order = false;
  Duration nap;  // how long a poll loop sleeps when it has found no work
  GrantSettings grant_settings;
  std::vector<SharedJob> jobs;
  std::vector<api::Sounding> soundings;  // of links that no star uses
  /// Called every `look_every` with each host's measurements, by host.
  std::function<void(Instant, const std::vector<const awareness::IncomingLinks*>&)> look;
  Duration look_every = Duration::ms(100);
  Duration limit = Duration::seconds(600);
};

struct SharedOutcome {
  std::string failure;  // empty: every sum was right, and all jobs ended
  /// From when the first rank of a job begins to communicate until its last rank has all sums.
  struct Iteration {
    Instant start;
    Instant end;
  };
  std::vector<std::vector<Iteration>> iterations;
  /// By job, iteration and bucket: when the last rank had the sum.
  std::vector<std::vector<std::vector<Instant>>> bucket_ends;
  std::uint64_t dropped = 0;  // datagrams
  /// The measurements of each host's engine at the end.
  std::vector<awareness::IncomingLinks> links;
  hop::Counters counters;  // of all jobs on all hosts
  Instant end;
};

SharedOutcome run(const SharedScenario& scenario);

}  // namespace gradplane::sim
