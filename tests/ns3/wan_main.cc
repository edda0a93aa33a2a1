// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// All_reduces over NetStorm's sites in ns-3. Prints a line for each planner.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/ns3/wan.h"

namespace {

using gradplane::PlanKind;
using gradplane::ns3_wan::Outcome;
using gradplane::ns3_wan::Scenario;

const std::map<std::string, PlanKind> kPlanners = {{"star", PlanKind::kStar},
                                                   {"sharded", PlanKind::kSharded},
                                                   {"fapt", PlanKind::kFapt},
                                                   {"packed", PlanKind::kPacked},
                                                   {"auto", PlanKind::kAuto}};

/// Returns whether every sum was right.
bool run(const Scenario& base, const std::string& planner, double& star_s) {
  Scenario scenario = base;
  scenario.planner = kPlanners.at(planner);
  const Outcome o = gradplane::ns3_wan::run(scenario);
  const double took = o.all_reduce.to_seconds();
  if (scenario.planner == PlanKind::kStar) star_s = took;
  std::printf("%-8s %8.3f s, predicted %8.3f s, %5.2f of the packing bound %.3f s, %2zu trees, ",
              planner.c_str(), took, o.predicted.time.to_seconds(), took / o.bound.to_seconds(),
              o.bound.to_seconds(), o.trees);
  if (star_s > 0) std::printf("%.2f times as fast as the star, ", star_s / took);
  std::printf("%" PRIu64 " packets dropped%s%s\n", o.drops, o.failure.empty() ? "" : "; ",
              o.failure.c_str());
  std::fflush(stdout);
  return o.failure.empty();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times all_reduces over NetStorm's 9 sites in ns-3, with gradplane's engine.");
  std::vector<std::string> planners = {"star", "sharded", "fapt", "packed", "auto"};
  std::vector<std::string> known;
  for (const auto& [name, kind] : kPlanners) known.push_back(name);
  Scenario s;
  std::uint64_t network_seed = 1;
  bool far = false;
  std::string controller = "delay";
  const auto& controllers = gradplane::kControllerNames;
  app.add_option("--planner", planners, "one or more")->check(CLI::IsMember(known));
  app.add_option("--bytes", s.bytes, "of the all_reduce");
  app.add_option("--round-bytes", s.round_bytes, "of each round of it");
  app.add_option("--queue", s.queue_bytes, "bytes before each direction of a link");
  app.add_option("--network-seed", network_seed, "of the links' rates");
  app.add_flag("--far", far, "round trips of 10 to 150 ms and loss of 0.1 to 2 % on each link");
  app.add_option("--controller", controller, "congestion control")
      ->check(CLI::IsMember(std::vector<std::string>(controllers.begin(), controllers.end())));
  app.add_option("--seed", s.seed, "of losses");
  CLI11_PARSE(app, argc, argv);
  s.network = gradplane::ns3_wan::netstorm(network_seed, far);
  s.congestion.controller = static_cast<gradplane::ControllerKind>(
      std::find(controllers.begin(), controllers.end(), controller) - controllers.begin());
  bool right = true;
  double star_s = 0;
  try {
    for (const std::string& planner : planners) right = run(s, planner, star_s) && right;
  } catch (const std::invalid_argument& wrong) {
    std::fprintf(stderr, "ns3_wan: %s; see --help\n", wrong.what());
    return 2;
  }
  return right ? 0 : 1;
}
