// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Incast in virtual time: how long N senders take to send to one receiver, relative to the bound of
// the wire. Prints a line of JSON for each N and controller.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/sim/contestant.h"

namespace {

using gradplane::Duration;
using gradplane::Instant;
using gradplane::sim::incast::Job;
using gradplane::sim::incast::kContestants;
using gradplane::sim::incast::Outcome;
using gradplane::sim::incast::Scenario;

struct Options {
  std::vector<std::size_t> senders = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::vector<std::string> controllers = {"grants"};
  std::uint32_t blocks = 0;  // of each sender; 0: total_blocks divided among the senders
  std::uint32_t total_blocks = 32'000;
  double mbit_per_s = 1000;
  double delay_us = 50;
  std::size_t block_bytes = 1522;
  std::size_t buffer_bytes = 256 << 10;
  std::size_t mark_bytes = 0;
  double loss = 0;
  double late_us = 0;         // senders start at random times within this
  double own_mbit_per_s = 0;  // 0: the same as the downlink
  bool assume_buffer = false;
  bool victim = false;
  bool cdf = false;
  double at_most = 0;  // limit of time over the bound
  double spread_at_most = 0;
  bool no_drops = false;
};

/// The least number of blocks of a sender. With fewer, a run would mainly measure its start.
constexpr std::uint32_t kMinBlocks = 100;
constexpr int kWholePercent = 100;

Scenario scenario_of(const Options& o, std::size_t senders) {
  Scenario s;
  s.link_bits_per_second = static_cast<std::uint64_t>(o.mbit_per_s * 1e6);
  s.own_bits_per_second = static_cast<std::uint64_t>(o.own_mbit_per_s * 1e6);
  s.block_wire_bytes = o.block_bytes;
  s.delay = Duration::ns(static_cast<std::int64_t>(o.delay_us * 1e3));
  s.mark_bytes = o.mark_bytes;
  s.loss = o.loss;
  s.tell_buffer = !o.assume_buffer;
  s.senders.resize(senders);
  for (std::size_t i = 0; i < senders; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(senders);
    s.senders[i].late = Duration::ns(static_cast<std::int64_t>(o.late_us * 1e3 * share));
  }
  Job job;
  job.blocks = o.blocks > 0
                   ? o.blocks
                   : std::max(kMinBlocks, o.total_blocks / static_cast<std::uint32_t>(senders));
  s.jobs = {job};
  s.buffer_bytes = o.buffer_bytes;
  if (o.victim) s.victim_interval = Duration::us(100);
  return s;
}

double seconds(Instant at) {
  return (at - Instant{}).to_seconds();
}

/// The value at `part` of sorted values: 0 is the first, 1 the last.
double part_of(const std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

/// Prints the 0, 1, ... and 100 % quantiles, for a plot.
void print_quantiles(const std::vector<double>& values) {
  std::printf("\"block_complete_quantiles_s\": [");
  for (int percent = 0; percent <= kWholePercent; ++percent) {
    std::printf("%s%.6f", percent == 0 ? "" : ", ",
                part_of(values, percent / double{kWholePercent}));
  }
  std::printf("], ");
}

/// Runs one setting and prints it. Returns whether it kept the limits of the options.
bool report(const Options& options, std::size_t senders, const std::string& controller) {
  Scenario s = scenario_of(options, senders);
  if (!gradplane::sim::incast::choose(controller, s)) {
    std::fprintf(stderr, "incast: no controller '%s'; see --help\n", controller.c_str());
    return false;
  }
  const Outcome o = gradplane::sim::incast::run(s);
  const double bound_s = gradplane::sim::incast::bound(s).to_seconds();
  const double time_s = seconds(o.iterations[0][0].end);
  const auto [first, last] = std::minmax_element(o.sender_ends.begin(), o.sender_ends.end());
  const double spread = seconds(*last) / seconds(*first);
  std::vector<double> blocks;
  for (const Instant end : o.block_ends) blocks.push_back(seconds(end));
  std::sort(blocks.begin(), blocks.end());
  std::vector<double> victim;
  for (const Duration delay : o.victim_delays) victim.push_back(delay.to_seconds());
  std::sort(victim.begin(), victim.end());
  std::printf("{\"senders\": %zu, \"controller\": \"%s\", ", senders, controller.c_str());
  std::printf("\"blocks\": %u, \"time_s\": %.6f, \"bound_s\": %.6f, \"time_over_bound\": %.4f, ",
              s.jobs[0].blocks, time_s, bound_s, time_s / bound_s);
  std::printf("\"spread\": %.4f, \"drops\": %" PRIu64 ", \"sent_again\": %" PRIu64 ", ", spread,
              o.drops, o.sent_again);
  std::printf("\"buffer_bytes\": %zu, \"deepest_queue_bytes\": %zu, ", s.buffer_bytes,
              o.deepest_bytes);
  std::printf("\"grants\": %" PRIu64 ", \"block_complete_p50_s\": %.6f, ", o.grants,
              part_of(blocks, 0.5));
  std::printf("\"block_complete_p99_s\": %.6f, \"victim_p50_us\": %.1f, \"victim_p99_us\": %.1f, ",
              part_of(blocks, 0.99), part_of(victim, 0.5) * 1e6, part_of(victim, 0.99) * 1e6);
  if (options.cdf) print_quantiles(blocks);
  std::printf("\"pace\": %.3f, \"lost_blocks\": %" PRIu64 ", ", o.stats.pace, o.stats.lost_blocks);
  std::printf("\"finished\": %s}\n", o.finished ? "true" : "false");
  return o.finished && (options.at_most <= 0 || time_s <= options.at_most * bound_s) &&
         (options.spread_at_most <= 0 || spread <= options.spread_at_most) &&
         (!options.no_drops || o.drops == 0);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times many senders to one receiver in virtual time.");
  Options options;
  app.add_option("--senders", options.senders, "how many, one or more numbers");
  app.add_option("--controller", options.controllers, std::string(kContestants));
  app.add_option("--blocks", options.blocks, "of each sender");
  app.add_option("--total-blocks", options.total_blocks, "of all senders, without --blocks");
  app.add_option("--mbit", options.mbit_per_s, "rate of every link, Mbit/s");
  app.add_option("--own-mbit", options.own_mbit_per_s,
                 "of the receiver's link alone, where the others are narrower, Mbit/s");
  app.add_option("--delay-us", options.delay_us, "one way");
  app.add_option("--block-bytes", options.block_bytes, "of a full block on the wire");
  app.add_option("--buffer", options.buffer_bytes, "bytes before the downlink");
  app.add_option("--mark", options.mark_bytes, "ECN threshold, bytes; 0: none");
  app.add_option("--loss", options.loss, "random, 0 to 1");
  app.add_option("--late-us", options.late_us, "senders start within this time");
  app.add_flag("--assume-buffer", options.assume_buffer,
               "the buffer is not configured, so that the scheduler assumes one");
  app.add_flag("--victim", options.victim, "somebody else sends small packets to the receiver");
  app.add_flag("--cdf", options.cdf, "adds when each percent of the blocks was complete");
  app.add_option("--at-most", options.at_most, "over the bound, else it is a failure");
  app.add_option("--spread-at-most", options.spread_at_most, "last over first sender, else ...");
  app.add_flag("--no-drops", options.no_drops, "a drop is a failure");
  CLI11_PARSE(app, argc, argv);
  bool kept = true;
  for (const std::size_t senders : options.senders) {
    for (const std::string& controller : options.controllers) {
      kept = report(options, senders, controller) && kept;
    }
  }
  return kept ? 0 : 1;
}
