// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Jobs that are taken over: whose quota they count against, their runs, and what the new
// coordinator keeps meanwhile.
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/takeover_bench.h"

using namespace gradplane;
using namespace gradplane::protocol;
using namespace gradplane::session;
using namespace gradplane::session::testing;

TEST_CASE("a job that is taken over counts against the quota of its users, and not of root") {
  TakeoverBench bench;
  bench.c.quotas.jobs = 1;
  Report roots = TakeoverBench::report(kFirst, 0);
  roots.user = kRootUser;
  const auto another = [&](std::uint32_t user) {
    bench.outbox.letters.clear();
    bench.say(1, Join{key_number(9), 1, user, 2, {0}, "another"});
    return bench.told<Refused>().empty();
  };
  bench.begin(TakeoverBench::report(kFirst, 0));
  SECTION("while its members are asked") {
    CHECK_FALSE(another(1000));
    CHECK(another(1001));
  }
  SECTION("and when it is known") {
    bench.say(2, roots);
    REQUIRE(bench.coordinator.views().size() == 1);
    CHECK(bench.coordinator.views()[0].user == 1000);
    CHECK_FALSE(another(1000));
  }
}

TEST_CASE("a job all of whose ranks are of root stays root's") {
  TakeoverBench bench;
  Report roots = TakeoverBench::report(kFirst, 0);
  roots.user = kRootUser;
  bench.begin(roots);
  bench.say(2, roots);
  REQUIRE(bench.coordinator.views().size() == 1);
  CHECK(bench.coordinator.views()[0].user == kRootUser);
}

TEST_CASE("of two runs of a job the later one goes on, in whatever order they become known") {
  constexpr std::uint32_t kLater = kFirst + 5;
  TakeoverBench bench;
  const std::vector<api::Member> alone = {{0, {0, 1}}};
  Report later = TakeoverBench::report(kLater, 0);
  later.first_epoch = kLater;
  const auto report_later = [&] { bench.say(0, later); };
  const auto end_later = [&] {
    bench.say(0, PlanIs{kKey, kLater, kLater, encode_plan(plan_of(kLater, alone)).value()});
  };
  bench.begin(TakeoverBench::report(kFirst, 0));
  report_later();
  SECTION("the earlier one first") {
    bench.say(2, TakeoverBench::report(kFirst, 0));
    end_later();
  }
  SECTION("the later one first") {
    end_later();
    bench.say(2, TakeoverBench::report(kFirst, 0));
  }
  REQUIRE(bench.coordinator.views().size() == 1);
  CHECK(bench.coordinator.views()[0].epoch == kLater);
  CHECK(bench.told<Failed>() == Nodes{1, 2});
}

TEST_CASE("a node that says too much during a takeover ends the job") {
  TakeoverBench bench;
  bench.begin(TakeoverBench::report(kFirst, 0));
  const NodeMessage part =
      DescribeBucket{kKey, kFirst, std::vector<std::byte>(kMaxBucketPartBytes)};
  const std::size_t fit = kMaxHeldBytes / (kHeldMessageBytes + encode(part).size());
  for (std::size_t i = 0; i < fit; ++i) bench.say(1, part);
  CHECK(bench.told<Failed>().empty());
  bench.say(1, part);
  CHECK(bench.told<Failed>() == Nodes{1});
  CHECK_FALSE(bench.coordinator.has_jobs());
}

TEST_CASE("a takeover asks for one plan at a time, and for the next when it has come") {
  TakeoverBench bench;
  constexpr std::uint32_t kPrepared = kNext + 10;
  bench.say(1, TakeoverBench::report(kNext, kPrepared, kFirst));
  CHECK(bench.take_asks() == std::vector{kNext});
  bench.tell_plan(1, kPrepared);  // nobody has asked for it yet
  CHECK(bench.take_asks().empty());
  bench.tell_plan(1, kNext);
  CHECK(bench.take_asks() == std::vector{kPrepared});
  SECTION("it comes") {
    bench.tell_plan(1, kPrepared);
  }
  SECTION("it does not come, because the member has refused it") {
    bench.say(1, PlanRefused{kKey, kPrepared, "it does not fit"});
  }
  CHECK(bench.take_asks() == std::vector{kFirst});
  bench.tell_plan(1, kFirst);
  CHECK(bench.take_asks().empty());
}
