// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The simulator's network of sites carries packets as the planners' model predicts.
#include <algorithm>
#include <random>

#include "control/plan/routes.h"
#include "control/plan/validate.h"
#include "tests/sim/cluster.h"
#include "tests/sim/site_network.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"

using namespace gradplane;
using namespace gradplane::sim;
using gradplane::testing::connect;
using gradplane::testing::kMbit;
using gradplane::testing::sites;

namespace {

constexpr std::size_t kPayload = 934;  // 1000 bytes on the wire
constexpr SiteNetwork::Queues kRoom{.least_bytes = 1 << 20};

/// When a datagram that is sent now arrives at the other node; never if it is lost.
Instant arrival(SiteNetwork& network, std::uint16_t from, std::uint16_t to, Instant now,
                lab::Rng& random) {
  const auto path = network.path(from, to, now);
  if (path == nullptr) return Instant::never();
  for (const SiteNetwork::Pipe pipe : *path) {
    const auto passage = network.pass(pipe, kPayload, now, random);
    if (!passage) return Instant::never();
    now = passage->arrival;
  }
  return now;
}

plan::Network chain(std::uint64_t mbit) {
  plan::Network network = sites(3);
  connect(network, 0, 1, mbit * kMbit, mbit * kMbit, Duration::ms(20));
  connect(network, 1, 2, mbit * kMbit, mbit * kMbit, Duration::ms(60));
  return network;
}

}  // namespace

TEST_CASE("a packet takes each link's time to send and half of its round trip") {
  SiteNetwork network({{{}, chain(80)}}, kRoom);
  lab::Rng random(1);
  const Duration on_wire = Duration::us(100);
  CHECK(arrival(network, 0, 1, {}, random) == Instant() + on_wire + Duration::ms(10));
  // The second datagram waits for the first one at the link that both use, and nowhere else.
  CHECK(arrival(network, 0, 2, {}, random) == Instant() + on_wire * 3 + Duration::ms(40));
  CHECK(arrival(network, 2, 0, {}, random) == Instant() + on_wire * 2 + Duration::ms(40));
}

TEST_CASE("what a node or a site sends passes its access, and what a site forwards does not") {
  plan::Network description = chain(80);
  description.nodes[0].access.up_bits_per_s = 8 * kMbit;
  description.sites[1].access.down_bits_per_s = 8 * kMbit;
  SiteNetwork network({{{}, description}}, kRoom);
  lab::Rng random(1);
  const Duration slow = Duration::ms(1);
  const Duration fast = Duration::us(100);
  CHECK(arrival(network, 0, 2, {}, random) == Instant() + slow + fast * 2 + Duration::ms(40));
  CHECK(arrival(network, 2, 1, {}, random) == Instant() + fast + slow + Duration::ms(30));
}

