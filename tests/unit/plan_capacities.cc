// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The accesses that planners of selections assume, from samples of pairs and from the file.
#include "control/plan/capacities.h"

#include <cmath>
#include <vector>

#include "control/plan/measured.h"
#include "tests/property/exchange_lab.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::plan;
using gradplane::testing::ExchangeLab;

namespace {

constexpr std::uint64_t kMbit = 1'000'000;
constexpr std::uint32_t kThird = 300'000;
constexpr std::uint32_t kFreshness = 4;
constexpr std::size_t kNodes = 8;

RankCapacity access(std::uint64_t up_mbit, std::uint64_t down_mbit) {
  return {up_mbit * kMbit, down_mbit * kMbit};
}

/// Eight accesses of 100 Mbit/s, except for that of `node`, after exchanges between all of them.
ExchangeLab lab_with(std::size_t node, RankCapacity other) {
  ExchangeLab::Accesses accesses(kNodes, access(100, 100));
  ExchangeLab lab(accesses, kThird, kFreshness);
  lab.begin();
  lab.set_access(node, other);
  std::mt19937_64 random(1);
  lab.exchange(random, 0);
  return lab;
}

Capacities capacities_of(ExchangeLab& lab) {
  return plan::capacities_of(lab.request().members, lab.request());
}

double up(const Capacities& capacities, std::size_t member) {
  return static_cast<double>(capacities.members[member].up_bits_per_s) / 1e6;
}
double down(const Capacities& capacities, std::size_t member) {
  return static_cast<double>(capacities.members[member].down_bits_per_s) / 1e6;
}

}  // namespace

TEST_CASE("shares of an access that is full add up to its rate") {
  ExchangeLab lab = lab_with(3, access(100, 20));
  const Capacities capacities = capacities_of(lab);
  CHECK(capacities.is_known);
  CHECK(capacities.is_measured);
  CHECK(down(capacities, 3) == Approx(20).epsilon(0.05));
  for (std::size_t n = 0; n < kNodes; ++n) {
    CAPTURE(n);
    if (n != 3) CHECK(down(capacities, n) > 70);
    CHECK(up(capacities, n) > 45);
  }
}

TEST_CASE("an uplink is told from a downlink") {
  ExchangeLab lab = lab_with(5, access(10, 100));
  const Capacities capacities = capacities_of(lab);
  CHECK(up(capacities, 5) == Approx(10).epsilon(0.05));
  CHECK(down(capacities, 5) > 70);
  for (std::size_t n = 0; n < kNodes; ++n)
    if (n != 5) CHECK(up(capacities, n) > 70);
}

TEST_CASE("an access that gets few updates is as fast as its pairs together") {
  // The file says that node 2 is slow, so few updates go there. In fact it is as fast as the
  // others.
  ExchangeLab lab(ExchangeLab::Accesses(kNodes, access(100, 100)), kThird, kFreshness);
  for (api::NodeId n = 0; n < kNodes; ++n)
    lab.request().link_rates.push_back({n, (n == 2 ? 10 : 100) * kMbit});
  lab.begin();
  REQUIRE(lab.received_by(2) < lab.received_by(1));
  std::mt19937_64 random(1);
  lab.exchange(random, 0);
  const Capacities capacities = capacities_of(lab);
  CHECK(down(capacities, 2) > 15);
  CHECK(up(capacities, 2) > 15);
  CHECK(up(capacities, 1) == 100);
}

TEST_CASE("what does not fill an access leaves it as the file has it") {
  ExchangeLab lab = lab_with(3, access(20, 20));
  for (api::NodeId n = 0; n < kNodes; ++n) lab.request().link_rates.push_back({n, 100 * kMbit});
  REQUIRE(down(capacities_of(lab), 3) < 30);
  for (protocol::LinkSample& sample : lab.request().samples) sample.is_lower_bound = true;
  const Capacities capacities = capacities_of(lab);
  for (std::size_t n = 0; n < kNodes; ++n) {
    CHECK(up(capacities, n) == 100);
    CHECK(down(capacities, n) == 100);
  }
}

