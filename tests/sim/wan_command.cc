// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/wan_command.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "dataplane/model/loss_bounds.h"

namespace gradplane::sim {
namespace {

constexpr double kBytesPerMegabyte = 1e6;
constexpr std::uint64_t kTestbedVolumes = 16;
constexpr std::size_t kTestbedQueues = 4;

PlanKind planner_of(const std::string& name) {
  for (const PlanKind kind :
       {PlanKind::kStar, PlanKind::kSharded, PlanKind::kFapt, PlanKind::kPacked, PlanKind::kAuto}) {
    if (plan_kind_name(kind) == name) return kind;
  }
  return PlanKind::kStar;
}

void print(const WanResult& r, double star_s) {
  std::printf(
      "  %-8s %3zu trees, height %d: %8.2f s, predicted %8.2f s (%.2f), bound %.2f s "
      "(%.2f), star / this %5.2f; sent again %.2f %% (needlessly %.2f %%; frames lost at random "
      "%.2f %%, by queues %.2f %%); missing %.3f %%; %s; %s\n",
      std::string(plan_kind_name(r.planner)).c_str(), r.trees, int{r.height}, r.mean_s(),
      r.predicted_s, r.mean_s() / r.predicted_s, r.bound_s, r.mean_s() / r.bound_s,
      star_s / r.mean_s(), 100 * r.sent_again, 100 * r.needless, 100 * r.lost_at_random,
      100 * r.dropped_by_queues, 100 * r.missing, r.bottleneck.c_str(),
      r.failure.empty() ? "all sums right" : r.failure.c_str());
  std::fflush(stdout);
}

void print_json(const WanResult& r, std::uint64_t seed, double megabytes, const WanPaths& paths) {
  const nlohmann::json line = {{"seed", seed},
                               {"megabytes", megabytes},
                               {"delayed", paths.delayed},
                               {"lossy", paths.lossy},
                               {"planner", plan_kind_name(r.planner)},
                               {"trees", r.trees},
                               {"height", r.height},
                               {"bottleneck", r.bottleneck},
                               {"seconds", r.times_s},
                               {"predicted_s", r.predicted_s},
                               {"bound_s", r.bound_s},
                               {"sent_again", r.sent_again},
                               {"needless", r.needless},
                               {"lost_at_random", r.lost_at_random},
                               {"dropped_by_queues", r.dropped_by_queues},
                               {"missing", r.missing},
                               {"dropped", r.dropped},
                               {"failure", r.failure}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace

WanCommand::WanCommand(CLI::App& app)
    : command_(app.add_subcommand("wan", "all_reduces over NetStorm's network by planner")) {
  command_->add_option("--megabytes", megabytes_, "of an all_reduce, one or several");
  command_->add_option("--planners", planners_, "some of star, sharded, fapt, packed, auto")
      ->check(CLI::IsMember(planners_));
  command_->add_option("--all-reduces", all_reduces_, "one after the other in each run")
      ->check(CLI::PositiveNumber);
  command_->add_option("--draws", draws_, "networks, drawn from the seed on")
      ->check(CLI::PositiveNumber);
  command_->add_flag("--delays", paths_.delayed, "links of 10 to 150 ms one way");
  command_->add_flag("--losses", paths_.lossy, "links that lose 0.1 to 2 %");
  command_->add_flag("--testbed", paths_.testbed,
                     "as scripts/bench wan: a quarter of rates and queues, a sixteenth of volumes "
                     "and rounds, and --delays are those of round trips");
  command_->add_option("--controller", controller_, "as congestion.controller")
      ->check(CLI::IsMember(
          std::vector<std::string>(kControllerNames.begin(), kControllerNames.end())));
  command_->add_option("--at-most", at_most_,
                       "packed over the packing bound, else it is a failure");
  command_->add_option("--needless-at-most", needless_at_most_,
                       "share of the blocks whose receiver had them, else it is a failure");
  command_
      ->add_option("--bound", bound_,
                   "share of each rank's blocks that a round may miss; the first all_reduce is "
                   "exact, and what is missing is carried")
      ->check(CLI::Range(0.0F, kMaxBound));
  command_->add_flag("--json", json_, "a line of JSON for each planner");
}

WanLoad WanCommand::load_of(double megabytes) const {
  WanLoad load{.bytes = static_cast<std::uint64_t>(megabytes * kBytesPerMegabyte),
               .all_reduces = all_reduces_,
               .bound = bound_};
  const auto found = std::find(kControllerNames.begin(), kControllerNames.end(), controller_);
  if (paths_.testbed) {
    load.bytes /= kTestbedVolumes;
    load.round_bytes /= kTestbedVolumes;
    load.queue_bytes /= kTestbedQueues;
  }
  load.congestion.controller = static_cast<ControllerKind>(found - kControllerNames.begin());
  return load;
}

bool WanCommand::run(std::uint64_t seed) const {
  bool good = true;
  for (std::uint32_t draw = 0; draw < draws_; ++draw) {
    for (const double megabytes : megabytes_) good = run_case(seed + draw, megabytes) && good;
  }
  return good;
}

bool WanCommand::run_case(std::uint64_t seed, double megabytes) const {
  const plan::Network network = wan_network(seed, paths_);
  if (!json_) {
    std::printf("network of seed %" PRIu64 "%s%s, %g MB, the mean of %" PRIu32 " all_reduces\n",
                seed, paths_.delayed ? ", with delays" : "", paths_.lossy ? ", with losses" : "",
                megabytes, all_reduces_);
  }
  double star_s = 0;
  bool good = true;
  for (const std::string& name : planners_) {
    const WanResult result = run_wan(network, planner_of(name), load_of(megabytes), seed);
    if (result.planner == PlanKind::kStar) star_s = result.mean_s();
    json_ ? print_json(result, seed, megabytes, paths_) : print(result, star_s);
    const bool slow = at_most_ > 0 && result.planner == PlanKind::kPacked &&
                      result.mean_s() > at_most_ * result.bound_s;
    const bool repeats = result.needless > needless_at_most_;
    good = good && result.failure.empty() && !slow && !repeats;
  }
  return good;
}

}  // namespace gradplane::sim
