// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <string>

#include "control/config/plan_request.h"
#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

/// Returns kBase, whose last line is 13, followed by `more`.
std::string with(const std::string& more) {
  return std::string(kBase) + more;
}

plan::Network network_of(const std::string& text) {
  const ParsedConfig parsed = parse(text);
  for (const ConfigError& error : parsed.errors) UNSCOPED_INFO(error.text());
  REQUIRE(parsed.ok());
  REQUIRE(parsed.config->network.network);
  return *parsed.config->network.network;
}

constexpr const char* kLinked =
    "      site: south\n"
    "network:\n  routing: fastest\n  bytes: 10 MiB\n"
    "  sites: [{name: hub, up: 1 Gbit/s, rtt: 4 ms, loss: 0.5 %}]\n"
    "  links:\n"
    "    - {from: a, to: hub, rate: 100 Mbit/s, rate_back: 40 Mbit/s, rtt: 20 ms, loss: 0.1 %}\n"
    "    - {from: hub, to: south, rate: 0 Mbit/s}\n";

}  // namespace

TEST_CASE("a network is read with its sites, links and rates") {
  const plan::Network network = network_of(with(kLinked));
  CHECK(network.routing == plan::Routing::kFastest);
  REQUIRE(network.sites.size() == 3);
  CHECK(network.sites[0].name == "hub");
  CHECK(network.sites[0].access.up_bits_per_s == 1'000'000'000);
  CHECK(network.sites[0].access.down_bits_per_s == plan::kUnlimited);
  CHECK(network.sites[0].access.rtt == Duration::ms(4));
  CHECK(network.sites[0].access.loss_ppm == 5000);
  CHECK(network.sites[1].name == "a");
  CHECK(network.sites[2].name == "south");
  REQUIRE(network.nodes.size() == 2);
  CHECK(network.nodes[0].site == 1);
  CHECK(network.nodes[1].site == 2);
  CHECK(network.nodes[1].access.up_bits_per_s == plan::kUnlimited);
  REQUIRE(network.links.size() == 4);
  const plan::Link& there = network.links[0];
  const plan::Link& back = network.links[1];
  CHECK((there.from == 1 && there.to == 0 && back.from == 0 && back.to == 1));
  CHECK(there.bits_per_s == 100'000'000);
  CHECK(back.bits_per_s == 40'000'000);
  CHECK((there.rtt == Duration::ms(20) && back.rtt == Duration::ms(20)));
  CHECK((there.loss_ppm == 1000 && back.loss_ppm == 1000));
  CHECK((network.links[2].bits_per_s == 0 && network.links[3].bits_per_s == 0));

  const Config config = *parse(with(kLinked)).config;
  const plan::PlanRequest request = plan_request_of(config);
  CHECK(request.traffic.bytes == 10 << 20);
  CHECK(request.traffic.block_bytes == config.block_bytes);
  CHECK(request.traffic.window_bytes == kMaxInFlightRounds * config.round_bytes);
  CHECK(request.summing == std::vector<api::NodeId>{0});
}

TEST_CASE("the effective form of a network says the same") {
  const ParsedConfig parsed = parse(with(kLinked));
  REQUIRE(parsed.ok());
  std::string effective = effective_yaml(parsed);
  const std::string hidden = "<hidden>";
  effective.replace(effective.find(hidden), hidden.size(), "00112233445566778899aabbccddeeff");
  INFO(effective);
  const plan::Network again = network_of(effective);
  CHECK(again.sites.size() == 3);
  REQUIRE(again.links.size() == 4);
  CHECK(again.links[1].bits_per_s == 40'000'000);
  CHECK(again.routing == plan::Routing::kFastest);
}

TEST_CASE("rates of all links are a network, rates of some are none") {
  const plan::Network network =
      network_of(base_with("  interface: eth1\n", "  interface: eth1\n  link_rate: 10 Gbit/s\n"));
  CHECK(network.links.empty());
  REQUIRE(network.nodes.size() == 2);
  CHECK(network.nodes[0].site != network.nodes[1].site);
  CHECK(network.nodes[1].access.down_bits_per_s == 10'000'000'000);
  CHECK_FALSE(parse(kBase).config->network.network);
  CHECK_FALSE(parse(with("      port: {link_rate: 1 Gbit/s}\n")).config->network.network);
}

TEST_CASE("the planners of a network need one, and no roots") {
  for (const std::string kind : {"fapt", "packed", "auto"}) {
    CHECK(errors_of(with("plan:\n  kind: " + kind + "\n")) ==
          std::vector<std::string>{
              "f.yaml:15: plan.kind: value '" + kind +
              "': needs to know the network: write a section network, or port.link_rate of every "
              "node"});
    CHECK(errors_of(with(kLinked + ("plan:\n  kind: " + kind + "\n  root: a\n"))) ==
          std::vector<std::string>{
              "f.yaml:24: plan.root: value 'a': means nothing with plan.kind " + kind});
    const ParsedConfig parsed = parse(with(kLinked + ("plan:\n  kind: " + kind + "\n")));
    REQUIRE(parsed.ok());
    CHECK(root_candidates(*parsed.config, parsed.config->plan.kind).empty());
  }
}

TEST_CASE("jobs may have plans of their own") {
  const ParsedConfig parsed =
      parse(with(kLinked + std::string("plan:\n  jobs: {\"wan-*\": auto, \"*\": sharded}\n")));
  for (const ConfigError& error : parsed.errors) UNSCOPED_INFO(error.text());
  REQUIRE(parsed.ok());
  CHECK(parsed.config->plan.kind == PlanKind::kStar);
  CHECK(plan_kind_of(*parsed.config, "wan-7") == PlanKind::kAuto);
  CHECK(plan_kind_of(*parsed.config, "lan") == PlanKind::kSharded);
  CHECK(plan_kind_of(Config{}, "lan") == PlanKind::kStar);
  const auto errors = errors_of(with("plan:\n  jobs: {\"wan-*\": packed}\n"));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].find("packed needs to know the network") != std::string::npos);
}

