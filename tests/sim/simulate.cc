// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Runs simulated scenarios by seed, and prints how to run a failed one again.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <mutex>
#include <thread>

#include "tests/sim/changing_command.h"
#include "tests/sim/cluster.h"
#include "tests/sim/grow_command.h"
#include "tests/sim/redrawn.h"
#include "tests/sim/seeds.h"
#include "tests/sim/time_command.h"
#include "tests/sim/wan_command.h"

namespace {

using gradplane::sim::Seeds;
struct Flips {
  std::uint64_t count = 1;
  std::uint32_t rounds = 10'000;
  double at_most = 0;  // limit for the slowest round at a flip, over the median; 0: no limit
  bool lossless = false;
  bool mixed = false;
};

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The times of rounds near a change of plans, relative to other rounds of the same two plans.
struct FlipTimes {
  double worst = 0;      // the slowest near a flip, over the larger median of the two plans
  double elsewhere = 0;  // the slowest of the others, over the median of its plan

  FlipTimes(const gradplane::sim::Scenario& s, const gradplane::sim::Outcome& o) {
    times_ms = round_times_ms(o.round_ends, s.in_flight);
    std::vector<std::size_t> begins = {0};
    for (const std::uint32_t activation : o.activations) {
      begins.push_back(std::min<std::size_t>(s.index_of(activation), times_ms.size()));
    }
    begins.push_back(times_ms.size());
    std::vector<double> medians;
    for (std::size_t p = 0; p + 1 < begins.size(); ++p) {
      medians.push_back(median_of({at(begins[p]), at(begins[p + 1])}));
    }
    for (std::size_t p = 0; p + 1 < begins.size(); ++p) {
      const bool is_flip = p > 0;
      const double before = is_flip ? std::max(medians[p - 1], medians[p]) : medians[p];
      for (std::size_t r = begins[p]; r < begins[p + 1]; ++r) {
        const bool near_end = p + 2 < begins.size() && r + kNear >= begins[p + 1];
        if (is_flip && r < begins[p] + kNear) {
          worst = std::max(worst, times_ms[r] / before);
        } else if (!near_end) {
          elsewhere = std::max(elsewhere, times_ms[r] / medians[p]);
        } else {
          worst = std::max(worst, times_ms[r] / std::max(medians[p], medians[p + 1]));
        }
      }
    }
  }

 private:
  static constexpr std::size_t kNear = gradplane::kRoundSlots;

  /// Ranks have `in_flight` rounds in flight, and rounds that overlap may end together. So the time
  /// of one round is the time of so many rounds, divided by their number.
  static std::vector<double> round_times_ms(const std::vector<gradplane::Instant>& ends,
                                            std::size_t in_flight) {
    std::vector<double> times;
    for (std::size_t r = in_flight; r < ends.size(); ++r) {
      const double ms = (ends[r] - ends[r - in_flight]).to_seconds() * 1e3;
      times.push_back(ms / static_cast<double>(in_flight));
    }
    return times;
  }
  std::vector<double>::const_iterator at(std::size_t round) const {
    return times_ms.begin() + static_cast<std::ptrdiff_t>(std::min(round, times_ms.size()));
  }

