// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <string>

#include "control/cli/plan_command.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::cli;

namespace {

/// Two workers and an aggregator, with links of 100 Mbit/s between each two.
config::Config triangle() {
  config::Config config;
  for (const char* name : {"a", "b", "agg"}) config.cluster.nodes.emplace_back().name = name;
  config.cluster.nodes[2].aggregate = true;
  config.plan.root = 2;
  config.plan.roots = config::ShardRoots::kTraining;
  config.block_bytes = kDefaultBlockBytes;
  config.round_bytes = kMaxRoundBytes;
  config.network.bytes = 12'500'000;
  plan::Network network = plan::network_of_accesses(std::vector<plan::Access>(3));
  for (plan::SiteId from = 0; from < 3; ++from) {
    for (plan::SiteId to = 0; to < 3; ++to)
      if (from != to) network.links.push_back({from, to, 100'000'000, Duration::ms(10), 0});
  }
  config.network.network = network;
  return config;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of(const config::Config& config, const PlanOptions& options) {
  const Result<std::string> text = plans_text(config, options);
  return text.ok() ? text.value() : "refused: " + text.error().message;
}

}  // namespace

TEST_CASE("gradplane plan shows every planner's times and trees") {
  const std::string text = text_of(triangle(), {});
  INFO(text);
  CHECK(has(text, "3 sites, 6 directed links, 2 nodes with a rank; an all_reduce of 12500000 B"));
  for (const char* row : {"\nstar ", "\nsharded ", "\nfapt ", "\npacked ", "\nauto (packed):\n"})
    CHECK(has(text, row));
  CHECK_FALSE(has(text, "manual"));
  CHECK(has(text, "\nstar:\n  100.00 %  root agg: a > agg, b > agg\n"));
  CHECK(has(text, "sharded:\n  50.00 %  root a: b > a\n  50.00 %  root b: a > b\n"));
}

TEST_CASE("gradplane plan can be asked for one plan, other bytes and other ranks") {
  const std::string brief = text_of(triangle(), {.plan = "star", .bytes = "1 MiB", .brief = true});
  CHECK(has(brief, "an all_reduce of 1 MiB"));
  CHECK_FALSE(has(brief, "packed "));
  CHECK_FALSE(has(brief, "root"));
  const std::string all = text_of(triangle(), {.plan = "packed", .ranks = {"a", "b", "agg"}});
  INFO(all);
  CHECK(has(all, "3 nodes with a rank"));
  CHECK(has(all, "33.33 %"));
}

TEST_CASE("gradplane plan shows auxiliary routes where the file asks for them") {
  config::Config config = triangle();
  CHECK_FALSE(has(text_of(config, {}), "route"));
  config.plan.auxiliary = true;
  const std::string text = text_of(config, {});
  INFO(text);
  CHECK(has(text,
            "\nstar:\n  100.00 %  root agg: a > agg, b > agg\n"
            "  route a > agg over b\n  route b > agg over a\n"));
  CHECK(has(text, "  50.00 %  root b: a > b\n  no auxiliary routes\n"));
  CHECK_FALSE(has(text_of(config, {.brief = true}), "route"));

  config.cluster.nodes.push_back(config.cluster.nodes[0]);
  config.cluster.nodes[3].name.assign(1, 'c');
  config.network.network = plan::network_of_accesses(std::vector<plan::Access>(4));
  for (plan::SiteId from = 0; from < 4; ++from) {
    for (plan::SiteId to = 0; to < 4; ++to) {
      const bool is_fast = from + to == 1 || from + to == 4 || from + to == 5;  // 0 - 1 - 3 - 2
      const std::uint64_t rate = is_fast ? 100'000'000 : 10'000'000;
      if (from != to)
        config.network.network->links.push_back({from, to, rate, Duration::ms(10), 0});
    }
  }
  const std::string two = text_of(config, {.plan = "star"});
  INFO(two);
  CHECK(has(two, "  route a > agg over b, c\n"));
}

TEST_CASE("gradplane plan says what it lacks") {
  CHECK(has(text_of(triangle(), {.ranks = {"c"}}), "there is no node c in cluster.nodes"));
  CHECK(has(text_of(triangle(), {.bytes = "12"}), "--bytes accepts a size with a unit"));
  config::Config config = triangle();
  config.network.network->links.clear();
  config.network.network->links.push_back({0, 1, 100'000'000, {}, 0});
  const std::string none = text_of(config, {});
  INFO(none);
  CHECK(has(none, "refused: there is no plan\n"));
  CHECK(has(none, "\npacked   none: "));
  config.network.network.reset();
  CHECK(has(text_of(config, {}), "says nothing of the network"));
}
