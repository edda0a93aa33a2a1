// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What receivers learn of their links from the traffic of whole engines in virtual time.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "dataplane/awareness/link_estimate.h"
#include "tests/sim/shared_cluster.h"
#include "tests/support/catch.h"
#include "tests/support/seen_packet.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

constexpr std::uint32_t kFrameOverheadBytes = 66;  // as the simulated network counts

/// Looks over the shoulders of all hosts of a scenario with one job.
class Observer {
 public:
  explicit Observer(SharedScenario& scenario) : nap_(scenario.nap) {
    scenario.link.taken = [this](std::uint16_t host, std::span<const std::byte> bytes, Instant at,
                                 bool took_all) { take(host, bytes, at, took_all); };
  }
  const awareness::LinkEstimate& link(std::uint16_t from, std::uint16_t to) {
    return links_[{from, to}].estimate;
  }
  Instant now() const { return now_; }

 private:
  struct Link {
    awareness::LinkEstimate estimate;
    awareness::LossMeter losses;
  };

  void take(std::uint16_t host, std::span<const std::byte> bytes, Instant at, bool took_all) {
    const auto packet = testing::see(bytes);
    if (!packet || packet->type == wire::PacketType::kControl) return;
    now_ = at;
    Link& link = links_[{packet->sender, host}];
    link.estimate.on_packet(
        {.sent_us = packet->timestamp_us,
         .wire_bytes = static_cast<std::uint32_t>(bytes.size()) + kFrameOverheadBytes},
        {.at = at, .waited = nap_ + Duration::us(1), .took_all = took_all});
    link.estimate.on_loss(at, link.losses.on_packet(packet->number));
    if (packet->hop.round_trip == 0) return;
    link.estimate.on_round_trip(at, wire::kRoundTripUnit * std::int64_t{packet->hop.round_trip});
  }

  Duration nap_;
  Instant now_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, Link> links_;
};

SharedScenario scenario_of(std::uint64_t mbit, std::int64_t delay_ms, double loss) {
  SharedScenario s;
  s.link.bits_per_second = mbit * 1'000'000;
  s.link.delay = Duration::ms(delay_ms);
  s.link.queue_bytes = 8 << 20;  // nothing is lost there
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
          Observer observer(s);
          REQUIRE(run(s).failure.empty());
          // The worker is host 1, and what it pushes fills its link.
          const auto& link = observer.link(1, 0);
          const auto rate = link.rate(observer.now());
          INFO(mbit << " Mbit/s, " << delay_ms << " ms, loss " << loss << ", naps of " << nap_us
                    << " us: " << rate.bits_per_second << ", confidence " << rate.confidence);
          // The window of a short path is less than a train. It keeps the link busy all the same,
          // so the lower bound is near the rate.
          if (delay_ms >= 20) CHECK_FALSE(rate.is_lower_bound);
          CHECK(static_cast<double>(rate.bits_per_second) ==
                Approx(static_cast<double>(s.link.bits_per_second)).epsilon(0.1));
          CHECK(rate.confidence > 0.2);  // a fresh sample counts a quarter
          const auto lost = link.loss(observer.now());
          CHECK(std::abs(lost.share - loss) < 0.01);
          const auto rtt = link.round_trip(observer.now()).rtt;
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
    Observer observer(s);
    REQUIRE(run(s).failure.empty());
    const auto rate = observer.link(1, 0).rate(observer.now());
    INFO(mbit << " Mbit/s: " << rate.bits_per_second);
    CHECK(rate.bits_per_second <= s.link.bits_per_second * 103 / 100);
    CHECK(rate.bits_per_second >= s.link.bits_per_second * 85 / 100);
  }
}

TEST_CASE("workers that fill their root's link together do not make it look faster") {
  SharedScenario s = scenario_of(50, 10, 0);
  s.workers = 3;
  Observer observer(s);
  REQUIRE(run(s).failure.empty());
  for (const std::uint16_t worker : std::initializer_list<std::uint16_t>{1, 2, 3}) {
    const auto rate = observer.link(worker, 0).rate(observer.now());
    INFO("worker " << worker << ": " << rate.bits_per_second);
    CHECK(rate.bits_per_second > 0);
    CHECK(rate.bits_per_second <= s.link.bits_per_second * 103 / 100);
  }
}
