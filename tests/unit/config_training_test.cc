// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <string>
#include <vector>

#include "control/config/plan_request.h"
#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

constexpr const char* kSharded = "plan: {kind: sharded, roots: training}\n";

ParsedConfig with(const std::string& text) {
  return parse(std::string(kBase) + text);
}

/// Returns the first error of a file with this selective mode and `text`, or "".
std::string error_with(const std::string& mode, const std::string& text) {
  const auto errors = errors_of(std::string(kBase) + "training: {mode: " + mode + "}\n" + text);
  return errors.empty() ? "" : errors.front();
}

std::string on_mode(const std::string& mode, const std::string& reason) {
  return "f.yaml:14: training.mode: value '" + mode + "': " + reason +
         ", or set training.mode: exact";
}

}  // namespace

TEST_CASE("training is exact unless the file says otherwise") {
  const ParsedConfig parsed = parse(kBase);
  REQUIRE(parsed.ok());
  CHECK(parsed.config->training.mode == TrainingMode::kExact);
  CHECK_FALSE(plan_request_of(*parsed.config).selections);
}

TEST_CASE("every option of the training section is read, and goes to the planner") {
  const std::string sharded(kSharded);
  const ParsedConfig defaults = with(sharded + "training: {mode: selective-bsp}\n");
  REQUIRE(defaults.ok());
  CHECK(defaults.config->training.mode == TrainingMode::kSelectiveBsp);
  CHECK(defaults.config->training.receivers_ppm == 300'000);
  CHECK(defaults.config->training.selection == ReceiverSelection::kLinks);
  CHECK(defaults.config->training.freshness == 4);
  CHECK(defaults.config->training.average_every == 100);
  CHECK(defaults.config->training.drift_limit_ppm == 100'000);
  const ParsedConfig parsed = with(sharded + R"(training:
  mode: selective-bsp
  receivers: 12.5 %
  selection: random
  freshness: 7
  average_every: never
  drift_limit: 0.02
)");
  REQUIRE(parsed.ok());
  CHECK(parsed.config->training.receivers_ppm == 125'000);
  CHECK(parsed.config->training.freshness == 7);
  CHECK(parsed.config->training.average_every == 0);
  CHECK(parsed.config->training.drift_limit_ppm == 20'000);
  const auto wanted = plan_request_of(*parsed.config).selections;
  REQUIRE(wanted);
  CHECK(wanted->receivers_ppm == 125'000);
  CHECK(wanted->freshness == 7);
  CHECK(wanted->replication == plan::Replication::kSender);
  CHECK(wanted->choice == plan::SelectionsWanted::Choice::kRandom);
  const auto by_links = plan_request_of(*defaults.config).selections;
  REQUIRE(by_links);
  CHECK(by_links->choice == plan::SelectionsWanted::Choice::kLinks);
}

TEST_CASE("staleness counts with selective-ssp alone") {
  const std::string sharded(kSharded);
  const ParsedConfig synchronous = with(sharded + "training: {mode: selective-bsp}\n");
  REQUIRE(synchronous.ok());
  CHECK(synchronous.config->training.staleness_steps() == 0);
  const ParsedConfig defaults = with(sharded + "training: {mode: selective-ssp}\n");
  REQUIRE(defaults.ok());
  CHECK(defaults.config->training.mode == TrainingMode::kSelectiveSsp);
  CHECK(defaults.config->training.staleness_steps() == 4);
  CHECK(defaults.config->training.freshness == 4);
  REQUIRE(plan_request_of(*defaults.config).selections);
  CHECK(plan_request_of(*defaults.config).selections->freshness == 4);
  const ParsedConfig parsed =
      with(sharded + "training: {mode: selective-ssp, staleness: 64, freshness: 2}\n");
  REQUIRE(parsed.ok());
  CHECK(parsed.config->training.staleness_steps() == 64);
  for (const char* mode : {"exact", "selective-bsp"}) {
    CAPTURE(mode);
    const auto errors =
        errors_of(std::string(kBase) + sharded + "training: {mode: " + mode + ", staleness: 3}\n");
    REQUIRE(errors.size() == 1);
    CHECK(
        errors[0].ends_with("training.staleness: value '3': means nothing without "
                            "training.mode: selective-ssp; remove it"));
  }
}

TEST_CASE("values of training that are not accepted are reported with what is") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"mode: fast",
       "training.mode: value 'fast': accepted: one of exact, selective-bsp, selective-ssp"},
      {"receivers: 0 %",
       "training.receivers: value '0 %': accepted: a share from 0.0001 % to 100 %, such as 0.05 or "
       "5 %"},
      {"receivers: 101 %",
       "training.receivers: value '101 %': accepted: a share from 0.0001 % to 100 %, such as 0.05 "
       "or 5 %"},
      {"selection: best", "training.selection: value 'best': accepted: one of links, random"},
      {"freshness: 8", "training.freshness: value '8': accepted: an integer from 0 to 7"},
      {"staleness: 0", "training.staleness: value '0': accepted: an integer from 1 to 64"},
      {"staleness: 65", "training.staleness: value '65': accepted: an integer from 1 to 64"},
      {"average_every: 0",
       "training.average_every: value '0': accepted: never, or an integer from 1 to 1000000"},
      {"average_every: 1.5",
       "training.average_every: value '1.5': accepted: never, or an integer from 1 to 1000000"},
      {"drift_limit: 0",
       "training.drift_limit: value '0': accepted: a share from 0.0001 % to 100 %, such as 0.05 or "
       "5 %"},
  };
  for (const auto& [line, reason] : cases) {
    CAPTURE(line);
    const auto errors = errors_of(std::string(kBase) + "training: {" + line + "}\n");
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front() == "f.yaml:14: " + reason);
  }
}

TEST_CASE("keys of selective modes mean nothing without one") {
  for (const char* line : {"receivers: 20 %", "selection: random", "freshness: 3",
                           "average_every: never", "average_every: 10", "drift_limit: 5 %"}) {
    CAPTURE(line);
    const auto errors = errors_of(std::string(kBase) + "training: {" + line + "}\n");
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].ends_with("means nothing while training.mode is exact; remove it"));
  }
  // The default values are allowed where the keys have no effect.
  CHECK(with("training: {mode: exact, freshness: 4, receivers: 30 %}\n").ok());
}

