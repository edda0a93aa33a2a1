// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

/// Returns kBase with three more nodes and then `plan`, which begins in line 20.
std::string with_plan(const std::string& plan) {
  return std::string(kBase) +
         "    - name: c\n      address: 10.0.0.3/24\n"
         "    - name: d\n      address: 10.0.0.4/24\n"
         "    - name: e\n      address: 10.0.0.5/24\n" +
         plan;
}

std::string with_tree(const std::string& tree) {
  return with_plan("plan:\n  kind: manual\n  trees:\n    - " + tree + "\n");
}

}  // namespace

TEST_CASE("trees are read with weights, roots and parents by name") {
  const ParsedConfig parsed =
      parse(with_plan("plan:\n  kind: manual\n  trees:\n"
                      "    - root: a\n      parents: {b: a, c: b, d: b, e: a}\n"
                      "    - weight: 3\n      root: b\n      parents: {a: b, c: b, d: b, e: b}\n"));
  for (const ConfigError& error : parsed.errors) UNSCOPED_INFO(error.text());
  REQUIRE(parsed.ok());
  const PlanConfig& plan = parsed.config->plan;
  CHECK(plan.kind == PlanKind::kManual);
  CHECK(plan.root == api::kNoNode);
  REQUIRE(plan.trees.size() == 2);
  CHECK(plan.trees[0].weight == 1);
  CHECK(plan.trees[0].root == 0);
  CHECK(plan.trees[0].parents ==
        std::vector<std::pair<api::NodeId, api::NodeId>>{{1, 0}, {2, 1}, {3, 1}, {4, 0}});
  CHECK(plan.trees[1].weight == 3);
  CHECK(plan.trees[1].root == 1);

  // The effective form loads as the same plan.
  std::string effective = effective_yaml(parsed);
  const std::string hidden = "<hidden>";
  effective.replace(effective.find(hidden), hidden.size(), "00112233445566778899aabbccddeeff");
  INFO(effective);
  const ParsedConfig again = parse(effective);
  for (const ConfigError& error : again.errors) UNSCOPED_INFO(error.text());
  REQUIRE(again.ok());
  CHECK(again.config->plan.trees.size() == 2);
  CHECK(again.config->plan.trees[0].parents == plan.trees[0].parents);
  CHECK(again.config->plan.trees[1].weight == 3);
}

TEST_CASE("trees may wait for a replan beside another plan") {
  const ParsedConfig parsed =
      parse(with_plan("plan:\n  kind: star\n  trees: [{root: b, parents: {a: b}}]\n"));
  REQUIRE(parsed.ok());
  CHECK(parsed.config->plan.root == 0);
  CHECK(parsed.config->plan.trees.size() == 1);
}

TEST_CASE("a tree that cannot be is told with its place and the node") {
  const auto error = [](const std::string& text) {
    const std::vector<std::string> errors = errors_of(text);
    for (const std::string& each : errors) UNSCOPED_INFO(each);
    CHECK(errors.size() == 1);
    return errors.empty() ? "" : errors[0];
  };
  const std::string names = " in cluster.nodes (a, b, c, d, e)";
  CHECK(error(with_tree("{root: x, parents: {b: a}}")) ==
        "f.yaml:23: plan.trees[0].root: value 'x': no node 'x'" + names);
  CHECK(error(with_tree("{root: a, parents: {x: a}}")) ==
        "f.yaml:23: plan.trees[0].parents: value '{\"x\": a}': no node 'x'" + names);
  CHECK(error(with_tree("{root: a, parents: {b: y}}")) ==
        "f.yaml:23: plan.trees[0].parents: value '{\"b\": y}': no node 'y'" + names);
  CHECK(error(with_tree("{root: a, parents: {a: b, b: a}}")) ==
        "f.yaml:23: plan.trees[0].parents: value '{\"a\": b, \"b\": a}': the root a has a parent; "
        "remove its line");
  CHECK(error(with_tree("{root: a, parents: {b: c}}")) ==
        "f.yaml:23: plan.trees[0].parents: value '{\"b\": c}': c is the parent of another node and "
        "has none itself, and it is not the root a");
  CHECK(error(with_tree("{root: a, parents: {b: c, c: b}}")) ==
        "f.yaml:23: plan.trees[0].parents: value '{\"b\": c, \"c\": b}': the parents of b go round "
        "in a circle and never reach the root a");
  CHECK(error(with_tree("{root: a, parents: {b: b}}")) ==
        "f.yaml:23: plan.trees[0].parents: value '{\"b\": b}': the parents of b go round in a "
        "circle and never reach the root a");
  CHECK(error(with_tree("{parents: {b: a}}")).find("plan.trees[0].root: missing; accepted: ") !=
        std::string::npos);
  CHECK(error(with_tree("{root: a, weight: 0}")).find("plan.trees[0].weight: value '0'") !=
        std::string::npos);
  CHECK(error(with_tree("{root: a, parent: {b: a}}")).find("did you mean plan.trees[0].parents?") !=
        std::string::npos);
  CHECK(error(with_tree("{root: a, parents: {b: [a]}}")).find("lines 'node: node'") !=
        std::string::npos);
}

TEST_CASE("a manual plan has trees, and nothing that is of other plans") {
  CHECK(errors_of(with_plan("plan: {kind: manual}\n")) ==
        std::vector<std::string>{"f.yaml:20: plan.trees: missing; plan.kind manual needs at least "
                                 "one tree with its root and parents"});
  CHECK(errors_of(with_plan("plan: {kind: manual, root: a, trees: [{root: a}]}\n")) ==
        std::vector<std::string>{
            "f.yaml:20: plan.root: value 'a': means nothing with plan.kind manual"});
  CHECK(errors_of(with_plan("plan: {kind: manual, trees: []}\n")) ==
        std::vector<std::string>{"f.yaml:20: plan.trees: a list of 1 to 64 trees is accepted, each "
                                 "with root and parents"});
}

TEST_CASE("a node outside of a tree may host ranks, and that is probably a mistake") {
  const auto warnings = [](const std::string& tree) {
    const ParsedConfig parsed = parse(with_tree(tree));
    CHECK(parsed.ok());
    std::vector<std::string> out;
    for (const ConfigError& warning : parsed.warnings) out.push_back(warning.text());
    return out;
  };
  const std::string rest =
      " not in this tree, so a job with ranks there gets no manual plan; give each of them a "
      "parent, "
      "or set aggregate: true for those that host no ranks";
  CHECK(warnings("{root: a, parents: {b: a, c: a, d: b, e: b}}").empty());
  // Node a is an aggregator, so the tree may leave it out.
  CHECK(warnings("{root: b, parents: {c: b, d: b, e: b}}").empty());
  CHECK(
      warnings("{root: a, parents: {b: a, c: a, d: b}}") ==
      std::vector<std::string>{
          "f.yaml:23: plan.trees[0].parents: value '{\"b\": a, \"c\": a, \"d\": b}': warning: node "
          "e is" +
          rest});
  const auto several = warnings("{root: a}");
  REQUIRE(several.size() == 1);
  CHECK(several[0] == "f.yaml:23: plan.trees[0].parents: warning: node b and 3 more are" + rest);
}
