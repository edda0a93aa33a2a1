// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Prints how long planners take and how good their plans are, by the size of the network.
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <utility>

#include "control/plan/packing_bound.h"
#include "control/plan/planner.h"
#include "tests/support/plan_networks.h"

using namespace gradplane;
using namespace gradplane::plan;
using namespace gradplane::testing;

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void measure(const std::string& name, const Network& network) {
  PlanRequest request = request_over(network, PlanKind::kPacked);
  const double bound =
      packing_bound_s_per_bit(request).value() * 8 * static_cast<double>(request.traffic.bytes);
  for (const PlanKind kind :
       {PlanKind::kStar, PlanKind::kSharded, PlanKind::kFapt, PlanKind::kPacked, PlanKind::kAuto}) {
    request.planner = kind;
    const double begin = now_s();
    const auto planned = make_predicted_plan(request);
    const double took = now_s() - begin;
    if (!planned.ok()) continue;
    const Prediction& prediction = *planned.value().prediction;
    std::printf("%-24s %-8s %8.3f s to plan, %3zu trees, height %2d, %8s = %6.2f x bound\n",
                name.c_str(), std::string(plan_kind_name(kind)).c_str(), took,
                planned.value().plan.trees.size(), int{prediction.height},
                text_of(prediction.time).c_str(), prediction.transfer.to_seconds() / bound);
    std::fflush(stdout);
  }
}

Network accesses(std::mt19937_64& random, std::size_t count) {
  Network network = sites(count);
  for (Node& node : network.nodes) {
    node.access.up_bits_per_s = uniform(random, 20, 155) * kMbit;
    node.access.down_bits_per_s = uniform(random, 20, 155) * kMbit;
  }
  return network;
}

}  // namespace

int main() {
  std::mt19937_64 random(1);
  measure("NetStorm, 9 sites", netstorm_network(random));
  measure("30 sites, sparse", random_network(random, 30, 8));
  measure("100 sites, sparse", random_network(random, 100, 25));
  measure("300 sites, sparse", random_network(random, 300, 75));
  measure("1000 sites, sparse", random_network(random, 1000, 250));
  measure("20 sites, full mesh", random_network(random, 20, 1));
  measure("40 sites, full mesh", random_network(random, 40, 1));
  measure("100 sites, full mesh", random_network(random, 100, 1));
  measure("100 nodes, accesses", accesses(random, 100));
  measure("1000 nodes, accesses", accesses(random, 1000));
  return 0;
}
