// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

ParsedConfig with(const std::string& congestion) {
  return parse(std::string(kBase) + "congestion:\n" + congestion);
}

std::vector<std::string> errors_with(const std::string& congestion) {
  return errors_of(std::string(kBase) + "congestion:\n" + congestion);
}

}  // namespace

TEST_CASE("a sender follows the delay, without MLTCP, unless the file says otherwise") {
  const ParsedConfig parsed = parse(kBase);
  REQUIRE(parsed.ok());
  CHECK(parsed.config->congestion.controller == ControllerKind::kDelay);
  CHECK(parsed.config->congestion.rate_bits_per_second == 0);
  CHECK_FALSE(congestion_of(*parsed.config, "train.py").mltcp);
}

TEST_CASE("every controller has a name in the file") {
  for (std::size_t k = 0; k < kControllerNames.size(); ++k) {
    const std::string name(kControllerNames[k]);
    const std::string rate = name == "fixed" ? "  rate: 150 Mbit/s\n" : "";
    const ParsedConfig parsed = with("  controller: " + name + "\n" + rate);
    INFO(name);
    REQUIRE(parsed.ok());
    CHECK(parsed.config->congestion.controller == static_cast<ControllerKind>(k));
    CHECK(parsed.config->congestion.rate_bits_per_second == (rate.empty() ? 0U : 150'000'000U));
    CHECK(name_of(parsed.config->congestion.controller) == name);
  }
}

TEST_CASE("MLTCP has the constants of its paper, or others") {
  ParsedConfig parsed = with("  controller: reno\n  mltcp: true\n");
  REQUIRE(parsed.ok());
  CHECK(congestion_of(*parsed.config, "train.py").mltcp ==
        MltcpFunction{.slope = 1.75, .intercept = 0.25});
  parsed = with("  mltcp: true\n  mltcp_slope: 4\n  mltcp_intercept: 0.125\n");
  REQUIRE(parsed.ok());
  CHECK(congestion_of(*parsed.config, "train.py").mltcp ==
        MltcpFunction{.slope = 4, .intercept = 0.125});
}

TEST_CASE("what contradicts itself in the congestion section is an error") {
  CHECK(errors_with("  controller: fixed\n") ==
        std::vector<std::string>{"f.yaml:15: congestion.rate: missing; congestion.controller fixed "
                                 "needs it"});
  CHECK(errors_with("  rate: 1 Gbit/s\n") ==
        std::vector<std::string>{"f.yaml:15: congestion.rate: value '1 Gbit/s': means nothing with "
                                 "congestion.controller delay; remove it"});
  const auto fixed = errors_with("  {controller: fixed, rate: 1 Gbit/s, mltcp: true}\n");
  REQUIRE(fixed.size() == 1);
  CHECK(fixed[0].find("congestion.mltcp: value 'true': means nothing with") != std::string::npos);
  const auto idle = errors_with("  mltcp_slope: 2\n");
  REQUIRE(idle.size() == 1);
  CHECK(idle[0].find("means nothing without congestion.mltcp: true") != std::string::npos);
  // The default value is allowed where the key has no effect.
  CHECK(errors_with("  mltcp_slope: 1.75\n").empty());
}

TEST_CASE("single jobs have controllers of their own, by name") {
  const ParsedConfig parsed = with(
      "  controller: cubic\n  mltcp: true\n  rate: 1 Gbit/s\n"
      "  jobs: {'bert*': dctcp, 'bert-large': swift, line: fixed}\n");
  REQUIRE(parsed.ok());
  const auto controller = [&](std::string_view job) {
    return congestion_of(*parsed.config, job).controller;
  };
  CHECK(controller("bert-large") == ControllerKind::kDctcp);  // the first pattern that matches
  CHECK(controller("roberta") == ControllerKind::kCubic);
  CHECK(controller("line") == ControllerKind::kFixed);
  CHECK(congestion_of(*parsed.config, "bert").mltcp.has_value());
  CHECK_FALSE(congestion_of(*parsed.config, "line").mltcp);
  CHECK(congestion_of(*parsed.config, "line").rate_bits_per_second == 1'000'000'000);
}

TEST_CASE("MLTCP means something where only some jobs have a fixed rate") {
  CHECK(
      errors_with("  {controller: fixed, rate: 1 Gbit/s, mltcp: true, jobs: {a: reno}}\n").empty());
  CHECK(errors_with("  {controller: fixed, rate: 1 Gbit/s, mltcp: true, jobs: {a: fixed}}\n")
            .size() == 1);
}

TEST_CASE("a job's controller that there is not, or that lacks its rate, is an error") {
  const auto unknown = errors_with("  jobs: {a: vegas}\n");
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].find("congestion.jobs: a: value 'vegas': accepted: at most") !=
        std::string::npos);
  CHECK(unknown[0].find("one of delay, reno,") != std::string::npos);
  const auto rate = errors_with("  jobs: {a: fixed}\n");
  REQUIRE(rate.size() == 1);
  CHECK(rate[0].find("missing; congestion.jobs with fixed needs it") != std::string::npos);
}

TEST_CASE("numbers out of range are refused, and told what is accepted") {
  const auto refused = [](const std::string& line) {
    const auto errors = errors_with("  mltcp: true\n  " + line + "\n");
    return errors.size() == 1 && errors[0].find("accepted: a number from") != std::string::npos;
  };
  CHECK(refused("mltcp_intercept: 0"));
  CHECK(refused("mltcp_intercept: 101"));
  CHECK(refused("mltcp_slope: -1"));
  CHECK(refused("mltcp_slope: 5 %"));
  CHECK(refused("mltcp_slope: 1.12345678"));
  CHECK(refused("mltcp_slope: steep"));
  const auto unknown = errors_with("  controller: vegas\n");
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].find("one of delay, reno, cubic, dctcp, dcqcn, swift, bbr, fixed") !=
        std::string::npos);
}

TEST_CASE("the effective form of the congestion section loads as the same") {
  const ParsedConfig parsed =
      parse(base_with("key: 00112233445566778899aabbccddeeff", "key_file: /etc/key") +
            "congestion: {controller: cubic, mltcp: true, mltcp_slope: 4}\n");
  REQUIRE(parsed.ok());
  const std::string effective = effective_yaml(parsed);
  INFO(effective);
  const ParsedConfig again = parse(effective);
  REQUIRE(again.ok());
  CHECK(again.config->congestion.controller == ControllerKind::kCubic);
  CHECK(congestion_of(*again.config, "train.py").mltcp ==
        MltcpFunction{.slope = 4, .intercept = 0.25});
  CHECK(effective.find("  # rate:") != std::string::npos);
}
