// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

ParsedConfig with(const std::string& gather) {
  return parse(std::string(kBase) + "gather:\n" + gather);
}

std::vector<std::string> errors_with(const std::string& gather) {
  return errors_of(std::string(kBase) + "gather:\n" + gather);
}

}  // namespace

TEST_CASE("nothing may be missing unless the file says so") {
  const ParsedConfig parsed = parse(kBase);
  REQUIRE(parsed.ok());
  const GatherConfig& gather = parsed.config->gather;
  CHECK(gather.rules.preset == bounds::Preset::kExact);
  CHECK(gather.rules.patterns.empty());
  for (const auto& kind : gather.rules.kinds) CHECK_FALSE(kind);
  CHECK_FALSE(gather.rules.budget);
  CHECK(gather.compensation == Compensation::kRescale);
  CHECK(gather.strict_rounds == 10);
  CHECK(gather.floor_ppm == 500000);
  CHECK_FALSE(gather.slack);
  CHECK_FALSE(gather.absent_after);
}

TEST_CASE("every option of the gather section is read") {
  const ParsedConfig parsed = with(R"(  preset: plot
  bounds:
    "*.bias": exact
    layer4.*: 0.05
    layer3.*: 12.5 %
    "*": 50%
  kinds: {bias: 0.1, last: exact}
  budget: 15 %
  compensation: carry
  strict_rounds: 3
  floor: 0.8
  slack: 100 ms
  absent_after: 2 s
)");
  for (const ConfigError& error : parsed.errors) UNSCOPED_INFO(error.text());
  REQUIRE(parsed.ok());
  const GatherConfig& gather = parsed.config->gather;
  CHECK(gather.rules.preset == bounds::Preset::kPlot);
  REQUIRE(gather.rules.patterns.size() == 4);
  CHECK(gather.rules.patterns[0].pattern == "*.bias");
  CHECK(gather.rules.patterns[0].bound == 0);
  CHECK(gather.rules.patterns[1].pattern == "layer4.*");
  CHECK(gather.rules.patterns[1].bound == 0.05F);
  CHECK(gather.rules.patterns[2].bound == 0.125F);
  CHECK(gather.rules.patterns[3].bound == 0.5F);
  CHECK(gather.rules.kinds[static_cast<std::size_t>(bounds::Kind::kBias)] == 0.1F);
  CHECK(gather.rules.kinds[static_cast<std::size_t>(bounds::Kind::kLast)] == 0.0F);
  CHECK_FALSE(gather.rules.kinds[static_cast<std::size_t>(bounds::Kind::kNorm)]);
  CHECK(gather.rules.budget == 0.15F);
  CHECK(gather.compensation == Compensation::kCarry);
  CHECK(gather.strict_rounds == 3);
  CHECK(gather.floor_ppm == 800000);
  CHECK(gather.slack == Duration::ms(100));
  CHECK(gather.absent_after == Duration::seconds(2));
}

TEST_CASE("wire types go by the tensor's name, in the order of the file") {
  CHECK(parse(kBase).config->gather.rules.wire_types.empty());
  const ParsedConfig parsed = with(R"(  wire_types:
    "*.bias": fp32
    layer4.*: int8
    layer3.*: fp16
    "*": bf16
)");
  REQUIRE(parsed.ok());
  const auto& types = parsed.config->gather.rules.wire_types;
  REQUIRE(types.size() == 4);
  CHECK(types[0].pattern == "*.bias");
  CHECK(types[0].wire == WireType::kElements);
  CHECK(types[1].wire == WireType::kInt8);
  CHECK(types[2].wire == WireType::kFloat16);
  CHECK(types[3].pattern == "*");
  CHECK(types[3].wire == WireType::kBfloat16);
  CHECK_FALSE(errors_with("  wire_types: {\"*\": int4}\n").empty());
}

TEST_CASE("the names of presets and kinds are those of the rules") {
  for (std::size_t p = 0; p < bounds::kPresets; ++p) {
    const auto preset = static_cast<bounds::Preset>(p);
    const ParsedConfig parsed = with("  preset: " + std::string(name_of(preset)) + "\n");
    REQUIRE(parsed.ok());
    CHECK(parsed.config->gather.rules.preset == preset);
  }
  for (std::size_t k = 0; k < bounds::kKinds; ++k) {
    const std::string kind(name_of(static_cast<bounds::Kind>(k)));
    const ParsedConfig parsed = with("  kinds: {" + kind + ": 0.1}\n");
    REQUIRE(parsed.ok());
    CHECK(parsed.config->gather.rules.kinds[k] == 0.1F);
  }
}

TEST_CASE("ltp has its own slack unless the file has one") {
  CHECK(with("  preset: ltp\n").config->gather.slack == Duration::ms(30));
  CHECK(with("  preset: ltp\n  slack: 100 ms\n").config->gather.slack == Duration::ms(100));
  CHECK_FALSE(with("  preset: ltp\n  slack: auto\n").config->gather.slack);
  CHECK_FALSE(with("  preset: mlt\n").config->gather.slack);
}