TEST_CASE("a queue between sites holds what the rate fills in a round trip, and drops the rest") {
  plan::Network description = sites(2);
  connect(description, 0, 1, 80 * kMbit, 80 * kMbit, Duration::ms(20));
  SiteNetwork network({{{}, description}}, {.least_bytes = 20'000});
  lab::Rng random(1);
  std::size_t arrived = 0;
  while (arrival(network, 0, 1, {}, random) != Instant::never()) ++arrived;
  CHECK(arrived == 200);  // the queue has 20 ms of 80 Mbit/s, which is 200 kB
  CHECK(network.counters(0).queue_drops == 1);
  network.heal();
  CHECK(arrival(network, 0, 1, {}, random) != Instant::never());
}

TEST_CASE("links lose what their description says, each for itself") {
  plan::Network description = chain(80);
  for (plan::Link& link : description.links) link.loss_ppm = 100'000;
  SiteNetwork network({{{}, description}}, kRoom);
  lab::Rng random(1);
  std::size_t arrived = 0;
  constexpr std::size_t kPackets = 10'000;
  Instant now;
  for (std::size_t n = 0; n < kPackets; ++n) {
    now = now + Duration::ms(1);
    if (arrival(network, 0, 2, now, random) != Instant::never()) ++arrived;
  }
  CHECK(static_cast<double>(arrived) / kPackets == Approx(0.81).margin(0.02));
}

TEST_CASE("a redraw changes rates and ways from its time on") {
  plan::Network triangle = sites(3);
  connect(triangle, 0, 1, 80 * kMbit, 80 * kMbit);
  connect(triangle, 1, 2, 80 * kMbit, 80 * kMbit);
  connect(triangle, 0, 2, 8 * kMbit, 8 * kMbit);
  plan::Network later = triangle;
  later.links[4].bits_per_s = 0;  // the link from 0 to 2
  SiteNetwork network({{{}, triangle}, {Instant() + Duration::seconds(1), later}}, kRoom);
  lab::Rng random(1);
  CHECK(arrival(network, 0, 2, {}, random) == Instant() + Duration::ms(1));
  const Instant after = Instant() + Duration::seconds(1);
  CHECK(arrival(network, 0, 2, after, random) == after + Duration::us(200));
  CHECK(network.network().links[4].bits_per_s == 0);
  // A datagram that was on its way when the link failed is lost.
  CHECK_FALSE(network.pass(4, kPayload, after, random).has_value());
}

TEST_CASE("a node that no link reaches gets nothing") {
  plan::Network description = chain(80);
  description.links[2].bits_per_s = 0;  // the link from 1 to 2
  SiteNetwork network({{{}, description}}, kRoom);
  lab::Rng random(1);
  CHECK(arrival(network, 0, 2, {}, random) == Instant::never());
  CHECK(arrival(network, 2, 0, {}, random) != Instant::never());
}

TEST_CASE("packets take the ways that planners count on, and in the time that they predict") {
  std::mt19937_64 drawn(3);
  for (int n = 0; n < 20; ++n) {
    const plan::Network description = testing::random_network(drawn, 12, 6);
    SiteNetwork network({{{}, description}}, kRoom);
    plan::Routes routes(description);
    lab::Rng random(1);
    Instant now;
    for (std::uint16_t a = 0; a < 12; ++a) {
      for (std::uint16_t b = 0; b < 12; ++b) {
        if (a == b) continue;
        now = now + Duration::seconds(1);
        const plan::Way& way = routes.between_nodes(a, b);
        const double expected_s = way.rtt_s / 2 + way.s_per_bit * 8000;
        const double took_s = (arrival(network, a, b, now, random) - now).to_seconds();
        CHECK(took_s == Approx(expected_s).margin(1e-6));
      }
    }
  }
}

TEST_CASE("random scenarios on sites have planners' trees, redraws, and networks of every shape") {
  std::size_t planned = 0;
  std::size_t high = 0;
  std::size_t redrawn = 0;
  std::size_t dead = 0;
  std::size_t one_site = 0;
  std::size_t no_links = 0;
  constexpr std::uint64_t kSeeds = 300;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Scenario before = random_scenario(seed);
    Scenario s = before;
    put_on_sites(s);
    REQUIRE(plan::validate(s.plan).ok());
    REQUIRE(s.plan.members.size() == before.plan.members.size());
    for (const SitesAt& sites : s.link.sites) REQUIRE(plan::validate(sites.network).ok());
    const plan::Network& last = s.link.sites.back().network;
    const auto has_relay = [&](const api::Tree& tree) {
      return std::any_of(tree.parent.begin(), tree.parent.end(), [&](api::NodeId parent) {
        return parent != api::kNoNode && parent != tree.root;
      });
    };
    planned += s.plan.trees.size() != before.plan.trees.size() ? 1 : 0;
    high += std::any_of(s.plan.trees.begin(), s.plan.trees.end(), has_relay) ? 1 : 0;
    redrawn += s.link.sites.size() > 1 ? 1 : 0;
    dead += std::any_of(last.links.begin(), last.links.end(),
                        [](const plan::Link& link) { return link.bits_per_s == 0; })
                ? 1
                : 0;
    one_site += last.sites.size() == 1 ? 1 : 0;
    no_links += last.sites.size() > 1 && last.links.empty() ? 1 : 0;
  }
  CHECK(planned > kSeeds / 3);
  CHECK(high > kSeeds / 5);
  CHECK(redrawn > kSeeds / 2);
  CHECK(dead > kSeeds / 20);
  CHECK(one_site > kSeeds / 20);
  CHECK(no_links > kSeeds / 20);
}
