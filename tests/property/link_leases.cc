// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Leases whose messages are late, lost and out of step. Engines together never use more than the
// link's rate, and each gets a share.
#include <deque>
#include <random>
#include <vector>

#include "dataplane/hop/link_budget.h"
#include "tests/support/catch.h"

using namespace gradplane;
using hop::kLeasePeriod;
using hop::kLeaseTime;
using hop::LinkBudget;
using hop::LinkLease;
using hop::LinkShare;

namespace {

constexpr std::uint64_t kLink = 100'000'000'000;

struct Message {
  Instant at;
  LinkLease lease;
};

/// An engine that receives its leases late or never, and does not know how late.
struct Engine {
  LinkShare share;
  std::deque<Message> inbox;  // in order, as a queue delivers them

  void take_until(Instant now) {
    while (!inbox.empty() && inbox.front().at <= now) {
      share.take(inbox.front().lease);
      inbox.pop_front();
    }
  }
};

class Leases {
 public:
  Leases(std::size_t engines, std::uint64_t seed) : budget_(kLink, engines), random_(seed) {
    for (std::size_t e = 0; e < engines; ++e) engines_.push_back({budget_.share(e), {}});
  }

  /// Demands change at random. The owner and the engines run at random times.
  void step() {
    now_ = now_ + Duration::us(static_cast<std::int64_t>(1 + draw(3000)));
    if (draw(10) == 0) {
      const std::uint64_t demand = draw(3) == 0 ? 0 : draw(2 * kLink);
      budget_.set_demand(draw(engines_.size()), demand);
    }
    if (draw(20) == 0) now_ = now_ + Duration::ms(static_cast<std::int64_t>(draw(30)));
    if (!budget_.renew(now_)) return;
    for (std::size_t e = 0; e < engines_.size(); ++e) {
      if (draw(5) == 0) continue;  // the queue is full
      engines_[e].inbox.push_back(
          {now_ + Duration::us(static_cast<std::int64_t>(draw(15'000))), budget_.lease(e)});
    }
  }

  /// The most that all engines together may send at any instant of the last step.
  std::uint64_t most_in_use() {
    std::uint64_t most = 0;
    for (int part = 0; part <= 8; ++part) {
      const Instant at = before_ + (now_ - before_) / 8 * part;
      std::uint64_t sum = 0;
      for (Engine& engine : engines_) {
        engine.take_until(at);
        sum += engine.share.bits_per_second(at);
      }
      most = std::max(most, sum);
    }
    before_ = now_;
    return most;
  }

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  LinkBudget budget_;
  std::mt19937_64 random_;
  std::vector<Engine> engines_;
  Instant now_ = Instant::from_ns(1'000'000'000);
  Instant before_ = now_;
};

}  // namespace

TEST_CASE("all engines together never use more than the link, whatever leases they have seen") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const std::size_t engines = 2 + seed % (hop::kMaxEngines - 1);
    Leases leases(engines, seed);
    for (int step = 0; step < 2'000; ++step) {
      leases.step();
      const std::uint64_t used = leases.most_in_use();
      if (used > kLink) FAIL("seed " << seed << ", step " << step << ": " << used);
    }
  }
}

TEST_CASE("whoever wants something has its part of the link after the time of a lease") {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 2'000; ++trial) {
    const std::size_t engines = 2 + random() % (hop::kMaxEngines - 1);
    LinkBudget budget(kLink, engines);
    Instant now = Instant::from_ns(1'000'000'000);
    std::vector<std::uint64_t> demands(engines);
    for (int change = 0; change < 4; ++change) {
      for (std::size_t e = 0; e < engines; ++e) {
        demands[e] = random() % 3 == 0 ? 0 : random() % kLink;
        budget.set_demand(e, demands[e]);
      }
      for (const Instant end = now + kLeaseTime; now < end;) {
        now = now + kLeasePeriod;
        REQUIRE(budget.renew(now));
      }
      std::uint64_t sum = 0;
      for (std::size_t e = 0; e < engines; ++e) {
        const std::uint64_t rate = budget.lease(e).bits_per_second;
        REQUIRE(rate + engines >= std::min(demands[e], kLink / engines));
        REQUIRE(rate >= budget.floor_bits_per_second());
        sum += rate;
      }
      REQUIRE(sum <= kLink);
      REQUIRE(sum + 2 * engines > kLink);  // only rounding errors are left over
    }
  }
}