  std::vector<double> times_ms;
};

/// Runs one job whose plan changes again and again. Returns whether every sum was right, most plans
/// came, and no round at a flip took too long.
bool run_flips(const Flips& flips, std::uint64_t seed) {
  gradplane::sim::Scenario s = gradplane::sim::flip_scenario(seed, flips.rounds);
  if (flips.lossless) s.link.loss = s.link.duplication = 0;
  if (flips.mixed) gradplane::sim::mix_operations(s, seed);
  const gradplane::sim::Outcome o = gradplane::sim::run(s);
  const FlipTimes times(s, o);
  std::printf("seed %" PRIu64
              ": %zu rounds, %zu of %zu flips; slowest round over the median: %.2f "
              "at a flip, %.2f elsewhere; %" PRIu64 " packets, %" PRIu64 " dropped; %s\n",
              seed, o.round_ends.size(), o.activations.size(), s.flips.size(), times.worst,
              times.elsewhere, o.packets, o.packets_dropped,
              o.failure.empty() ? "all sums right" : o.failure.c_str());
  // A plan begins only when the one before has ended everywhere, and messages may take as long as
  // ten rounds.
  const bool most_came = o.activations.size() * 5 >= s.flips.size() * 4;
  const bool quick = flips.at_most <= 0 || times.worst <= std::max(flips.at_most, times.elsewhere);
  return o.failure.empty() && most_came && quick;
}

/// Whether many tolerant scenarios together showed everything that the checkers check.
bool shows_losses(const gradplane::sim::ToleranceTotals& t) {
  using gradplane::CloseReason;
  std::printf("rounds closed full %" PRIu64 ", early %" PRIu64 ", at the deadline %" PRIu64
              ", without an absent rank %" PRIu64 "; blocks missing %" PRIu64 ", partial %" PRIu64
              "; elements carried %" PRIu64 "; early after a change of bounds %" PRIu64 "\n",
              t.at(CloseReason::kFull), t.at(CloseReason::kEarly), t.at(CloseReason::kDeadline),
              t.at(CloseReason::kAbsent), t.missing_blocks, t.partial_blocks, t.carried_elements,
              t.partial_after_change);
  const bool all = t.at(CloseReason::kFull) > 0 && t.at(CloseReason::kEarly) > 0 &&
                   t.at(CloseReason::kDeadline) > 0 && t.at(CloseReason::kAbsent) > 0 &&
                   t.missing_blocks > 0 && t.partial_blocks > 0 && t.carried_elements > 0 &&
                   t.partial_after_change > 0;
  if (!all)
    std::printf("one of these never happened: the scenarios do not show what they should\n");
  return all;
}

/// Of so many seeds one has many nodes (kLargeEvery), or crashes of daemons (kCrashEvery).
constexpr std::uint64_t kLargeEvery = 25;
constexpr std::uint64_t kLargeAt = 5;
constexpr std::uint64_t kCrashEvery = 8;
constexpr std::uint64_t kCrashAt = 0;
/// From so many tolerant scenarios on, a run must have shown everything.
constexpr std::uint64_t kShowAll = 200;
/// From so many scenarios with auxiliary routes, groups or parity on, a run must have used them.
constexpr std::uint64_t kShowRoutes = 10;

void print_seed(std::uint64_t seed, const gradplane::sim::Outcome& o) {
  using gradplane::CloseReason;
  std::printf("seed %" PRIu64 ": %.3f ms, %" PRIu64 " packets, %" PRIu64 " dropped, %" PRIu64
              " blocks sent again, trace %016" PRIx64 "\n",
              seed, (o.ended - gradplane::Instant()).to_seconds() * 1e3, o.packets,
              o.packets_dropped, o.counters.blocks_retransmitted, o.trace);
  if (!o.activations.empty()) std::printf("  %zu further plans\n", o.activations.size());
  if (o.lost_jobs > 0) std::printf("  %" PRIu32 " jobs lost to crashes\n", o.lost_jobs);
  if (o.tolerance.at(CloseReason::kFull) == 0) return;
  std::printf("  closed full %" PRIu64 ", early %" PRIu64 ", deadline %" PRIu64 ", absent %" PRIu64
              "; blocks missing %" PRIu64 ", late %" PRIu64 ", carried %" PRIu64 "\n",
              o.tolerance.at(CloseReason::kFull), o.tolerance.at(CloseReason::kEarly),
              o.tolerance.at(CloseReason::kDeadline), o.tolerance.at(CloseReason::kAbsent),
              o.tolerance.missing_blocks, o.counters.blocks_late, o.counters.blocks_carried);
}

/// Runs scenarios by seed, some of them at a time, and adds up what they have shown.
class SeedRun {
 public:
  SeedRun(const Seeds& seeds, const char* program) : seeds_(seeds), program_(program) {}

