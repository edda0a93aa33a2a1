// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What engines learn of their links from traffic in virtual time.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "dataplane/awareness/incoming_links.h"
#include "tests/sim/cluster.h"
#include "tests/sim/shared_cluster.h"
#include "tests/support/catch.h"
#include "tests/support/plan_networks.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

/// The estimate of the receiver's engine.
const awareness::LinkEstimate& link_of(const SharedOutcome& outcome, std::uint16_t from,
                                       std::uint16_t to) {
  const awareness::LinkEstimate* link = outcome.links[to].find(from);
  REQUIRE(link != nullptr);
  return *link;
}

SharedScenario scenario_of(std::uint64_t mbit, std::int64_t delay_ms, double loss) {
  SharedScenario s;
  s.link.bits_per_second = mbit * 1'000'000;
  s.link.delay = Duration::ms(delay_ms);
  s.link.queue_bytes = 8 << 20;  // so large that it drops nothing
  s.link.loss = loss;
  s.workers = 1;
  s.paced = false;
  SharedJob job;
  job.compute = Duration::ms(20);
  job.iterations = 10;
  job.buckets = 1;
  job.elements = 200'000;
  s.jobs = {job};
  return s;
}

}  // namespace

TEST_CASE("engines' rounds show the rate, loss and round trip of simulated links") {
  for (const std::uint64_t mbit : {20U, 70U, 155U}) {
    for (const std::int64_t delay_ms : {1, 20, 75}) {
      for (const double loss : {0.0, 0.01}) {
        for (const std::int64_t nap_us : {0, 200}) {
          SharedScenario s = scenario_of(mbit, delay_ms, loss);
          s.nap = Duration::us(nap_us);
          const SharedOutcome outcome = run(s);
          REQUIRE(outcome.failure.empty());
          // The worker is host 1, and its pushes fill its link.
          const auto& link = link_of(outcome, 1, 0);
          const auto rate = link.rate(outcome.end);
          INFO(mbit << " Mbit/s, " << delay_ms << " ms, loss " << loss << ", naps of " << nap_us
                    << " us: " << rate.bits_per_second << ", confidence " << rate.confidence);
          // On a short path the window is less than a train. But it keeps the link busy, so the
          // lower bound is near the rate.
          if (delay_ms >= 20) CHECK_FALSE(rate.is_lower_bound);
          CHECK(static_cast<double>(rate.bits_per_second) ==
                Approx(static_cast<double>(s.link.bits_per_second)).epsilon(0.1));
          CHECK(rate.confidence > 0.2);  // a fresh sample has a weight of a quarter
          const auto lost = link.loss(outcome.end);
          CHECK(std::abs(lost.share - loss) < 0.01);
          const auto rtt = link.round_trip(outcome.end).rtt;
          CHECK(rtt >= s.link.delay * 2);
          CHECK(rtt <= s.link.delay * 2 + Duration::ms(12));  // an ack is about several packets
        }
      }
    }
  }
}

TEST_CASE("engines that pace to their link show a lower bound near it") {
  for (const std::uint64_t mbit : {20U, 155U}) {
    SharedScenario s = scenario_of(mbit, 5, 0);
    s.paced = true;
    const SharedOutcome outcome = run(s);
    REQUIRE(outcome.failure.empty());
    const auto rate = link_of(outcome, 1, 0).rate(outcome.end);
    INFO(mbit << " Mbit/s: " << rate.bits_per_second);
    CHECK(rate.bits_per_second <= s.link.bits_per_second * 103 / 100);
    CHECK(rate.bits_per_second >= s.link.bits_per_second * 85 / 100);
  }
}

