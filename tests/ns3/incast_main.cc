// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Many senders to one receiver in ns-3. Prints a line of JSON for each transport.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/ns3/scenario.h"

namespace {

using gradplane::Duration;
using gradplane::ns3_incast::kContestants;
using gradplane::ns3_incast::Outcome;
using gradplane::ns3_incast::Round;
using gradplane::ns3_incast::Scenario;

struct Options {
  Scenario scenario;
  std::vector<std::string> contestants = {"gradplane-grants"};
  double mbit_per_s = 1000;
  double delay_us = 50;
  double jitter_us = 100;
  double pause_ms = 10;
  bool each_sender = false;
};

Duration nanoseconds(double ns) {
  return Duration::ns(static_cast<std::int64_t>(ns));
}

void print_round(const Round& round, bool each_sender) {
  std::printf("{\"push_s\": %.9f, \"all_reduce_s\": ", round.push.to_seconds());
  if (round.all_reduce == Duration{}) {
    std::printf("null");
  } else {
    std::printf("%.9f", round.all_reduce.to_seconds());
  }
  std::printf(", \"spread\": %.4f", round.spread());
  if (each_sender) {
    std::printf(", \"senders_s\": [");
    for (std::size_t s = 0; s < round.sender_pushes.size(); ++s) {
      std::printf("%s%.9f", s == 0 ? "" : ", ", round.sender_pushes[s].to_seconds());
    }
    std::printf("]");
  }
  std::printf("}");
}

void print(const Scenario& s, const Outcome& o, bool each_sender) {
  std::printf("{\"contestant\": \"%s\", \"senders\": %zu, \"bytes\": %zu, ", s.contestant.c_str(),
              s.senders, s.push_bytes);
  std::printf("\"rate_bits_per_second\": %" PRIu64 ", \"link_delay_s\": %.9f, ",
              s.link_bits_per_second, s.link_delay.to_seconds());
  std::printf("\"queue_bytes\": %zu, \"mark_bytes\": %zu, \"seed\": %" PRIu64 ", ", s.queue_bytes,
              s.mark_bytes, s.seed);
  std::printf("\"bound_s\": %.9f, \"rounds\": [", o.bound.to_seconds());
  for (std::size_t r = 0; r < o.rounds.size(); ++r) {
    std::printf("%s", r == 0 ? "" : ", ");
    print_round(o.rounds[r], each_sender);
  }
  std::printf("], \"drops\": %" PRIu64 ", \"drops_elsewhere\": %" PRIu64 ", \"marks\": %" PRIu64
              ", \"marks_heard\": %" PRIu64 ", \"deepest_queue_bytes\": %zu, ",
              o.drops, o.drops_elsewhere, o.marks, o.marks_heard, o.deepest_bytes);
  std::printf("\"needed_bytes\": %" PRIu64 ", \"repeated_bytes\": %" PRIu64
              ", \"failure\": \"%s\"}\n",
              o.needed_bytes, o.repeated_bytes, o.failure.c_str());
}

/// Returns whether every round ended and every sum was right.
bool run(const Options& options, const std::string& contestant) {
  Scenario scenario = options.scenario;
  scenario.contestant = contestant;
  scenario.link_bits_per_second = static_cast<std::uint64_t>(options.mbit_per_s * 1e6);
  scenario.link_delay = nanoseconds(options.delay_us * 1e3);
  scenario.jitter = nanoseconds(options.jitter_us * 1e3);
  scenario.pause = nanoseconds(options.pause_ms * 1e6);
  const Outcome outcome = gradplane::ns3_incast::run(scenario);
  print(scenario, outcome, options.each_sender);
  return outcome.failure.empty();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times many senders to one receiver in ns-3: gradplane's engine, and ns-3's TCP.");
  Options o;
  Scenario& s = o.scenario;
  app.add_option("--contestant", o.contestants, "one or more")
      ->check(CLI::IsMember(std::vector<std::string>(kContestants.begin(), kContestants.end())));
  app.add_option("--senders", s.senders, "how many");
  app.add_option("--bytes", s.push_bytes, "of each sender in a round");
  app.add_option("--rounds", s.rounds, "how many, over the same connections");
  app.add_option("--mbit", o.mbit_per_s, "rate of every link, Mbit/s");
  app.add_option("--delay-us", o.delay_us, "of each of the two links of a path");
  app.add_option("--queue", s.queue_bytes, "bytes before the receiver's link");
  app.add_option("--mark", s.mark_bytes, "ECN threshold, bytes; 0: none");
  app.add_option("--jitter-us", o.jitter_us, "senders begin a round within this time");
  app.add_option("--pause-ms", o.pause_ms, "between two rounds");
  app.add_option("--seed", s.seed, "of jitter, and of ns-3");
  app.add_flag("--each-sender", o.each_sender, "when the push of each sender ended");
  CLI11_PARSE(app, argc, argv);
  bool right = true;
  try {
    for (const std::string& contestant : o.contestants) right = run(o, contestant) && right;
  } catch (const std::invalid_argument& wrong) {
    std::fprintf(stderr, "ns3_incast: %s; see --help\n", wrong.what());
    return 2;
  }
  return right ? 0 : 1;
}