  int run() {
    std::vector<std::thread> others;
    for (std::uint32_t n = 1; n < seeds_.jobs; ++n) others.emplace_back([this] { work(); });
    work();
    for (std::thread& other : others) other.join();
    std::printf("%" PRIu64 " passed, %" PRIu64 " failed\n", run_ - failed_, failed_);
    std::printf("%" PRIu64 " jobs were lost to crashes\n", lost_jobs_);
    if (seeds_.routes) std::printf("%" PRIu64 " blocks were relayed\n", relayed_);
    if (seeds_.routes && run_ >= kShowRoutes && relayed_ == 0) return 1;
    if (seeds_.groups) std::printf("%" PRIu64 " blocks went to groups\n", to_groups_);
    if (seeds_.groups && run_ >= kShowRoutes && to_groups_ == 0) return 1;
    if (seeds_.parity) std::printf("%" PRIu64 " blocks were recovered\n", recovered_);
    if (seeds_.parity && run_ >= kShowRoutes && recovered_ == 0) return 1;
    if (seeds_.narrow) std::printf("%" PRIu64 " bytes were saved by wire types\n", saved_bytes_);
    if (seeds_.narrow && saved_bytes_ == 0) return 1;
    if (run_ < kShowAll) return failed_ == 0 ? 0 : 1;
    const bool shown = (!seeds_.tolerant || shows_losses(totals_)) && lost_jobs_ > 0;
    return failed_ == 0 && shown ? 0 : 1;
  }

 private:
  gradplane::sim::Scenario scenario_of(std::uint64_t seed) const {
    const bool large = seeds_.large || (seeds_.tolerant && seed % kLargeEvery == kLargeAt);
    const bool crashes = seeds_.crashes || seed % kCrashEvery == kCrashAt;
    auto scenario = seeds_.replanned  ? gradplane::sim::random_replanned_scenario(seed)
                    : seeds_.narrow   ? gradplane::sim::random_tolerant_scenario(seed, true)
                    : large           ? gradplane::sim::random_large_scenario(seed)
                    : seeds_.tolerant ? gradplane::sim::random_tolerant_scenario(seed)
                                      : gradplane::sim::random_scenario(seed);
    if (seeds_.sites) gradplane::sim::put_on_sites(scenario);
    if (seeds_.routes) gradplane::sim::add_routes(scenario);
    if (seeds_.groups) gradplane::sim::add_groups(scenario);
    if (seeds_.parity) gradplane::sim::add_parity(scenario);
    if (crashes) gradplane::sim::add_crashes(scenario);
    gradplane::sim::share_among_cores(scenario, seeds_.cores);
    return scenario;
  }

  std::uint64_t total() const { return seeds_.first.size() * seeds_.count; }

  void work() {
    for (std::uint64_t n = next_++; n < total() && !stopped_; n = next_++) {
      const std::uint64_t seed = seeds_.first[n / seeds_.count] + n % seeds_.count;
      note(seed, gradplane::sim::run(scenario_of(seed)));
    }
  }

  void note(std::uint64_t seed, const gradplane::sim::Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    ++run_;
    totals_.add(outcome.tolerance);
    lost_jobs_ += outcome.lost_jobs;
    relayed_ += outcome.counters.blocks_relayed;
    recovered_ += outcome.counters.blocks_recovered;
    to_groups_ += outcome.counters.blocks_to_groups;
    saved_bytes_ += outcome.counters.payload_bytes_saved;
    if (seeds_.verbose) print_seed(seed, outcome);
    if (outcome.failure.empty()) return;
    ++failed_;
    stopped_ = seeds_.stop;
    std::printf("seed %" PRIu64 " failed: %s\n  replay: %s %s--seed %" PRIu64 " --verbose\n", seed,
                outcome.failure.c_str(), program_, flags_of(seeds_).c_str(), seed);
    std::fflush(stdout);
  }

