// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How much of a node's link each engine may use, and from when on.
#include "dataplane/hop/link_budget.h"

#include "dataplane/job/node.h"
#include "tests/support/catch.h"

using namespace gradplane;
using hop::kLeasePeriod;
using hop::kLeaseTime;
using hop::LinkBudget;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::uint64_t kLink = 16'000;
constexpr std::uint64_t kFloor = 500;  // the floor of each of two engines

std::uint64_t rate(const LinkBudget& budget, std::size_t engine) {
  return budget.lease(engine).bits_per_second;
}

/// Renews `count` times. Returns the time of the last renewal.
Instant renew(LinkBudget& budget, Instant now, int count) {
  for (; count > 0; --count) {
    now = now + kLeasePeriod;
    REQUIRE(budget.renew(now));
  }
  return now;
}

}  // namespace

TEST_CASE("the only engine has the whole link for ever, and nobody renews it") {
  LinkBudget budget(kLink, 1);
  CHECK(rate(budget, 0) == kLink);
  CHECK(budget.lease(0).until == Instant::never());
  budget.set_demand(0, 5);
  CHECK_FALSE(budget.renew(kStart));
  CHECK(budget.next_renewal() == Instant::never());
  CHECK(budget.share(0).bits_per_second(kStart + Duration::seconds(1000)) == kLink);
}

TEST_CASE("a link of no known rate paces nobody") {
  LinkBudget budget(0, 4);
  CHECK_FALSE(budget.renew(kStart));
  CHECK(budget.share(3).bits_per_second(kStart) == 0);
}

TEST_CASE("engines that want the same get the same, and one that wants little gets that") {
  LinkBudget budget(kLink, 4);
  for (std::size_t e = 0; e < 4; ++e) budget.set_demand(e, kLink);
  budget.set_demand(2, 1'000);
  renew(budget, kStart, 2);
  CHECK(rate(budget, 0) == 5'000);
  CHECK(rate(budget, 1) == 5'000);
  CHECK(rate(budget, 2) == 1'000);
  CHECK(rate(budget, 3) == 5'000);
}

TEST_CASE("what nobody wants is everybody's in equal parts") {
  LinkBudget budget(kLink, 2);
  budget.set_demand(0, 4'000);
  renew(budget, kStart, 2);
  CHECK(rate(budget, 0) == 4'000 + 11'500 / 2);
  CHECK(rate(budget, 1) == kFloor + 11'500 / 2);
}

TEST_CASE("what an engine does not want any more is another's within the time of a lease") {
  LinkBudget budget(kLink, 2);
  budget.set_demand(0, kLink);
  budget.set_demand(1, kLink);
  Instant now = renew(budget, kStart, 3);
  CHECK(rate(budget, 0) == kLink / 2);
  const Instant idle_since = now;
  budget.set_demand(1, 0);
  now = renew(budget, now, 1);
  // Engine 1 may not have seen its smaller lease yet, so engine 0 gets nothing of it.
  CHECK(rate(budget, 1) == kFloor);
  CHECK(rate(budget, 0) == kLink / 2);
  now = renew(budget, now, 1);
  CHECK(rate(budget, 0) == kLink - kFloor);
  CHECK(now - idle_since <= kLeaseTime);
}

TEST_CASE("leases are renewed once a period, however often somebody asks") {
  LinkBudget budget(kLink, 2);
  CHECK(budget.renew(kStart));
  CHECK(budget.next_renewal() == kStart + kLeasePeriod);
  budget.set_demand(0, kLink);
  CHECK_FALSE(budget.renew(kStart + kLeasePeriod - Duration::ns(1)));
  CHECK(budget.lease(0).until == kStart + kLeaseTime);
  CHECK(budget.renew(kStart + kLeasePeriod));
}

TEST_CASE("an engine whose lease has ended has the floor, until the next one comes") {
  LinkBudget budget(kLink, 2);
  budget.set_demand(0, kLink);
  const Instant given = renew(budget, kStart, 2);
  hop::LinkShare share = budget.share(0);
  CHECK(share.bits_per_second(given) == kLink - kFloor);
  CHECK(share.bits_per_second(given + kLeaseTime - Duration::ns(1)) == kLink - kFloor);
  CHECK(share.bits_per_second(given + kLeaseTime) == kFloor);
  const Instant later = renew(budget, given, 4);
  share.take(budget.lease(0));
  CHECK(share.bits_per_second(later) == kLink - kFloor);
}

TEST_CASE("an owner that comes late finds the leases ended, and gives the link anew") {
  LinkBudget budget(kLink, 2);
  budget.set_demand(0, kLink);
  const Instant given = renew(budget, kStart, 2);
  budget.set_demand(0, 0);
  budget.set_demand(1, kLink);
  REQUIRE(budget.renew(given + kLeaseTime));
  CHECK(rate(budget, 0) == kFloor);
  CHECK(rate(budget, 1) == kLink - kFloor);
}

TEST_CASE("a node waits for its link as its lease says") {
  constexpr std::uint64_t kFast = 10'000'000;
  job::Node node(0, {.bits_per_second = kFast,
                     .buffer_bytes = 0,
                     .share = hop::LinkShare({kFast, kStart + kLeaseTime}, kFast / 10)});
  node.tick(kStart);
  CHECK(node.paced_bits_per_second() == kFast);
  node.tick(kStart + kLeaseTime);
  CHECK(node.paced_bits_per_second() == kFast / 10);
  node.take_lease({kFast / 2, kStart + kLeaseTime * 2});
  node.tick(kStart + kLeaseTime);
  CHECK(node.paced_bits_per_second() == kFast / 2);
}