TEST_CASE("a selective mode is of two nodes or more") {
  const auto errors = errors_of(base_with("    - name: b\n      address: 10.0.0.2/24\n", "") +
                                kSharded + "training: {mode: selective-bsp}\n");
  REQUIRE(errors.size() == 1);
  CHECK(
      errors[0].ends_with("training.mode: value 'selective-bsp': needs two nodes or more, because "
                          "a node has one rank; add the others to cluster.nodes, or set "
                          "training.mode: exact"));
}

TEST_CASE("what contradicts a selective mode is refused with what to do") {
  const std::string mode = GENERATE("selective-bsp", "selective-ssp");
  const std::string sharded(kSharded);
  CHECK(error_with(mode, sharded).empty());
  CHECK(error_with(mode, "") ==
        on_mode(mode,
                "needs a tree of every node with a rank, which plan.kind star does not give; set "
                "plan.kind: sharded"));
  CHECK(error_with(mode, "plan: {kind: sharded}\n") ==
        on_mode(mode, "needs a tree of every node with a rank; set plan.roots: training"));
  CHECK(
      error_with(mode,
                 "plan: {kind: sharded, roots: training, jobs: {\"a*\": sharded, b: star}}\n") ==
      on_mode(mode,
              "needs the plan sharded of every job, and plan.jobs gives 'b' the plan star; remove "
              "that line"));
  CHECK(error_with(mode, "plan: {kind: sharded, roots: training, jobs: {\"a*\": sharded}}\n")
            .empty());
  CHECK(error_with(mode, sharded + "grants: {enabled: true}\n") ==
        on_mode(mode, "does not go with grants.enabled: true; remove that"));
  CHECK(error_with(mode, sharded + "gather: {compensation: carry}\n") ==
        on_mode(mode,
                "does not go with gather.compensation: carry, because what a rank sends is always "
                "in its own result, so nothing of it is left to carry; set zero or rescale"));
}
