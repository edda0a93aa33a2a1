// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Runs simulated scenarios by seed, and says how to run a failed one again.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>

#include "tests/sim/cluster.h"

int main(int argc, char** argv) {
  CLI::App app("Runs whole training steps of the production engine in virtual time, by seed.");
  std::uint64_t seed = 1;
  std::uint64_t count = 1;
  bool verbose = false;
  app.add_option("--seed", seed, "the first seed");
  app.add_option("--count", count, "how many seeds");
  app.add_flag("--verbose", verbose, "a line for each seed");
  CLI11_PARSE(app, argc, argv);

  std::uint64_t failed = 0;
  for (std::uint64_t s = seed; s < seed + count; ++s) {
    const gradplane::sim::Outcome outcome = gradplane::sim::run(gradplane::sim::random_scenario(s));
    if (verbose) {
      std::printf("seed %" PRIu64 ": %.3f ms, %" PRIu64 " packets, %" PRIu64 " dropped, %" PRIu64
                  " blocks sent again, trace %016" PRIx64 "\n",
                  s, (outcome.ended - gradplane::Instant()).to_seconds() * 1e3, outcome.packets, outcome.packets_dropped,
                  outcome.counters.blocks_retransmitted, outcome.trace);
    }
    if (outcome.failure.empty()) continue;
    ++failed;
    std::printf("seed %" PRIu64 " failed: %s\n  replay: %s --seed %" PRIu64 " --verbose\n", s,
                outcome.failure.c_str(), argv[0], s);
  }
  std::printf("%" PRIu64 " passed, %" PRIu64 " failed\n", count - failed, failed);
  return failed == 0 ? 0 : 1;
}
