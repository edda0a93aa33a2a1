// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The network as configured and measured: how good plans over it are, and how samples that are
// wrong, old or few affect it.
#include <algorithm>
#include <random>
#include <vector>

#include "control/plan/measured.h"
#include "control/plan/planner.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"
#include "tests/support/planned.h"

using namespace gradplane;
using namespace gradplane::plan;
using namespace gradplane::testing;
using protocol::LinkSample;

namespace {

constexpr std::uint8_t kSure = protocol::kFullConfidence;

LinkSample sample_of(std::size_t from, std::size_t to, std::uint64_t bits_per_s,
                     bool is_lower_bound = false, std::uint8_t confidence = kSure) {
  LinkSample sample;
  sample.from = static_cast<api::NodeId>(from);
  sample.to = static_cast<api::NodeId>(to);
  sample.bits_per_s = bits_per_s;
  sample.is_lower_bound = is_lower_bound;
  sample.rate_confidence = confidence;
  return sample;
}

/// Receivers' samples of every link, which are wrong by up to `noise_percent`.
std::vector<LinkSample> samples_of(const Network& network, std::mt19937_64& random,
                                   std::uint64_t noise_percent) {
  std::vector<LinkSample> samples;
  for (const Link& link : network.links) {
    const std::uint64_t percent = uniform(random, 100 - noise_percent, 100 + noise_percent);
    LinkSample& sample =
        samples.emplace_back(sample_of(link.from, link.to, link.bits_per_s * percent / 100));
    sample.rtt_us = static_cast<std::uint32_t>(link.rtt.count_ns() / 1000);
    sample.loss_ppm = link.loss_ppm;
    sample.loss_confidence = kSure;
  }
  return samples;
}

Network fold(const std::optional<Network>& configured, const std::vector<LinkSample>& samples,
             std::size_t nodes = 0) {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < nodes; ++n) names.push_back(std::to_string(n));
  const std::optional<Network> measured = measured_network(configured, names, samples);
  REQUIRE(measured);
  const Status good = validate(*measured);
  INFO((good.ok() ? "" : good.error().message));
  REQUIRE(good.ok());
  return *measured;
}

/// The time of the plan over `believed` in the true network, relative to that of the plan over the
/// true network.
double regret(const Network& truth, const Network& believed) {
  const PlanRequest request = request_over(truth, PlanKind::kPacked);
  const PlannedTime best = planned(request);
  const PlannedTime made = planned(request_over(believed, PlanKind::kPacked));
  const Result<Prediction> taken = predict(truth, made.plan, request.traffic);
  REQUIRE(taken.ok());
  return taken.value().time.to_seconds() / best.prediction->time.to_seconds();
}

struct Regrets {
  double sum = 0;
  double worst = 0;
  std::size_t count = 0;
  void add(double one) {
    sum += one;
    worst = std::max(worst, one);
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
};

std::uint64_t rate_between(const Network& network, std::size_t from, std::size_t to) {
  for (const Link& link : network.links)
    if (link.from == from && link.to == to) return link.bits_per_s;
  FAIL("no such link");
  return 0;
}

/// Three sites in a row, with 100 Mbit/s in each direction.
Network chain() {
  Network network = sites(3);
  connect(network, 0, 1, 100 * kMbit, 100 * kMbit);
  connect(network, 1, 2, 100 * kMbit, 100 * kMbit);
  return network;
}

}  // namespace

TEST_CASE("plans over what was measured are nearly as good as plans over the truth") {
  std::mt19937_64 random(11);
  Regrets measured;
  Regrets stale;
  for (int draw = 0; draw < 40; ++draw) {
    const Network configured = netstorm_network(random);
    const Network truth = netstorm_network(random);
    measured.add(regret(truth, fold(configured, samples_of(truth, random, 10))));
    CHECK(regret(truth, fold(configured, samples_of(truth, random, 0))) < 1.001);
    stale.add(regret(truth, configured));
  }
  INFO("measured " << measured.mean() << ", worst " << measured.worst << "; configured before "
                   << stale.mean());
  // If a link is believed 10 % faster than it is, a plan takes 11 % longer than predicted.
  CHECK(measured.mean() < 1.09);
  CHECK(measured.worst < 1.2);
  CHECK(stale.mean() > 1.5);  // otherwise this test would show nothing
}

