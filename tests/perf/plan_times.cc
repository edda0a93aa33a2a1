// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Prints how long planners and selections of receivers take, and how good plans are, by the size of
// the network.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "control/plan/packing_bound.h"
#include "control/plan/planner.h"
#include "control/plan/selection_online.h"
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

double cpu_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// The multicasts of a training in which all ranks send, each at another point of its step.
std::vector<Multicast> multicasts(std::mt19937_64& random, const SelectionRequest& request) {
  const std::size_t ranks = request.ranks.size();
  std::vector<Multicast> made(ranks);
  for (std::size_t from = 0; from < ranks; ++from) {
    made[from].from = from;
    made[from].receivers = Bitmap(ranks);
    made[from].receivers.reset(ranks);
    made[from].receivers.set_all();
    made[from].receivers.clear(from);
    made[from].remaining_bytes.assign(ranks, uniform(random, 1, request.update_bytes));
  }
  return made;
}

/// The longest CPU time of several decisions, each with other links.
void measure_selection(std::size_t ranks, Replication replication) {
  constexpr int kNetworks = 20;
  double round_s = 0;
  double online_s = 0;
  for (int n = 0; n < kNetworks; ++n) {
    std::mt19937_64 random(static_cast<std::uint64_t>(n) + 1);
    OnlineRequest request;
    request.selection = {.ranks = {},
                         .update_bytes = 200'000'000,
                         .receivers = static_cast<std::uint32_t>(ranks * 3 / 10),
                         .freshness = 4,
                         .replication = replication};
    for (std::size_t rank = 0; rank < ranks; ++rank)
      request.selection.ranks.push_back(
          {uniform(random, 20'000, 60'000) * kMbit, uniform(random, 20'000, 60'000) * kMbit});
    const std::vector<Multicast> active = multicasts(random, request.selection);
    const double begin = cpu_s();
    const Selection round = select_receivers(request.selection, Meetings(ranks));
    const double between = cpu_s();
    const std::vector<OnlineSelection> online = select_online(request, active, Meetings(ranks));
    const double end = cpu_s();
    if (round.pairs() == 0 || online.empty()) return;
    round_s = std::max(round_s, between - begin);
    online_s = std::max(online_s, end - between);
  }
  std::printf("%4zu ranks, copies by the %-8s %6.1f ms for a round, %5.2f ms for an update\n",
              ranks, replication == Replication::kNetwork ? "network:" : "sender:", 1e3 * round_s,
              1e3 * online_s);
  std::fflush(stdout);
}

}  // namespace

int main() {
  for (const std::size_t ranks : {std::size_t{50}, std::size_t{200}}) {
    for (const Replication replication : {Replication::kNetwork, Replication::kSender})
      measure_selection(ranks, replication);
  }
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
