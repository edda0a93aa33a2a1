// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>

#include "control/daemon/topology_page.h"
#include "tests/unit/daemon_bench.h"

using namespace gradplane;
using namespace gradplane::daemon;
using gradplane::daemon::testing::JobBench;

namespace {

plan::Network three_accesses() {
  plan::Access access;
  access.up_bits_per_s = access.down_bits_per_s = 100'000'000;
  access.rtt = Duration::ms(1);
  return plan::network_of_accesses({access, access, access});
}

telemetry::LinkStatus link_from(const char* node) {
  telemetry::LinkStatus link;
  link.node = node;
  link.rate_bits_per_second = 7;
  return link;
}

}  // namespace

TEST_CASE("a topology has the links to this node and the trees of its jobs") {
  JobBench bench;
  bench.install(5);
  const auto page = topology_page(bench.config, bench.jobs, {link_from("w2")}, false);
  CHECK(page.node == "w0");
  REQUIRE(page.nodes.size() == 3);
  CHECK(page.nodes[1].name == "w1");
  CHECK(page.nodes[1].site.empty());
  REQUIRE(page.links.size() == 1);
  CHECK(page.links[0].measured.node == "w2");
  CHECK(page.links[0].to == "w0");
  REQUIRE(page.jobs.size() == 1);
  CHECK(page.jobs[0].id == 5);
  CHECK(page.jobs[0].label == "train");
  REQUIRE(page.jobs[0].trees.size() == 1);
  const telemetry::TopologyTree& tree = page.jobs[0].trees[0];
  CHECK(tree.root == "w0");
  REQUIRE(tree.edges.size() == 2);
  CHECK(tree.edges[1].from == "w2");
  CHECK(tree.edges[1].to == "w0");
  CHECK(page.jobs[0].plans.empty());
  CHECK(page.jobs[0].not_compared.empty());
}

TEST_CASE("the trees are those of the plan in force, not of one that is only prepared") {
  JobBench bench;
  bench.install(5);
  session::PreparePlan other{.job_id = 5, .first_epoch = 1, .plan = JobBench::order(5).plan};
  other.plan.epoch = 2;
  other.plan.trees[0].root = 1;
  other.plan.trees[0].parent = {1, api::kNoNode, 1};
  REQUIRE(bench.jobs.prepare_plan(other).ok());
  const auto root = [&] {
    return topology_page(bench.config, bench.jobs, {}, false).jobs[0].trees[0].root;
  };
  CHECK(root() == "w0");
  bench.jobs.commit_plan({.job_id = 5, .first_epoch = 1, .epoch = 2, .activation_round = 9});
  CHECK(root() == "w1");
}

TEST_CASE("why compares all planners over the network of the file, or says why it cannot") {
  JobBench bench;
  bench.install(5);
  auto page = topology_page(bench.config, bench.jobs, {}, true);
  CHECK(page.jobs[0].not_compared.find("section network") != std::string::npos);
  CHECK(page.jobs[0].plans.empty());

  bench.config.network.network = three_accesses();
  bench.config.network.bytes = 10'000'000;
  page = topology_page(bench.config, bench.jobs, {}, true);
  const telemetry::TopologyJob& job = page.jobs[0];
  CHECK(job.not_compared.empty());
  CHECK(job.predicted_ns > 0);
  CHECK(job.gain_needed_percent == 10);
  CHECK(job.traffic_bytes == 10'000'000);
  const auto planned = [&](const char* name) {
    const auto at = std::find_if(job.plans.begin(), job.plans.end(),
                                 [&](const auto& plan) { return plan.planner == name; });
    REQUIRE(at != job.plans.end());
    return at->predicted_ns;
  };
  CHECK(planned("star") == job.predicted_ns);  // which is in force
  CHECK(planned("sharded") > 0);
  CHECK(planned("sharded") < planned("star"));
  CHECK(planned("packed") > 0);

  bench.config.network.network =
      plan::network_of_accesses(std::vector<plan::Access>(kMaxComparedSites + 1));
  page = topology_page(bench.config, bench.jobs, {}, true);
  CHECK(page.jobs[0].not_compared.find("gradplane plan") != std::string::npos);
}
