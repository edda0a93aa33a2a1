// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/predict.h"

#include <string>
#include <vector>

#include "control/plan/planner.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"

using namespace gradplane;
using namespace gradplane::plan;
using namespace gradplane::testing;

namespace {

/// 100 Mbit of gradients: 8928 blocks of 1400 bytes and a shorter last one, without overhead.
constexpr Traffic kTraffic = {.bytes = 12'500'000, .block_bytes = 1400, .overhead_bytes = 0};
constexpr double kBits = 8929 * 1400 * 8.0;
constexpr double kBlockBits = 1400 * 8.0;

/// A plan of these trees. All nodes have a rank.
api::Plan plan_of(const std::vector<api::Tree>& trees) {
  api::Plan plan;
  for (std::size_t n = 0; n < trees.front().parent.size(); ++n)
    plan.members.push_back({static_cast<api::NodeId>(n), {static_cast<std::uint16_t>(n)}});
  plan.trees = trees;
  return plan;
}

constexpr api::NodeId kNone = api::kNoNode;

Prediction predicted(const Network& network, const api::Plan& plan,
                     const Traffic& traffic = kTraffic) {
  Result<Prediction> prediction = predict(network, plan, traffic);
  INFO((prediction.ok() ? "" : prediction.error().message));
  REQUIRE(prediction.ok());
  return std::move(prediction.value());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a star takes as long as its root receives or sends everything") {
  Network network = sites(4);
  for (Node& node : network.nodes) {
    node.access.up_bits_per_s = 100 * kMbit;
    node.access.down_bits_per_s = 200 * kMbit;
  }
  const Prediction star = predicted(network, plan_of({{1, 2, {2, 2, kNone, 2}}}));
  CHECK(star.transfer.to_seconds() == Approx(3 * kBits / 100e6));
  CHECK(star.bottleneck == "up of node 2");
  network.nodes[2].name = "hub";
  CHECK(predicted(network, plan_of({{1, 2, {2, 2, kNone, 2}}})).bottleneck == "up of node hub");
  CHECK(star.height == 1);
  // A block passes two accesses on its way up, and two on its way down.
  CHECK(star.latency.to_seconds() == Approx(2 * kBlockBits * (1 / 100e6 + 1 / 200e6)));
  CHECK(star.time == star.transfer + star.latency);
}

TEST_CASE("trees share the blocks by their weights") {
  Network network = sites(3);
  for (Node& node : network.nodes)
    node.access.up_bits_per_s = node.access.down_bits_per_s = 100 * kMbit;
  const api::Plan plan = plan_of({{3, 0, {kNone, 0, 0}}, {1, 1, {1, kNone, 1}}});
  const Prediction prediction = predicted(network, plan);
  // Three quarters of the blocks pass the access of node 0 twice, and the rest once.
  CHECK(prediction.transfer.to_seconds() == Approx((2 * 0.75 + 0.25) * kBits / 100e6));
  CHECK(has(prediction.bottleneck, "of node 0"));
}

TEST_CASE("an edge loads every link on its way, and the access of both sites") {
  Network network = sites(3);
  connect(network, 0, 1, 100 * kMbit, 50 * kMbit);
  connect(network, 1, 2, 80 * kMbit, 40 * kMbit);
  const api::Plan star = plan_of({{1, 0, {kNone, 0, 0}}});
  const Prediction through = predicted(network, star);
  // Pushes of nodes 1 and 2 share the link from 1 to 0.
  CHECK(through.transfer.to_seconds() == Approx(2 * kBits / 50e6));
  CHECK(through.bottleneck == "link site 1 > site 0");
  const Prediction summed = predicted(network, plan_of({{1, 0, {kNone, 0, 1}}}));
  CHECK(summed.transfer.to_seconds() == Approx(kBits / 40e6));
  CHECK(summed.height == 2);
  network.sites[0].access.down_bits_per_s = 10 * kMbit;
  network.sites[0].name = "hub";
  CHECK(predicted(network, star).transfer.to_seconds() == Approx(2 * kBits / 10e6));
  CHECK(predicted(network, star).bottleneck == "down of hub");
  // Traffic that a site only forwards does not pass its access.
  network.sites[0].access = {};
  network.sites[1].access.up_bits_per_s = 20 * kMbit;
  CHECK(predicted(network, star).transfer.to_seconds() == Approx(kBits / 20e6));
}

TEST_CASE("routing takes the fewest links, or the fastest way") {
  Network network = sites(3);
  connect(network, 0, 2, 10 * kMbit, 10 * kMbit);
  connect(network, 0, 1, 100 * kMbit, 100 * kMbit);
  connect(network, 1, 2, 100 * kMbit, 100 * kMbit);
  const api::Plan plan = plan_of({{1, 0, {kNone, 0, 0}}});
  CHECK(predicted(network, plan).transfer.to_seconds() == Approx(kBits / 10e6));
  network.routing = Routing::kFastest;
  CHECK(predicted(network, plan).transfer.to_seconds() == Approx(2 * kBits / 100e6));
}

TEST_CASE("round trips add up over the height of a tree") {
  Network network = sites(3);
  connect(network, 0, 1, 100 * kMbit, 100 * kMbit, Duration::ms(40));
  connect(network, 1, 2, 100 * kMbit, 100 * kMbit, Duration::ms(10));
  network.nodes[2].access.rtt = Duration::ms(6);
  const Prediction chain = predicted(network, plan_of({{1, 0, {kNone, 0, 1}}}));
  CHECK(chain.latency.to_seconds() == Approx(0.056 + 4 * kBlockBits / 100e6));
  CHECK(chain.transfer.to_seconds() == Approx(kBits / 100e6));
  const Prediction centred = predicted(network, plan_of({{1, 1, {1, kNone, 1}}}));
  CHECK(centred.latency.to_seconds() == Approx(0.040 + 2 * kBlockBits / 100e6));
}

TEST_CASE("loss sends blocks again and repairs the last ones") {
  Network network = sites(2);
  connect(network, 0, 1, 100 * kMbit, 100 * kMbit, Duration::ms(80));
  const api::Plan plan = plan_of({{1, 0, {kNone, 0}}});
  const Prediction clean = predicted(network, plan);
  for (Link& link : network.links) link.loss_ppm = 10000;
  const Prediction lossy = predicted(network, plan);
  CHECK(lossy.transfer.to_seconds() == Approx(clean.transfer.to_seconds() / 0.99));
  // 714 blocks are in flight in a round trip. Seven of them are lost at first, and few of those
  // again. Each attempt takes 1.25 round trips, in both directions.
  const double attempts = (lossy.latency - clean.latency).to_seconds() / (2 * 0.080 * 1.25);
  CHECK(attempts > 1.05);
  CHECK(attempts < 1.08);
}

TEST_CASE("the rounds that may be open bound what is on its way") {
  Network network = sites(2);
  connect(network, 0, 1, 10000 * kMbit, 10000 * kMbit, Duration::ms(100));
  Traffic traffic = kTraffic;
  traffic.window_bytes = traffic.bytes / 5;
  const Prediction prediction = predicted(network, plan_of({{1, 0, {kNone, 0}}}), traffic);
  CHECK(prediction.transfer.to_seconds() == Approx(0.5).epsilon(0.01));
  CHECK(prediction.bottleneck == "open rounds");
}

TEST_CASE("the overhead of blocks counts") {
  Network network = sites(2);
  connect(network, 0, 1, 100 * kMbit, 100 * kMbit);
  Traffic traffic = kTraffic;
  traffic.overhead_bytes = 140;
  CHECK(predicted(network, plan_of({{1, 0, {kNone, 0}}}), traffic).transfer.to_seconds() ==
        Approx(1.1 * kBits / 100e6));
}

TEST_CASE("a plan over a dead link is no plan") {
  Network network = sites(2);
  connect(network, 0, 1, 100 * kMbit, 0);
  const auto refused = predict(network, plan_of({{1, 0, {kNone, 0}}}), kTraffic);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message == "node 1 and node 0 do not reach each other over the network");
  CHECK_FALSE(predict(network, plan_of({{1, 0, {kNone, 0, 0}}}), kTraffic).ok());  // unknown node
}

