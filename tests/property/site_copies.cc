// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How often whole engines send the sums of a site over the links between sites.
#include <algorithm>
#include <vector>

#include "dataplane/model/limits.h"
#include "tests/sim/wan.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"
#include "tests/support/planned.h"

using namespace gradplane;
using namespace gradplane::sim;
using gradplane::testing::connect;
using gradplane::testing::kMbit;
using gradplane::testing::planned;
using gradplane::testing::sites;

namespace {

constexpr std::size_t kHostsAtSite = 2;
constexpr std::size_t kBlocks = 2000;
/// Ethernet, IP, UDP and gradplane headers of a block.
constexpr std::size_t kHeaderBytes = 42 + kMaxHeaderBytes;
/// The share of acks and a few retransmissions.
constexpr double kBeside = 0.05;

/// Each pair of sites has a link with a different rate. Hosts have fast accesses.
plan::Network sites_of_several_hosts(std::size_t site_count) {
  plan::Network network = sites(site_count);
  std::uint64_t mbit = 20;
  for (std::size_t a = 0; a < site_count; ++a) {
    for (std::size_t b = a + 1; b < site_count; ++b, mbit += 30)
      connect(network, a, b, mbit * kMbit, (mbit + 10) * kMbit, Duration::ms(10));
  }
  for (std::size_t more = 1; more < kHostsAtSite; ++more) {
    for (std::size_t site = 0; site < site_count; ++site)
      network.nodes.push_back({static_cast<plan::SiteId>(site), {}});
  }
  for (plan::Node& node : network.nodes)
    node.access.up_bits_per_s = node.access.down_bits_per_s = 1000 * kMbit;
  return network;
}

/// By link: the bytes that crossed it, relative to one copy of all blocks.
std::vector<double> copies_by_link(const plan::Network& network, PlanKind planner) {
  const WanLoad load{.bytes = kBlocks * kDefaultBlockBytes, .round_bytes = 64 << 10};
  const api::Plan plan = planned(wan_request(network, planner, load)).plan;
  const Outcome outcome = run(wan_scenario({{{}, network}}, plan, load, 1));
  INFO(outcome.failure);
  REQUIRE(outcome.failure.empty());
  std::vector<double> copies;
  for (const lab::LinkCounters& link : outcome.site_links) {
    copies.push_back(static_cast<double>(link.bytes) /
                     static_cast<double>(kBlocks * (kDefaultBlockBytes + kHeaderBytes)));
  }
  REQUIRE(copies.size() == network.links.size());
  return copies;
}

double sum_of(const std::vector<double>& copies) {
  double sum = 0;
  for (const double of_link : copies) sum += of_link;
  return sum;
}

}  // namespace

TEST_CASE("every block leaves a site of several hosts once, summed, and comes back once") {
  for (const std::size_t site_count : {2, 3}) {
    const plan::Network network = sites_of_several_hosts(site_count);
    // A tree over sites has one edge less than there are sites, and each edge carries both
    // directions.
    const auto trees_need = static_cast<double>(2 * (site_count - 1));
    for (const PlanKind planner : {PlanKind::kPacked, PlanKind::kFapt, PlanKind::kAuto}) {
      const std::vector<double> copies = copies_by_link(network, planner);
      INFO(plan_kind_name(planner) << " over " << site_count << " sites");
      CHECK(sum_of(copies) >= trees_need);
      CHECK(sum_of(copies) <= trees_need * (1 + kBeside));
      for (const double of_link : copies) CHECK(of_link <= 1 + kBeside);
    }
    // A star does not know sites: both hosts of each other site send to its root.
    CHECK(sum_of(copies_by_link(network, PlanKind::kStar)) >= trees_need * kHostsAtSite);
  }
}