TEST_CASE("auxiliary routes without a network are probably a mistake") {
  const ParsedConfig unknown = parse(with("plan:\n  auxiliary: true\n"));
  REQUIRE(unknown.ok());
  REQUIRE(unknown.warnings.size() == 1);
  CHECK(unknown.warnings[0].text() ==
        "f.yaml:15: plan.auxiliary: value 'true': warning: a job begins without auxiliary routes, "
        "because the file says nothing of the network; write a section network, or port.link_rate "
        "of every node");
  std::string linked = kLinked;
  linked[linked.find("0 Mbit/s}")] = '5';
  CHECK(parse(with(linked + "plan:\n  auxiliary: true\n")).warnings.empty());
  CHECK(parse(with("plan:\n  auxiliary: false\n")).warnings.empty());
}

TEST_CASE("a site that no link reaches is a mistake") {
  CHECK(errors_of(with("      site: berlin\nnetwork:\n  sites: [{name: bonn}]\n  links:\n"
                       "    - {from: a, to: bonn, rate: 1 Gbit/s}\n")) ==
        std::vector<std::string>{
            "f.yaml:14: cluster.nodes[1].site: value 'berlin': no link of network.links goes to "
            "the site berlin of node b, so nobody reaches it; correct the name, or add a link"});
}

TEST_CASE("a network that is cut is probably a mistake") {
  const std::string cut =
      "warning: no way over links with a rate leads from node a to node b and back, so no planner "
      "that needs the network has a plan for ranks on both sides; add a link between them, or "
      "correct the rate that is 0";
  const auto warnings = [](const std::string& text) {
    const ParsedConfig parsed = parse(with(text));
    CHECK(parsed.ok());
    std::vector<std::string> out;
    for (const ConfigError& warning : parsed.warnings) out.push_back(warning.text());
    return out;
  };
  // Nodes are cut off by a link without a rate, in both directions or in one.
  CHECK(warnings(kLinked) ==
        std::vector{"f.yaml:21: network.links[1].rate: value '0 Mbit/s': " + cut});
  const auto linked = [](const std::string& rates) {
    return "network:\n  links: [{from: a, to: b, " + rates + "}]\n";
  };
  CHECK(warnings(linked("rate: 1 Gbit/s, rate_back: 0 bit/s")) ==
        std::vector{"f.yaml:15: network.links[0].rate_back: value '0 bit/s': " + cut});
  CHECK(warnings(linked("rate: 0 bit/s, rate_back: 1 Gbit/s")) ==
        std::vector{"f.yaml:15: network.links[0].rate: value '0 bit/s': " + cut});
  CHECK(warnings(linked("rate: 1 Gbit/s")).empty());
  // Nodes are cut off because no link joins their sites.
  const std::string islands =
      "      site: south\n"
      "    - {name: c, address: 10.0.0.3/24}\n    - {name: d, address: 10.0.0.4/24}\n"
      "network:\n  links:\n    - {from: a, to: c, rate: 1 Gbit/s}\n"
      "    - {from: south, to: d, rate: 1 Gbit/s}\n";
  const auto found = warnings(islands);
  REQUIRE(found.size() == 1);
  CHECK(found[0].starts_with("f.yaml:18: network.links: warning: no way"));
  CHECK(found[0].find("from node a to node b (and to 1 more) and back") != std::string::npos);
  CHECK(warnings(islands + "    - {from: c, to: d, rate: 1 Gbit/s}\n").empty());
}

TEST_CASE("what is wrong with a network is told by line") {
  const auto network = [](const std::string& text) { return with("network:\n" + text); };
  CHECK(errors_of(network("  links:\n    - {from: a, to: c, rate: 1 Gbit/s}\n")) ==
        std::vector<std::string>{
            "f.yaml:16: network.links[0].to: value 'c': no such site; name one of network.sites, "
            "the site of a node, or a node without a site"});
  CHECK(errors_of(network("  links:\n    - {from: a, to: a, rate: 1 Gbit/s}\n")) ==
        std::vector<std::string>{
            "f.yaml:16: network.links[0].to: value 'a': a link goes to another site"});
  CHECK(errors_of(network("  links:\n    - {from: a, to: b, rate: 1 Gbit/s}\n"
                          "    - {from: b, to: a, rate: 1 Gbit/s}\n")) ==
        std::vector<std::string>{
            "f.yaml:17: network.links[1].to: value 'a': another entry has a link between the two "
            "sites; an entry has both directions"});
  CHECK(errors_of(network("  sites: [{name: x}, {name: x}]\n")) ==
        std::vector<std::string>{"f.yaml:15: network.sites[1].name: value 'x': another entry of "
                                 "network.sites has this name"});
  CHECK(errors_of(network("  links: [{from: a, to: b}]\n")).size() == 1);
  CHECK(errors_of(network("  links: [{from: a, to: b, rate: 11 Tbit/s}]\n")).size() == 1);
  CHECK(errors_of(network("  links: [{from: a, to: b, rate: 1 Gbit/s, loss: 51 %}]\n")).size() ==
        1);
  CHECK(errors_of(network("  links: [{from: a, to: b, rate: 1 Gbit/s, rtt: 11 s}]\n")).size() == 1);
  CHECK(errors_of(network("  links: []\n")).size() == 1);
}
