// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Plans whose selections follow the network: when they are redrawn, and when it is too early for
// that.
#include "tests/unit/redraw_bench.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

TEST_CASE("a plan whose selections follow the network is redrawn, whoever makes it") {
  RedrawBench bench;
  bench.planner = PlanKind::kSharded;
  bench.follows_network = GENERATE(false, true);
  bench.ready_job();
  bench.pass(kEvery);
  bench.root = 2;
  bench.in_force = Duration::seconds(2);
  bench.report(50'000'000);
  bench.pass({});
  CHECK(bench.inputs.size() == (bench.follows_network ? 2 : 1));
  CHECK(bench.prepares() == (bench.follows_network ? 2 : 0));
}

TEST_CASE("a planner for which it is too early is asked again without a report") {
  RunningBench bench;
  bench.root = 2;
  bench.in_force = Duration::seconds(2);
  bench.is_early = true;
  bench.report(50'000'000);
  bench.pass({});
  REQUIRE(bench.inputs.size() == 2);
  CHECK(bench.prepares() == 0);
  CHECK(bench.coordinator.topology(bench.now).plans[0].outlook->decision ==
        "too little has been measured since it began");
  bench.is_early = false;
  bench.pass(kKeptPause / 2);
  CHECK(bench.inputs.size() == 2);
  bench.pass(kKeptPause / 2);
  CHECK(bench.inputs.size() == 3);
  CHECK(bench.prepares() == 2);
}

TEST_CASE("a planner for which it stays too early is asked less and less often") {
  RunningBench bench;
  bench.root = 2;
  bench.in_force = Duration::seconds(2);
  bench.is_early = true;
  bench.report(50'000'000);
  bench.pass({});
  REQUIRE(bench.inputs.size() == 2);
  const auto asked_within = [&](Duration time) {
    const std::size_t before = bench.inputs.size();
    for (Duration passed; passed < time; passed += kKeptPause) bench.pass(kKeptPause);
    return bench.inputs.size() - before;
  };
  CHECK(asked_within(kKeptPause * 15) == 4);  // after 1, 3, 7 and 15 pauses
  CHECK(asked_within(kLongestEarlyPause * 4) == 4);
  // A change of the network resets the pause.
  bench.report(20'000'000);
  bench.pass_settling();
  bench.pass({});
  CHECK(asked_within(kKeptPause * 3) == 2);
}

TEST_CASE("a planner hears for how long all rounds have been of the plan in force") {
  RunningBench bench;
  bench.root = 2;
  bench.in_force = Duration::seconds(2);
  bench.report(50'000'000);
  bench.pass({});
  REQUIRE(bench.inputs.size() == 2);
  CHECK(bench.inputs[1].in_force_for == kEvery + kReportsCalm);
  bench.answer(bench.first + 1);
  // Rounds of the plan before go on for some time.
  bench.pass(kEvery);
  bench.end_plan(bench.first);
  bench.report(90'000'000);
  bench.pass({});
  REQUIRE(bench.inputs.size() == 3);
  CHECK(bench.inputs[2].in_force_for == kReportsCalm);
}