TEST_CASE("each bad line of a section of shares is an error of its own") {
  const auto errors = errors_with(R"(  bounds:
    layer1: 0.51
    layer2: 5
    layer3: -0.1
    layer4: 0.05
    layer5: some
    layer6: {a: b}
    "with\"quote": 0.1
    layer8: 0.1234567
)");
  REQUIRE(errors.size() == 7);
  CHECK(errors[0].find("f.yaml:16: gather.bounds: layer1: value '0.51': accepted: at most 256 "
                       "lines 'pattern: share' with patterns of at most 256 bytes and exact, or a "
                       "share from 0 % to 50 %, such as 0.05 or 5 %") == 0);
  CHECK(errors[1].find("f.yaml:17: gather.bounds: layer2: value '5'") == 0);
  CHECK(errors[2].find("f.yaml:18: gather.bounds: layer3: value '-0.1'") == 0);
  CHECK(errors[3].find("f.yaml:20: gather.bounds: layer5: value 'some'") == 0);
  CHECK(errors[4].find("f.yaml:21: gather.bounds: layer6: has a section") == 0);
  CHECK(errors[5].find("f.yaml:22: gather.bounds: with\"quote: value '0.1'") == 0);
  CHECK(errors[6].find("f.yaml:23: gather.bounds: layer8: value '0.1234567'") == 0);
}

TEST_CASE("other values that are not accepted are reported with what is") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"  preset: best\n",
       "f.yaml:15: gather.preset: value 'best': accepted: one of exact, ltp, mlt, plot, auto"},
      {"  bounds: exact\n",
       "f.yaml:15: gather.bounds: value 'exact': accepted: at most 256 lines 'pattern: share' with "
       "patterns of at most 256 bytes and exact, or a share from 0 % to 50 %, such as 0.05 or 5 %"},
      {"  kinds: {biases: 0.1}\n",
       "f.yaml:15: gather.kinds: biases: value '0.1': accepted: lines 'kind: share' with one of "
       "bias, norm, embedding, first, last and exact, or a share from 0 % to 50 %, such as 0.05 "
       "or 5 %"},
      {"  floor: 101 %\n",
       "f.yaml:15: gather.floor: value '101 %': accepted: a share from 0 % to 100 %, such as 0.05 "
       "or 5 %"},
      {"  slack: 0 ms\n",
       "f.yaml:15: gather.slack: value '0 ms': accepted: auto, or a time from 1 us to 1 min, with "
       "a unit (ns, us, ms, s, min)"},
      {"  absent_after: sometimes\n",
       "f.yaml:15: gather.absent_after: value 'sometimes': accepted: never, or a time from 1 ms "
       "to 10 min, with a unit (ns, us, ms, s, min)"},
      {"  budget: 5 %\n",
       "f.yaml:15: gather.budget: value '5 %': means nothing with gather.preset exact; remove it"},
      {"  bound: {a: 0.1}\n", "f.yaml:15: gather.bound: unknown key; did you mean gather.bounds?"},
      {"  bounds: {a: 0.1, a: 0.2}\n",
       "f.yaml:15: gather.bounds.a: given twice; the first is in line 15"},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(errors_with(text) == std::vector<std::string>{expected});
  }
}

TEST_CASE("patterns are bounded") {
  std::string lines = "  bounds:\n";
  for (std::size_t i = 0; i < bounds::kMaxPatterns; ++i)
    lines += "    p" + std::to_string(i) + ": 0.1\n";
  CHECK(with(lines).ok());
  CHECK(errors_with(lines + "    one_more: 0.1\n").size() == 1);
  CHECK(with("  bounds: {" + std::string(256, 'p') + ": 0.1}\n").ok());
  CHECK_FALSE(with("  bounds: {" + std::string(257, 'p') + ": 0.1}\n").ok());
}

TEST_CASE("the effective form of the gather section loads as the same") {
  // The effective form hides the value of cluster.key, so the file names key_file.
  const ParsedConfig parsed =
      parse(base_with("key: 00112233445566778899aabbccddeeff", "key_file: /etc/key") +
            "gather:\n  preset: ltp\n  kinds: {norm: 1 %}\n"
            "  bounds: {\"*.bias\": exact, 'a#b.*': 5 %, \"{x}\": 0.25}\n");
  REQUIRE(parsed.ok());
  const std::string effective = effective_yaml(parsed);
  INFO(effective);
  const ParsedConfig again = parse(effective);
  for (const ConfigError& error : again.errors) UNSCOPED_INFO(error.text());
  REQUIRE(again.ok());
  const GatherConfig& before = parsed.config->gather;
  const GatherConfig& after = again.config->gather;
  REQUIRE(after.rules.patterns.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(after.rules.patterns[i].pattern == before.rules.patterns[i].pattern);
    CHECK(after.rules.patterns[i].bound == before.rules.patterns[i].bound);
  }
  CHECK(after.rules.kinds == before.rules.kinds);
  CHECK(effective.find("# default; with gather.preset ltp 30 ms") != std::string::npos);
  CHECK(effective.find("  # budget:") != std::string::npos);
}
