// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Tests of trees over NetStorm's sites in ns-3.
#include <stdexcept>

#include "tests/ns3/wan.h"
#include "tests/support/catch.h"

using gradplane::Duration;
using gradplane::PlanKind;
using gradplane::ns3_wan::netstorm;
using gradplane::ns3_wan::Outcome;
using gradplane::ns3_wan::run;
using gradplane::ns3_wan::Scenario;

namespace {

Scenario scenario(PlanKind planner, bool far = false) {
  Scenario s;
  s.network = netstorm(1, far);
  s.planner = planner;
  s.bytes = 4'000'000;
  s.round_bytes = 256 << 10;
  return s;
}

Outcome right(const Scenario& s) {
  Outcome o = run(s);
  CHECK(o.failure == "");
  return o;
}

}  // namespace

TEST_CASE("ns-3: trees over sites bring right sums, and packed ones bring them first") {
  const Outcome star = right(scenario(PlanKind::kStar));
  const Outcome fapt = right(scenario(PlanKind::kFapt));
  const Outcome packed = right(scenario(PlanKind::kPacked));
  CHECK(packed.all_reduce < fapt.all_reduce);
  CHECK(fapt.all_reduce < star.all_reduce);
  CHECK(packed.all_reduce > packed.bound);
}

TEST_CASE("ns-3: trees over far and lossy links bring right sums") {
  for (const PlanKind planner : {PlanKind::kStar, PlanKind::kFapt, PlanKind::kPacked}) {
    const Scenario s = scenario(planner, true);
    right(s);
  }
}

TEST_CASE("ns-3: a dead link leaves rounds that do not end, which is said") {
  Scenario s = scenario(PlanKind::kPacked);
  s.limit = Duration::seconds(1);
  Scenario other = s;
  for (auto& link : other.network.links) link.bits_per_s = 1'000'000;
  const Outcome o = run(other);
  CHECK(o.failure.find(" rounds ended") != std::string::npos);
}

TEST_CASE("ns-3: a scenario over sites that is out of bounds is refused") {
  Scenario s = scenario(PlanKind::kPacked);
  s.bytes = 6;
  CHECK_THROWS_AS(run(s), std::invalid_argument);
  s = scenario(PlanKind::kPacked);
  s.in_flight = 0;
  CHECK_THROWS_AS(run(s), std::invalid_argument);
  s = scenario(PlanKind::kPacked);
  s.network.links.clear();
  s.network.links.push_back({0, 1, 1'000'000, {}, 0});
  CHECK_THROWS_AS(run(s), std::invalid_argument);
}