TEST_CASE("workers that fill their root's link together do not make it look faster") {
  SharedScenario s = scenario_of(50, 10, 0);
  s.workers = 3;
  const SharedOutcome outcome = run(s);
  REQUIRE(outcome.failure.empty());
  for (const std::uint16_t worker : std::initializer_list<std::uint16_t>{1, 2, 3}) {
    const auto rate = link_of(outcome, worker, 0).rate(outcome.end);
    INFO("worker " << worker << ": " << rate.bits_per_second);
    CHECK(rate.bits_per_second > 0);
    CHECK(rate.bits_per_second <= s.link.bits_per_second * 103 / 100);
  }
}

namespace {

struct LinkAt {
  std::uint64_t mbit = 0;
  std::int64_t rtt_ms = 0;
};

/// A worker and its root on a link that changes at `at`. They know only what their traffic shows.
SharedScenario changing_link(const LinkAt& first, const LinkAt& second, Instant at) {
  SharedScenario s = scenario_of(0, 0, 0);
  s.link.queue_bytes = 256 << 10;
  for (const auto& [from, link] : {std::pair{Instant(), first}, std::pair{at, second}}) {
    plan::Network network = testing::sites(2);
    testing::connect(network, 0, 1, link.mbit * testing::kMbit, link.mbit * testing::kMbit,
                     Duration::ms(link.rtt_ms));
    s.link.sites.push_back({from, network});
  }
  return s;
}

}  // namespace

TEST_CASE("a receiver follows a link that becomes slower, also where nobody fills it") {
  struct Row {
    LinkAt before;
    LinkAt after;
    std::uint32_t rounds;  // at least 26 of them before the change
  };
  // On a slow and short path the window is less than a train. A longer path looks like a queue to
  // the controller, so it does not fill the link for some time.
  for (const Row& row : {Row{{100, 1}, {10, 1}, 42}, Row{{100, 20}, {10, 150}, 35}}) {
    SharedScenario s = changing_link(row.before, row.after, Instant() + Duration::seconds(3));
    s.jobs[0].iterations = row.rounds;
    const SharedOutcome outcome = run(s);
    REQUIRE(outcome.failure.empty());
    const auto rate = link_of(outcome, 1, 0).rate(outcome.end);
    INFO(row.after.mbit << " Mbit/s, " << row.after.rtt_ms << " ms: " << rate.bits_per_second
                        << ", confidence " << rate.confidence << ", end "
                        << (outcome.end - Instant()).to_seconds() << " s; soundings "
                        << outcome.counters.blocks_of_soundings << " of "
                        << outcome.counters.blocks_sent);
    CHECK_FALSE(rate.is_lower_bound);
    CHECK(static_cast<double>(rate.bits_per_second) ==
          Approx(static_cast<double>(row.after.mbit * testing::kMbit)).epsilon(0.1));
    CHECK(outcome.counters.blocks_of_soundings > 0);
    CHECK(outcome.counters.blocks_of_soundings * 50 <= outcome.counters.blocks_sent);
  }
}

namespace {

/// Compares a link's estimates with its rates. Notes when the receiver has seen each rate to within
/// 15 %.
struct Followed {
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::size_t index = 0;  // index of the link in the networks
  std::vector<SitesAt> networks = {};
  std::vector<std::optional<Duration>> seen_after = {};  // by network, from its beginning

