// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

ParsedConfig with(const std::string& text) {
  return parse(std::string(kBase) + text);
}

std::vector<std::string> errors_with(const std::string& text) {
  return errors_of(std::string(kBase) + text);
}

}  // namespace

TEST_CASE("nobody grants, and jobs are alike, unless the file says otherwise") {
  const ParsedConfig parsed = parse(kBase);
  REQUIRE(parsed.ok());
  CHECK_FALSE(parsed.config->grants.enabled);
  CHECK(parsed.config->grants.policy == GrantPolicy::kFair);
  CHECK(weight_of(*parsed.config, "train.py") == 1);
}

TEST_CASE("grants of links whose rate nobody told are warned of") {
  const ParsedConfig none = with("grants: {enabled: true}\n");
  REQUIRE(none.ok());
  REQUIRE(none.warnings.size() == 1);
  CHECK(none.warnings[0].text() ==
        "f.yaml:14: grants.enabled: value 'true': warning: node a and 1 more have no "
        "port.link_rate, so how much to grant is guessed from what gets lost; set port.link_rate "
        "to the rate of each node's link");
  std::string file(kBase);
  const auto rate_for = [&](const std::string& node) {
    const std::string at = "    - name: " + node + "\n";
    file.replace(file.find(at), at.size(), at + "      port: {link_rate: 1 Gbit/s}\n");
    return parse(file + "grants: {enabled: true}\n");
  };
  const ParsedConfig some = rate_for("a");
  REQUIRE(some.warnings.size() == 1);
  CHECK(some.warnings[0].text().find("node b has no port.link_rate") != std::string::npos);
  CHECK(rate_for("b").warnings.empty());
  CHECK(with("grants: {enabled: false}\n").warnings.empty());
}

TEST_CASE("every policy has a name in the file") {
  for (std::size_t p = 0; p < kGrantPolicyNames.size(); ++p) {
    const std::string name(kGrantPolicyNames[p]);
    INFO(name);
    const ParsedConfig parsed = with("grants: {enabled: true, policy: " + name + "}\n");
    REQUIRE(parsed.ok());
    CHECK(parsed.config->grants.enabled);
    CHECK(parsed.config->grants.policy == static_cast<GrantPolicy>(p));
  }
}

TEST_CASE("weights go by the job's name, the first line that matches") {
  const ParsedConfig parsed =
      with("grants: {enabled: true, policy: weighted, weights: {'bert-?': 2.5, 'bert*': 0.001}}\n");
  REQUIRE(parsed.ok());
  CHECK(weight_of(*parsed.config, "bert-1") == 2.5);
  CHECK(weight_of(*parsed.config, "bert-large") == 0.001);
  CHECK(weight_of(*parsed.config, "vgg") == 1);
}

TEST_CASE("what contradicts itself in the grants section is an error") {
  const auto policy = errors_with("grants: {policy: strict}\n");
  REQUIRE(policy.size() == 1);
  CHECK(policy[0].find("means nothing without grants.enabled: true") != std::string::npos);
  const auto weights = errors_with("grants: {enabled: true, weights: {a: 2}}\n");
  REQUIRE(weights.size() == 1);
  CHECK(weights[0].find("means nothing without grants.policy: weighted or mltcp") !=
        std::string::npos);
  CHECK(errors_with("grants: {enabled: true, policy: mltcp, weights: {a: 2}}\n").empty());
  for (const char* bad : {"{a: 0}", "{a: 1025}", "{a: much}", "{a: 5 %}", "[2]"}) {
    INFO(bad);
    const auto errors = errors_with(
        std::string("grants: {enabled: true, policy: weighted, weights: ") + bad + "}\n");
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].find("a number from 0.001 to 1024") != std::string::npos);
  }
}

TEST_CASE("grants by MLTCP have its constants") {
  const ParsedConfig parsed =
      with("grants: {enabled: true, policy: mltcp}\ncongestion: {mltcp_slope: 4}\n");
  REQUIRE(parsed.ok());
  CHECK(parsed.config->mltcp == MltcpFunction{.slope = 4, .intercept = 0.25});
  CHECK_FALSE(congestion_of(*parsed.config, "train.py").mltcp);
}