TEST_CASE("samples that are old or doubtful count less, and none is the file's word") {
  ExchangeLab lab = lab_with(3, access(100, 20));
  for (api::NodeId n = 0; n < kNodes; ++n) lab.request().link_rates.push_back({n, 100 * kMbit});
  lab.request().sampled_for = Duration::seconds(3600);
  const auto after = [&lab](std::uint32_t age_ms) {
    for (protocol::LinkSample& sample : lab.request().samples) sample.rate_age_ms = age_ms;
    return down(capacities_of(lab), 3);
  };
  CHECK(after(30'000) == Approx(20).epsilon(0.05));
  // Under the plan in force no pair has had another turn, so samples do not age.
  CHECK(after(3'000'000) == after(30'000));
  CHECK(capacities_of(lab).is_measured);
  lab.request().sampled_under.reset();
  REQUIRE(after(30'000) < 50);
  // Each of the five pairs counts little, and together they count more.
  CHECK(after(290'000) > 22);
  CHECK(after(290'000) < 100);
  CHECK(after(300'000) == 100);
  for (protocol::LinkSample& sample : lab.request().samples) sample.rate_confidence = 10;
  CHECK(after(0) > 22);
}

TEST_CASE("accesses that were measured are not the file's word") {
  ExchangeLab lab(ExchangeLab::Accesses(kNodes, access(100, 100)), kThird, kFreshness);
  lab.begin();
  std::vector<plan::Access> shown(kNodes, {10 * kMbit, 10 * kMbit, {}, 0});
  lab.request().network = plan::network_of_accesses(shown);
  CHECK(capacities_of(lab).is_known);
  lab.request().network_is_of_file = false;
  CHECK_FALSE(capacities_of(lab).is_known);
}

TEST_CASE("samples from before the plan in force count nothing") {
  ExchangeLab lab = lab_with(3, access(100, 20));
  for (protocol::LinkSample& sample : lab.request().samples) sample.rate_age_ms = 5000;
  lab.request().sampled_for = Duration::ms(4999);
  const Capacities early = capacities_of(lab);
  CHECK_FALSE(early.is_known);
  CHECK_FALSE(early.is_measured);
  CHECK(down(early, 3) == down(early, 4));
  lab.request().sampled_for = Duration::ms(5000);
  CHECK(capacities_of(lab).is_measured);
}

TEST_CASE("a plan is compared with others only when most of its pairs have been measured") {
  ExchangeLab lab = lab_with(3, access(100, 20));
  auto& samples = lab.request().samples;
  samples.resize(samples.size() * 3 / 5);
  CHECK_FALSE(capacities_of(lab).is_measured);
  CHECK_FALSE(lab.redraw());
}

TEST_CASE("pairs that nobody has measured count as the others of an access") {
  ExchangeLab lab = lab_with(3, access(100, 20));
  std::erase_if(lab.request().samples, [](const auto& sample) { return sample.from == 1; });
  CHECK(down(capacities_of(lab), 3) == Approx(20).epsilon(0.1));
}

TEST_CASE("without a file, rates that are nearly the same are the same") {
  ExchangeLab lab(ExchangeLab::Accesses(kNodes, access(100, 100)), kThird, kFreshness);
  lab.begin();
  std::mt19937_64 random(7);
  lab.exchange(random, 0.15);
  const Capacities capacities = capacities_of(lab);
  for (std::size_t n = 1; n < kNodes; ++n) {
    CHECK(up(capacities, n) == up(capacities, 0));
    CHECK(down(capacities, n) == down(capacities, 0));
  }
  CHECK_FALSE(lab.redraw());
}

TEST_CASE(
    "the file's accesses count in both directions, and where nothing is known all are alike") {
  ExchangeLab lab(ExchangeLab::Accesses(3, access(1, 1)), kThird, kFreshness);
  Capacities capacities = capacities_of(lab);
  CHECK_FALSE(capacities.is_known);
  CHECK(up(capacities, 0) == down(capacities, 2));
  CHECK_FALSE(predict_exchanges(make_plan(lab.request()).value(), lab.request()));
  lab.request().network = network_of_accesses({{50 * kMbit, 70 * kMbit, {}, 0}, {}, {}});
  lab.request().network->sites[1].access.down_bits_per_s = 30 * kMbit;
  lab.request().link_rates = {{0, 60 * kMbit}};
  capacities = capacities_of(lab);
  CHECK(capacities.is_known);
  CHECK(up(capacities, 0) == 50);
  CHECK(down(capacities, 0) == 60);
  CHECK(down(capacities, 1) == 30);
  CHECK(down(capacities, 2) == 30);  // the rate of the slowest that has one
}

TEST_CASE("a single pair that is faster than the file's rate shows that the file is wrong") {
  ExchangeLab lab = lab_with(3, access(100, 100));
  for (api::NodeId n = 0; n < kNodes; ++n) lab.request().link_rates.push_back({n, 10 * kMbit});
  const Capacities capacities = capacities_of(lab);
  for (std::size_t n = 0; n < kNodes; ++n) {
    CHECK(up(capacities, n) > 20);
    CHECK(up(capacities, n) <= 100);
  }
}

TEST_CASE("samples of others than members, and absurd ones, do no harm") {
  ExchangeLab lab = lab_with(3, access(100, 20));
  const Capacities before = capacities_of(lab);
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{100, 3}, {3, 3}, {60000, 1}}) {
    protocol::LinkSample& sample = lab.request().samples.emplace_back();
    sample.from = static_cast<api::NodeId>(from);
    sample.to = static_cast<api::NodeId>(to);
    sample.bits_per_s = 1;
    sample.rate_confidence = protocol::kFullConfidence;
  }
  const Capacities after = capacities_of(lab);
  for (std::size_t n = 0; n < kNodes; ++n) {
    CHECK(up(after, n) == up(before, n));
    CHECK(down(after, n) == down(before, n));
  }
  for (protocol::LinkSample& sample : lab.request().samples) sample.bits_per_s = 1;
  CHECK(down(capacities_of(lab), 3) * 1e6 >= kLeastMeasuredBitsPerSecond);
  CHECK(make_plan(lab.request()).ok());
}

TEST_CASE("receivers at random, and plans in which all receive all, do not follow the network") {
  SelectionsWanted wanted{.receivers_ppm = kThird, .freshness = 1};
  CHECK(selections_follow_network(wanted));
  wanted.choice = SelectionsWanted::Choice::kRandom;
  CHECK_FALSE(selections_follow_network(wanted));
  wanted = {.receivers_ppm = kThird, .freshness = 0};
  CHECK_FALSE(selections_follow_network(wanted));
}

TEST_CASE("the time of an exchange is that of its slowest link, in the mean over the selections") {
  ExchangeLab lab(ExchangeLab::Accesses(3, access(1, 1)), kThird, 1);
  PlanRequest& request = lab.request();
  request.link_rates = {{0, 8 * kMbit}, {1, 8 * kMbit}, {2, 4 * kMbit}};
  request.traffic = {.bytes = 1'000'000, .block_bytes = 1000, .overhead_bytes = 100};
  api::Plan plan = make_plan(request).value();
  // In step 1 node 2 receives two updates of 1.1 MB at 4 Mbit/s. In step 2 node 0 sends two at 8
  // Mbit/s.
  plan.selections[0].receivers = {{2}, {2}, {}};
  plan.selections[1].receivers = {{1, 2}, {0}, {}};
  const auto predicted = predict_exchanges(plan, request);
  REQUIRE(predicted);
  CHECK(predicted->time.to_seconds() == Approx((4.4 + 2.2) / 2).epsilon(1e-4));
  CHECK(predicted->bottleneck == "the link to node 2");
  CHECK_FALSE(predicted->is_measured);
  request.selections->replication = Replication::kNetwork;
  CHECK(predict_exchanges(plan, request)->time.to_seconds() ==
        Approx((4.4 + 2.2) / 2).epsilon(1e-4));
  plan.selections[0].receivers = {{1, 2}, {}, {}};
  CHECK(predict_exchanges(plan, request)->time.to_seconds() ==
        Approx((2.2 + 2.2) / 2).epsilon(1e-4));
}
