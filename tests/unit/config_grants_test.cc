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

TEST_CASE("the coordinator decides on grants, and jobs are alike, unless the file says otherwise") {
  const ParsedConfig parsed = parse(kBase);
  REQUIRE(parsed.ok());
  CHECK(parsed.config->grants.enabled == GrantChoice::kAuto);
  CHECK(parsed.config->grants.policy == GrantPolicy::kFair);
  CHECK(weight_of(*parsed.config, "train.py") == 1);
}

TEST_CASE("grants are on, off, or by auto") {
  for (std::size_t c = 0; c < kGrantChoiceNames.size(); ++c) {
    const std::string name(kGrantChoiceNames[c]);
    INFO(name);
    const ParsedConfig parsed = with("grants: {enabled: " + name + "}\n");
    REQUIRE(parsed.ok());
    CHECK(parsed.config->grants.enabled == static_cast<GrantChoice>(c));
  }
  const auto errors = errors_with("grants: {enabled: yes}\n");
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].find("one of auto, true, false") != std::string::npos);
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
  CHECK(with("grants: {enabled: auto}\n").warnings.empty());
  CHECK(parse(kBase).warnings.empty());
}

TEST_CASE("jobs have grants by auto only where the file tells every rate and excludes nothing") {
  struct Row {
    std::string text;
    std::string why;
  };
  const Row rows[] = {
      {"", ""},
      {"grants: {enabled: true}\n", ""},
      {"poll: {cores: [2]}\n", ""},
      {"poll: {cores: [2, 3]}\n", "poll.cores has several CPUs"},
      {"multicast: {enabled: true}\n", "multicast.enabled is true"},
      {"gather: {wire_types: {'*': bf16}}\n", "gather.wire_types has lines"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    std::string file(kBase);
    const std::string port = "  kind: af_packet\n";
    file.replace(file.find(port), port.size(), port + "  link_rate: 1 Gbit/s\n");
    const ParsedConfig known = parse(file + row.text);
    REQUIRE(known.ok());
    CHECK(why_no_auto_grants(*known.config) == row.why);
  }
  const auto with_port = [](const std::string& port) {
    std::string file(kBase);
    const std::string kind = "  kind: af_packet\n";
    return why_no_auto_grants(
        *parse(file.replace(file.find(kind), kind.size(), kind + port)).config);
  };
  CHECK(with_port("  link_rate: 1 Gbit/s\n  buffer: 256 KiB\n").empty());
  CHECK(with_port("  link_rate: 1001 Mbit/s\n") == "port.link_rate of node a is above 1 Gbit/s");
  CHECK(with_port("  link_rate: 1 Gbit/s\n  buffer: 257 KiB\n") ==
        "port.buffer of node a is above 256 KiB");
  CHECK(why_no_auto_grants(*parse(kBase).config) == "node a and 1 more have no port.link_rate");
}

TEST_CASE("every policy has a name in the file") {
  for (std::size_t p = 0; p < kGrantPolicyNames.size(); ++p) {
    const std::string name(kGrantPolicyNames[p]);
    INFO(name);
    const ParsedConfig parsed = with("grants: {enabled: true, policy: " + name + "}\n");
    REQUIRE(parsed.ok());
    CHECK(parsed.config->grants.enabled == GrantChoice::kTrue);
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
  const auto policy = errors_with("grants: {enabled: false, policy: strict}\n");
  REQUIRE(policy.size() == 1);
  CHECK(policy[0].find("means nothing with grants.enabled: false; remove one of them") !=
        std::string::npos);
  CHECK(errors_with("grants: {policy: strict}\n").empty());
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
