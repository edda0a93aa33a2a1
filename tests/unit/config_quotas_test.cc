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

}  // namespace

TEST_CASE("without a word of the operator quotas are those of the code") {
  const ParsedConfig parsed = parse(kBase);
  REQUIRE(parsed.ok());
  CHECK(parsed.config->quotas.jobs == Quotas{}.jobs);
  CHECK(parsed.config->quotas.ranks == Quotas{}.ranks);
  CHECK(parsed.config->quotas.wait == Quotas{}.wait);
  CHECK(parsed.config->quotas.updates == Quotas{}.updates);
}

TEST_CASE("quotas are what the file says, and never everything") {
  const ParsedConfig parsed = with("quotas: {jobs: 63, ranks: 960, wait: 90 s, updates: 1 MiB}\n");
  REQUIRE(parsed.ok());
  CHECK(parsed.config->quotas.jobs == 63);
  CHECK(parsed.config->quotas.ranks == 960);
  CHECK(parsed.config->quotas.wait == Duration::seconds(90));
  CHECK(parsed.config->quotas.updates == std::size_t{1} << 20);
  for (const char* bad : {"jobs: 64", "jobs: 0", "ranks: 961", "ranks: 0", "wait: 9 s", "wait: 25",
                          "updates: 1 KiB", "updates: 9 GiB"})
    CHECK_FALSE(with(std::string("quotas: {") + bad + "}\n").ok());
}
