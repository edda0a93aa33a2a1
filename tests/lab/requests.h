// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/lab/network.h"

namespace gradplane::lab {

/// What the process around the network counts.
struct SwitchCounters {
  double cpu_seconds = 0;           // of the process, also in the kernel
  std::uint64_t late_1ms = 0;       // deliveries later than 1 ms
  std::int64_t latest_ns = 0;       // the latest delivery
  std::uint64_t ring_drops = 0;     // frames that found a port's ring full
  std::uint64_t send_failures = 0;  // frames that the kernel did not take
};

struct Answer {
  std::string json;
  bool resets = false;  // the caller resets its own counters too
};

/// Answers one request in JSON: stats, reset, set, start_schedule. A bad one changes nothing and
/// is told what would be accepted.
Answer answer_request(std::string_view request, Network& network, const SwitchCounters& counters,
                      Instant now);

}  // namespace gradplane::lab