TEST_CASE("the same over sparse networks with round trips, and with nothing configured") {
  std::mt19937_64 random(12);
  Regrets sparse;
  Regrets mesh;
  for (int draw = 0; draw < 10; ++draw) {
    Network truth = random_network(random, 25, 8);
    Network configured = truth;
    for (Link& link : configured.links) {
      link.bits_per_s = uniform(random, 20, 155) * kMbit;
      link.rtt = {};
    }
    sparse.add(regret(truth, fold(configured, samples_of(truth, random, 10))));
    const Network full = random_network(random, 8, 1);
    mesh.add(regret(full, fold(std::nullopt, samples_of(full, random, 10), 8)));
  }
  INFO("sparse " << sparse.mean() << ", worst " << sparse.worst << "; mesh " << mesh.mean()
                 << ", worst " << mesh.worst);
  CHECK(sparse.mean() < 1.09);
  CHECK(sparse.worst < 1.25);
  CHECK(mesh.mean() < 1.13);
  CHECK(mesh.worst < 1.25);
}

TEST_CASE("a sample counts as much as its confidence and its age say") {
  const Network network = chain();
  CHECK(rate_between(fold(network, {sample_of(0, 1, 25 * kMbit)}), 0, 1) == 25 * kMbit);
  CHECK(rate_between(fold(network, {sample_of(0, 1, 25 * kMbit)}), 1, 0) == 100 * kMbit);
  // The geometric mean of 100 and 25.
  const LinkSample unsure = sample_of(0, 1, 25 * kMbit, false, 50);
  CHECK(rate_between(fold(network, {unsure}), 0, 1) / kMbit == 50);
  LinkSample old = sample_of(0, 1, 25 * kMbit);
  const auto ms = [](Duration age) {
    return static_cast<std::uint32_t>(age.count_ns() / Duration::ms(1).count_ns());
  };
  old.rate_age_ms = ms(kMeasuredFreshFor);
  CHECK(rate_between(fold(network, {old}), 0, 1) == 25 * kMbit);
  old.rate_age_ms = ms((kMeasuredFreshFor + kMeasuredForgottenAfter) / 2);
  CHECK(rate_between(fold(network, {old}), 0, 1) / kMbit == 50);
  old.rate_age_ms = ms(kMeasuredForgottenAfter);
  CHECK(rate_between(fold(network, {old}), 0, 1) == 100 * kMbit);
}

TEST_CASE("a lower bound only raises") {
  const Network network = chain();
  CHECK(rate_between(fold(network, {sample_of(0, 1, 25 * kMbit, true)}), 0, 1) == 100 * kMbit);
  CHECK(rate_between(fold(network, {sample_of(0, 1, 250 * kMbit, true)}), 0, 1) == 250 * kMbit);
  // Also above an estimate from a train.
  CHECK(
      rate_between(fold(network, {sample_of(0, 1, 25 * kMbit), sample_of(0, 1, 40 * kMbit, true)}),
                   0, 1) == 40 * kMbit);
}

TEST_CASE("a sample over several links raises each, and lowers the most doubtful") {
  const Network network = chain();
  const Network raised = fold(network, {sample_of(0, 2, 300 * kMbit)});
  CHECK(rate_between(raised, 0, 1) == 300 * kMbit);
  CHECK(rate_between(raised, 1, 2) == 300 * kMbit);
  const Network lowered = fold(network, {sample_of(0, 2, 30 * kMbit), sample_of(0, 1, 90 * kMbit)});
  CHECK(rate_between(lowered, 0, 1) == 90 * kMbit);
  CHECK(rate_between(lowered, 1, 2) == 30 * kMbit);
  // Both links are known with more confidence than this sample has.
  const Network known = fold(network, {sample_of(0, 2, 30 * kMbit, false, 50),
                                       sample_of(0, 1, 90 * kMbit), sample_of(1, 2, 90 * kMbit)});
  CHECK(rate_between(known, 1, 2) == 90 * kMbit);
}

TEST_CASE("shares of a link or of an access say nothing of what lies before") {
  Network network = chain();
  for (int leaf = 3; leaf < 6; ++leaf) {
    network.sites.push_back({});
    network.nodes.push_back({static_cast<SiteId>(leaf), {}, {}});
    connect(network, static_cast<std::size_t>(leaf), 1, 100 * kMbit, 100 * kMbit);
  }
  // Four senders share the link from 1 to 2.
  std::vector<LinkSample> shares;
  for (const std::size_t from : {0, 3, 4, 5}) shares.push_back(sample_of(from, 2, 25 * kMbit));
  for (const Link& link : fold(network, shares).links) CHECK(link.bits_per_s == 100 * kMbit);
  // There are accesses of 100 Mbit/s and no links. Equal samples give no reason to add links.
  const Network accesses =
      network_of_accesses(std::vector<Access>(5, {100 * kMbit, 100 * kMbit, {}, 0}));
  std::vector<LinkSample> incast;
  for (std::size_t from = 1; from < 5; ++from) incast.push_back(sample_of(from, 0, 25 * kMbit));
  CHECK(fold(accesses, incast).links.empty());
  // One slow pair gives a reason.
  incast.push_back(sample_of(1, 2, 10 * kMbit));
  const Network mesh = fold(accesses, incast);
  CHECK(mesh.links.size() == 20);
  CHECK(rate_between(mesh, 1, 2) == 10 * kMbit);
  CHECK(rate_between(mesh, 1, 0) == 100 * kMbit);
  CHECK(rate_between(mesh, 2, 1) == 100 * kMbit);
}

