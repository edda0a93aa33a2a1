// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Runs simulated scenarios by seed, and says how to run a failed one again.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "tests/sim/cluster.h"

namespace {

/// One all-reduce after another on one kind of network, against the bound of protocol.md,
/// section 9.
struct Timing {
  std::string plan = "sharded";
  std::uint16_t hosts = 8;
  double mbit_per_s = 200;
  double bytes = 1 << 20;
  double delay_us = 100;
  double loss = 0;
  std::uint32_t rounds = 20;
  std::size_t in_flight = 1;
  std::size_t queue_bytes = 256 << 10;
};

void time_rounds(const Timing& t, std::uint64_t seed) {
  gradplane::sim::Scenario s;
  s.seed = seed;
  s.link.bits_per_second = static_cast<std::uint64_t>(t.mbit_per_s * 1e6);
  s.link.delay = gradplane::Duration::us(static_cast<std::int64_t>(t.delay_us));
  s.link.loss = t.loss;
  s.link.queue_bytes = t.queue_bytes;
  s.plan = t.plan == "star" ? gradplane::sim::star(t.hosts) : gradplane::sim::sharded(t.hosts);
  s.block_bytes = gradplane::kDefaultBlockBytes;
  s.round_bytes = gradplane::kMaxRoundBytes;
  s.in_flight = t.in_flight;
  s.compute_max = {};
  const auto elements = static_cast<std::uint32_t>(t.bytes / 4);
  s.rounds.assign(t.rounds, {gradplane::ElementType::kFloat32, elements});
  const gradplane::sim::Outcome outcome = gradplane::sim::run(s);
  const double packets = std::ceil(t.bytes / gradplane::kDefaultBlockBytes);
  const double wire_bits = packets * (gradplane::kDefaultBlockBytes + 48 + 66) * 8;
  const double n = t.hosts;
  const double bits = t.plan == "star" ? n * wire_bits : 2 * wire_bits * (n - 1) / n;
  const double bound_s = bits / (t.mbit_per_s * 1e6);
  const double mean_s = (outcome.ended - gradplane::Instant()).to_seconds() / t.rounds;
  std::printf(
      "%s hosts %u: mean round %.2f ms, bound %.2f ms, ratio %.3f; sent again %.2f %%, %s\n",
      t.plan.c_str(), t.hosts, mean_s * 1e3, bound_s * 1e3, mean_s / bound_s,
      100.0 * static_cast<double>(outcome.counters.blocks_retransmitted) /
          static_cast<double>(outcome.counters.blocks_sent),
      outcome.failure.empty() ? "all sums right" : outcome.failure.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs whole training steps of the production engine in virtual time, by seed.");
  std::uint64_t seed = 1;
  std::uint64_t count = 1;
  bool verbose = false;
  app.add_option("--seed", seed, "the first seed");
  app.add_option("--count", count, "how many seeds");
  app.add_flag("--verbose", verbose, "a line for each seed");
  Timing timing;
  CLI::App* time = app.add_subcommand("time", "times rounds on one network against the bound");
  time->add_option("--plan", timing.plan, "star or sharded");
  time->add_option("--hosts", timing.hosts, "training hosts");
  time->add_option("--mbit", timing.mbit_per_s, "rate of every link, Mbit/s");
  time->add_option("--bytes", timing.bytes, "of one round, at most 4 MiB");
  time->add_option("--delay-us", timing.delay_us, "one way");
  time->add_option("--loss", timing.loss, "random, 0 to 1");
  time->add_option("--rounds", timing.rounds, "how many");
  time->add_option("--in-flight", timing.in_flight, "rounds that a rank submits ahead");
  time->add_option("--queue", timing.queue_bytes, "bytes at each downlink");
  CLI11_PARSE(app, argc, argv);
  if (time->parsed()) {
    time_rounds(timing, seed);
    return 0;
  }

  std::uint64_t failed = 0;
  for (std::uint64_t s = seed; s < seed + count; ++s) {
    const gradplane::sim::Outcome outcome = gradplane::sim::run(gradplane::sim::random_scenario(s));
    if (verbose) {
      std::printf("seed %" PRIu64 ": %.3f ms, %" PRIu64 " packets, %" PRIu64 " dropped, %" PRIu64
                  " blocks sent again, trace %016" PRIx64 "\n",
                  s, (outcome.ended - gradplane::Instant()).to_seconds() * 1e3, outcome.packets,
                  outcome.packets_dropped, outcome.counters.blocks_retransmitted, outcome.trace);
    }
    if (outcome.failure.empty()) continue;
    ++failed;
    std::printf("seed %" PRIu64 " failed: %s\n  replay: %s --seed %" PRIu64 " --verbose\n", s,
                outcome.failure.c_str(), argv[0], s);
  }
  std::printf("%" PRIu64 " passed, %" PRIu64 " failed\n", count - failed, failed);
  return failed == 0 ? 0 : 1;
}
