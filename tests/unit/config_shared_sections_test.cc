// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <set>

#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

/// The sections in which `text`, added to the base, makes a difference.
std::set<std::string> changed_by(const std::string& text) {
  const ParsedConfig base = parse(kBase);
  const ParsedConfig other = parse(std::string(kBase) + text);
  REQUIRE(base.ok());
  REQUIRE(other.ok());
  std::set<std::string> changed;
  for (std::size_t s = 0; s < base.config->shared_sections.size(); ++s) {
    const SharedSection& section = base.config->shared_sections[s];
    REQUIRE(other.config->shared_sections.at(s).name == section.name);
    if (other.config->shared_sections[s].digest != section.digest) changed.insert(section.name);
  }
  return changed;
}

}  // namespace

TEST_CASE("a digest differs where a section of the whole cluster does, by file or by default") {
  CHECK(changed_by("").empty());
  CHECK(changed_by("log: {level: debug}\nliveness: {heartbeat: 300 ms}\n").empty());
  CHECK(changed_by("quotas: {jobs: 32}\n").empty());  // the default
  CHECK(changed_by("quotas: {jobs: 31}\n") == std::set<std::string>{"quotas"});
  CHECK(changed_by("quotas: {ranks: 63, updates: 1 GiB}\n").empty());  // of each node
  CHECK(changed_by("plan: {kind: sharded, roots: training}\n") == std::set<std::string>{"plan"});
  CHECK(changed_by("gather: {bounds: {\"*.bias\": exact}}\n") == std::set<std::string>{"gather"});
  CHECK(changed_by("ranks: {require: true}\n").empty());
  CHECK(changed_by("ranks: {elastic: true}\n") == std::set<std::string>{"ranks.elastic"});
}

TEST_CASE("another list of nodes is noticed, and another node's own port is not") {
  const auto digest_of_nodes = [](const char* old, const char* to) {
    const ParsedConfig parsed = parse(base_with(old, to));
    REQUIRE(parsed.ok());
    CHECK(parsed.config->shared_sections[0].name == "cluster.nodes");
    return parsed.config->shared_sections[0].digest;
  };
  const auto same = digest_of_nodes("10.0.0.2/24", "10.0.0.2/24");
  CHECK(digest_of_nodes("10.0.0.2/24", "10.0.0.3/24") != same);
  CHECK(digest_of_nodes("10.0.0.2/24", "10.0.0.2/24\n      port: {link_rate: 1 Gbit/s}") == same);
}