  void look(Instant now, const std::vector<const awareness::IncomingLinks*>& links) {
    seen_after.resize(networks.size());
    std::size_t n = 0;
    while (n + 1 < networks.size() && networks[n + 1].at <= now) ++n;
    const awareness::LinkEstimate* link = links[to]->find(from);
    if (seen_after[n] || link == nullptr) return;
    const auto is = static_cast<double>(networks[n].network.links[index].bits_per_s);
    const auto shown = static_cast<double>(link->rate(now).bits_per_second);
    if (shown > 0.85 * is && shown < 1.15 * is) seen_after[n] = now - networks[n].at;
  }
};

/// Three sites. The rounds of the job are as slow as the link from 2 to 0, which always has 10
/// Mbit/s. So the link from 1 to 0 is never full, and no tree uses the link from 1 to 2. Both of
/// these become ten times slower, and fast again, in turn.
SharedScenario starved_links(Followed& followed) {
  SharedScenario s = scenario_of(0, 0, 0);
  s.workers = 2;
  s.link.queue_bytes = 64 << 10;
  for (std::int64_t n = 0; n < 5; ++n) {
    const std::uint64_t rate = n % 2 == 0 ? 100 * testing::kMbit : 20 * testing::kMbit;
    plan::Network network = testing::sites(3);
    testing::connect(network, 0, 1, rate, rate, Duration::ms(2));
    testing::connect(network, 1, 2, rate, rate, Duration::ms(2));
    testing::connect(network, 0, 2, 10 * testing::kMbit, 10 * testing::kMbit, Duration::ms(2));
    s.link.sites.push_back({Instant() + Duration::seconds(18 * n), network});
  }
  followed.networks = s.link.sites;
  s.look = [&followed](Instant now, const auto& links) { followed.look(now, links); };
  SharedJob& job = s.jobs[0];
  job.compute = {};
  job.buckets = 8;
  job.elements = 2048;  // 6 blocks, too few in the queue for a train
  job.iterations = 1600;
  return s;
}

/// Each change of the link must be seen within `limit`. Soundings are at most 2 % of the packets.
SharedOutcome follow_link(const SharedScenario& s, const Followed& followed, Duration limit) {
  SharedOutcome outcome = run(s);
  REQUIRE(outcome.failure.empty());
  const hop::Counters& c = outcome.counters;
  INFO("end " << (outcome.end - Instant()).to_seconds() << " s; soundings " << c.blocks_of_soundings
              << " blocks and " << c.sounding_packets_sent << " packets of " << c.blocks_sent
              << " blocks");
  REQUIRE(outcome.end > followed.networks.back().at + Duration::seconds(10));
  for (const auto& after : followed.seen_after) {
    UNSCOPED_INFO((after ? after->to_seconds() : -1.0) << " s");
    REQUIRE(after);
    CHECK(*after < limit);
  }
  CHECK((c.blocks_of_soundings + c.sounding_packets_sent) * 50 <=
        c.blocks_sent + c.sounding_packets_sent);
  CHECK(c.sounding_packets_sent > 0);
  return outcome;
}

}  // namespace

TEST_CASE("a link of a tree that other links starve is followed within seconds") {
  Followed followed{.from = 1, .to = 0, .index = 1};
  const SharedScenario s = starved_links(followed);
  follow_link(s, followed, Duration::seconds(8));
}

TEST_CASE("a link that no tree uses is followed within seconds") {
  Followed followed{.from = 1, .to = 2, .index = 2};
  SharedScenario s = starved_links(followed);
  s.soundings = {{1, 2}, {2, 1}};
  const SharedOutcome outcome = follow_link(s, followed, Duration::seconds(16));
  const auto rtt = link_of(outcome, 1, 2).round_trip(outcome.end).rtt;
  CHECK(rtt >= Duration::ms(2));
  CHECK(rtt < Duration::ms(10));
}

TEST_CASE("over a link of known rate only a plan that follows the network is sounded") {
  Scenario s;
  s.seed = 1;
  s.link.bits_per_second = 100'000'000;
  s.link.delay = Duration::us(100);
  s.plan = star(4);
  s.block_bytes = kDefaultBlockBytes;
  s.round_bytes = 64 << 10;
  s.in_flight = 4;
  s.rounds.assign(400, {ElementType::kFloat32, (64 << 10) / sizeof(float)});
  const auto packets_of_soundings = [&s] {
    const Outcome outcome = run(s);
    REQUIRE(outcome.failure.empty());
    return outcome.counters.sounding_packets_sent + outcome.counters.blocks_of_soundings;
  };
  CHECK(packets_of_soundings() == 0);
  s.plan.kind = PlanKind::kPacked;
  CHECK(packets_of_soundings() > 0);
}