TEST_CASE("round trips and losses replace those of the file, without the accesses' part") {
  Network network = chain();
  network.nodes[0].access.rtt = Duration::ms(2);
  network.links[0].rtt = Duration::ms(50);
  LinkSample sample = sample_of(0, 1, 0, false, 0);
  sample.rtt_us = 12000;
  sample.loss_ppm = 10000;
  sample.loss_confidence = 50;
  const Network measured = fold(network, {sample});
  CHECK(measured.links[0].rtt == Duration::ms(10));
  CHECK(measured.links[0].loss_ppm == 5000);
  CHECK(measured.links[0].bits_per_s == 100 * kMbit);
  // A pair with a long round trip turns accesses into links.
  const Network accesses =
      network_of_accesses(std::vector<Access>(3, {100 * kMbit, 100 * kMbit, {}, 0}));
  sample.bits_per_s = 50 * kMbit;
  sample.rate_confidence = kSure;
  sample.is_lower_bound = true;
  const Network mesh = fold(accesses, {sample});
  REQUIRE(mesh.links.size() == 6);
  CHECK(mesh.links[0].rtt == Duration::ms(12));
}

TEST_CASE("a link that lies is bounded, and a dead one that answers lives") {
  Network network = chain();
  const std::uint64_t most = kMaxBitsPerSecond;
  CHECK(rate_between(fold(network, {sample_of(0, 1, most)}), 0, 1) == 1000 * kMbit);
  CHECK(rate_between(fold(network, {sample_of(0, 1, UINT64_MAX, true)}), 0, 1) == 1000 * kMbit);
  CHECK(rate_between(fold(network, {sample_of(0, 1, 1)}), 0, 1) == kLeastMeasuredBitsPerSecond);
  CHECK(rate_between(fold(network, {sample_of(0, 1, 0)}), 0, 1) == 100 * kMbit);
  network.links[0].bits_per_s = 0;
  CHECK(rate_between(fold(network, {sample_of(0, 1, 70 * kMbit)}), 0, 1) == 70 * kMbit);
  CHECK(rate_between(fold(network, {}), 0, 1) == 0);
}

TEST_CASE("whatever is sampled, the network is valid") {
  std::mt19937_64 random(13);
  std::vector<std::string> names(6, "n");
  for (int turn = 0; turn < 500; ++turn) {
    std::vector<LinkSample> samples;
    for (std::uint64_t count = random() % 12; count > 0; --count) {
      LinkSample& sample = samples.emplace_back();
      sample.from = static_cast<std::uint16_t>(random() % 8);
      sample.to = static_cast<std::uint16_t>(random() % 8);
      sample.bits_per_s = random() >> (random() % 64);
      sample.is_lower_bound = random() % 2 == 0;
      sample.rate_confidence = static_cast<std::uint8_t>(random() % 101);
      sample.rate_age_ms = static_cast<std::uint32_t>(random() % 400000);
      sample.rtt_us = static_cast<std::uint32_t>(random() % (protocol::kMaxLinkRttUs + 1));
      sample.loss_ppm = static_cast<std::uint32_t>(random() % (protocol::kMaxLinkLossPpm + 1));
      sample.loss_confidence = static_cast<std::uint8_t>(random() % 101);
    }
    std::optional<Network> configured;
    if (turn % 3 == 1) configured = random_network(random, 6, 3);
    if (turn % 3 == 2) {
      configured = sites(6);
      for (Node& node : configured->nodes) node.site = node.site / 2;
      if (turn % 2 == 0) configured->nodes[5].site = kNoSite;
    }
    const std::optional<Network> measured = measured_network(configured, names, samples);
    REQUIRE((measured || !configured));
    if (measured) REQUIRE(validate(*measured).ok());
  }
}

TEST_CASE("one site, no samples and too many nodes") {
  CHECK_FALSE(measured_network(std::nullopt, {"a", "b"}, {}));
  CHECK_FALSE(measured_network(std::nullopt, {}, {}));
  Network one = sites(1);
  one.nodes.push_back(one.nodes[0]);
  CHECK(fold(one, {sample_of(0, 1, kMbit)}).links.empty());
  const std::size_t many = kMaxMeshSites + 1;
  const Network accesses = fold(std::nullopt, {sample_of(0, 1, 50 * kMbit)}, many);
  CHECK(accesses.links.empty());
  CHECK(accesses.nodes[0].access.up_bits_per_s == 50 * kMbit);
  CHECK(accesses.nodes[7].access.down_bits_per_s == 50 * kMbit);
}