  const Seeds& seeds_;
  const char* program_;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;  // guards the members below
  std::uint64_t run_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t lost_jobs_ = 0;
  std::uint64_t relayed_ = 0;
  std::uint64_t to_groups_ = 0;
  std::uint64_t recovered_ = 0;
  std::uint64_t saved_bytes_ = 0;
  gradplane::sim::ToleranceTotals totals_;
};

int run_seeds(Seeds seeds, const char* program) {
  if (seeds.fresh) {
    seeds.first = {gradplane::sim::fresh_seed()};
    // scripts/test shows this line whether seeds fail or not.
    std::printf("NOTE: %s--seed %" PRIu64 " --count %" PRIu64 "\n", flags_of(seeds).c_str(),
                seeds.first[0], seeds.count);
    std::fflush(stdout);
  }
  if (!seeds.redrawn) return SeedRun(seeds, program).run();
  return gradplane::sim::run_redrawn_seeds(seeds, program);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs whole training steps of the production engine in virtual time, by seed.");
  Seeds seeds;
  CLI::Option* first = app.add_option("--seed", seeds.first, "the first seed, or several");
  app.add_option("--count", seeds.count, "how many seeds, from each first one on")
      ->check(CLI::PositiveNumber);
  app.add_flag("--fresh", seeds.fresh, "draws the first seed, and prints it")->excludes(first);
  app.add_option("--jobs", seeds.jobs, "how many seeds run at a time")->check(CLI::Range(1, 64));
  app.add_option("--cores", seeds.cores, "poll cores of each node")
      ->check(CLI::Range(std::size_t{1}, gradplane::kMaxCores));
  app.add_flag("--verbose", seeds.verbose, "a line or two for each seed");
  app.add_flag("--stop", seeds.stop, "at the first seed that fails");
  app.add_flag("--tolerant", seeds.tolerant, "buckets that may lose something");
  app.add_flag("--narrow", seeds.narrow, "the same with wire types");
  app.add_flag("--large", seeds.large, "the same in trees of up to 200 nodes");
  app.add_flag("--replanned", seeds.replanned, "the same with plans that follow each other");
  app.add_flag("--sites", seeds.sites, "on networks of sites, with the trees of planners");
  app.add_flag("--crashes", seeds.crashes, "daemons crash, and the ranks go on with a new job");
  app.add_flag("--routes", seeds.routes, "slow links, and auxiliary routes round them");
  app.add_flag("--groups", seeds.groups, "results go to groups, where the switch copies");
  app.add_flag("--parity", seeds.parity, "parity follows rounds, and links lose more");
  app.add_flag("--redrawn", seeds.redrawn, "whole daemons, links that change, lost coordinators");
  Flips flips;
  CLI::App* flip = app.add_subcommand("flips", "changes the plan of a job every 50 rounds");
  flip->add_option("--rounds", flips.rounds, "how many")->check(CLI::Range(100, 1'000'000));
  flip->add_option("--count", flips.count, "how many seeds, from the first one on");
  flip->add_option("--at-most", flips.at_most,
                   "the slowest round at a flip, over the median; as slow as others is no failure");
  flip->add_flag("--lossless", flips.lossless, "links lose and repeat nothing");
  flip->add_flag("--mixed", flips.mixed, "half of the rounds have another operation");
  const gradplane::sim::TimeCommand time(app);
  const gradplane::sim::WanCommand wan(app);
  const gradplane::sim::GrowCommand grow(app);
  const gradplane::sim::ChangingCommand changing(app);
  CLI11_PARSE(app, argc, argv);
  if (grow.is_asked()) return grow.run(seeds.first[0]) ? 0 : 1;
  if (changing.is_asked()) return changing.run(seeds.first[0]) ? 0 : 1;
  if (wan.is_asked()) return wan.run(seeds.first[0]) ? 0 : 1;
  if (flip->parsed()) {
    bool good = true;
    for (std::uint64_t n = 0; n < flips.count; ++n)
      good = run_flips(flips, seeds.first[0] + n) && good;
    return good ? 0 : 1;
  }
  if (time.is_asked()) return time.run(seeds.first[0]) ? 0 : 1;
  return run_seeds(seeds, argv[0]);
}