TEST_CASE("nothing that limits takes no time") {
  const Prediction prediction = predicted(sites(3), plan_of({{1, 0, {kNone, 0, 0}}}));
  CHECK(prediction.time == Duration());
  CHECK(prediction.bottleneck == "nothing");
}

TEST_CASE("a network is checked before it is used") {
  const auto error_of = [](auto change) {
    Network network = sites(2);
    connect(network, 0, 1, 100 * kMbit, 100 * kMbit);
    change(network);
    const Status status = validate(network);
    return status.ok() ? std::string() : status.error().message;
  };
  CHECK(error_of([](Network&) {}).empty());
  CHECK(has(error_of([](Network& n) { n.sites.clear(); }), "0 sites"));
  CHECK(
      has(error_of([](Network& n) { n.sites.resize(kMaxSites + 1); }), "sites; it may have 1 to"));
  CHECK(has(error_of([](Network& n) { n.nodes.resize(kMaxNodes + 1); }), "nodes; it may"));
  CHECK(has(error_of([](Network& n) { n.nodes[1].site = 2; }), "at a site that is not there"));
  CHECK(error_of([](Network& n) { n.nodes[1].site = kNoSite; }).empty());
  CHECK(has(error_of([](Network& n) { n.links.resize(kMaxLinks + 1, n.links[0]); }), "links; it"));
  CHECK(has(error_of([](Network& n) { n.links.push_back(n.links[0]); }), "two links"));
  CHECK(has(error_of([](Network& n) { n.links[0].to = 0; }), "with itself"));
  CHECK(has(error_of([](Network& n) { n.links[0].to = 2; }), "no site"));
  CHECK(
      has(error_of([](Network& n) { n.links[0].bits_per_s = kMaxBitsPerSecond + 1; }), "10 Tbit"));
  CHECK(has(error_of([](Network& n) { n.links[0].bits_per_s = kUnlimited; }), "10 Tbit"));
  CHECK(has(error_of([](Network& n) { n.links[0].rtt = Duration::ms(-1); }), "round trip"));
  CHECK(
      has(error_of([](Network& n) { n.links[0].rtt = kMaxRtt + Duration::ns(1); }), "round trip"));
  CHECK(has(error_of([](Network& n) { n.links[0].loss_ppm = kMaxLossPpm + 1; }), "loses"));
  CHECK(has(error_of([](Network& n) { n.sites[0].access.down_bits_per_s = kUnlimited - 1; }),
            "10 Tbit"));
  CHECK(has(error_of([](Network& n) { n.nodes[0].access.loss_ppm = 1000000; }), "node 0 loses"));
}
