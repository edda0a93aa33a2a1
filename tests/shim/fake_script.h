// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// The script of the fake client, which it reads from the environment. fake_client.cc explains its
/// fields.
namespace gradplane::test {

struct Script {
  std::uint32_t lose_round = UINT32_MAX;
  std::uint32_t lose_results = 0;
  std::uint32_t stall_round = UINT32_MAX;
  std::uint32_t garbage_round = UINT32_MAX;
  std::uint32_t refused_rank = UINT32_MAX;
  std::uint32_t slow_ms = 0;
  std::uint32_t partial_blocks = 0;
  std::uint32_t first_round = 0;  // round numbers wrap around
  std::uint32_t absent_round = UINT32_MAX;
  std::uint32_t absent_lead = 0;
  std::uint32_t behind_round = UINT32_MAX;
  std::uint32_t behind_lead = 0;
  std::uint32_t late_round = UINT32_MAX;
  std::uint32_t selections = 0;
  std::uint32_t average_every = 0;
  std::uint32_t staleness = 0;
};

inline Script read_script() {
  Script s;
  if (const char* selective = std::getenv("GRADPLANE_TEST_SELECTIVE")) {
    std::sscanf(selective, "%u:%u:%u", &s.selections, &s.average_every, &s.staleness);
  }
  const char* text = std::getenv("GRADPLANE_TEST_FAKE");
  if (!text) return s;
  std::sscanf(text, "lose=%u:%u", &s.lose_round, &s.lose_results);
  std::sscanf(text, "stall=%u", &s.stall_round);
  std::sscanf(text, "broken-garbage=%u", &s.garbage_round);
  std::sscanf(text, "refuse=%u", &s.refused_rank);
  std::sscanf(text, "slow=%u", &s.slow_ms);
  std::sscanf(text, "partial=%u", &s.partial_blocks);
  std::sscanf(text, "first=%u", &s.first_round);
  std::sscanf(text, "absent=%u:%u", &s.absent_round, &s.absent_lead);
  std::sscanf(text, "behind=%u:%u", &s.behind_round, &s.behind_lead);
  std::sscanf(text, "late=%u", &s.late_round);
  return s;
}

}  // namespace gradplane::test
