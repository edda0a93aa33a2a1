// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/lab/network.h"

namespace gradplane::lab {

/// Counters of the process around the network.
struct SwitchCounters {
  double cpu_seconds = 0;           // of the process, including time in the kernel
  std::uint64_t late_1ms = 0;       // deliveries that were more than 1 ms late
  std::int64_t latest_ns = 0;       // delay of the latest delivery
  std::uint64_t ring_drops = 0;     // frames lost because a port's ring was full
  std::uint64_t send_failures = 0;  // frames that the kernel refused
};

struct Answer {
  std::string json;
  bool resets = false;  // the caller must reset its own counters, too
};

/// Answers a request in JSON: stats, reset, set or start_schedule. A bad request changes nothing,
/// and the answer says what would be accepted.
Answer answer_request(std::string_view request, Network& network, const SwitchCounters& counters,
                      Instant now);

}  // namespace gradplane::lab
