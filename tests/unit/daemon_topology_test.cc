// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>

#include "control/config/plan_request.h"
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

telemetry::Topology with_reasons(const config::Config& config, const KnownTopology& known) {
  Reasons reasons(config, why_question(config, known));
  std::optional<telemetry::Topology> page;
  while (!page) page = reasons.step();
  return *std::move(page);
}

}  // namespace

TEST_CASE("a topology has the links to this node and the trees of its jobs") {
  JobBench bench;
  bench.install(5);
  const auto page = topology_page(bench.config, {bench.jobs, {link_from("w2")}});
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
  const auto shown = [&] { return topology_page(bench.config, {bench.jobs, {}}).jobs[0]; };
  CHECK(shown().trees[0].root == "w0");
  CHECK(shown().next_kind.empty());
  bench.jobs.commit_plan({.job_id = 5, .first_epoch = 1, .epoch = 2, .activation_round = 9});
  // The prepared plan is not in force until round 9.
  CHECK(shown().trees[0].root == "w0");
  CHECK(shown().epoch == 1);
  CHECK(shown().next_kind == "star");
  CHECK(shown().next_epoch == 2);
  CHECK(shown().next_round == 9);
  engine::JobRuntime* const runtime = bench.jobs.installed()[0].parts[0].runtime.get();
  bench.return_plan(runtime, 3);
  CHECK(shown().epoch == 1);
  bench.return_plan(runtime, 1);
  CHECK(shown().trees[0].root == "w1");
  CHECK(shown().epoch == 2);
  CHECK(shown().next_kind.empty());
}

TEST_CASE("a coordinator shows what all members measure, and the jobs that it has no part in") {
  JobBench bench;
  bench.install(5);
  session::TopologyView told;
  told.links = {{.from = 1, .to = 2, .bits_per_s = 30, .rate_confidence = 80, .rate_age_ms = 2000},
                {.from = 1, .to = bench.config.self, .bits_per_s = 40, .rate_confidence = 80}};
  const session::PlanOutlook kept{PlanKind::kPacked, Duration::seconds(1), {}, "it is the best"};
  const session::PlanOutlook star{PlanKind::kStar, {}, {}, "the job began with it"};
  told.plans = {{5, "train", JobBench::order(5).plan, kept, Duration::seconds(9)},
                {6, "other", JobBench::order(5).plan, star, {}}};
  const auto page = topology_page(bench.config, {bench.jobs, {link_from("w2")}, &told});
  REQUIRE(page.links.size() == 2);  // for links to itself the node uses its own samples
  CHECK(page.links[1].measured.node == "w1");
  CHECK(page.links[1].to == "w2");
  CHECK(page.links[1].measured.rate_bits_per_second == 30);
  CHECK(page.links[1].measured.rate_age_ns == 2'000'000'000);
  REQUIRE(page.jobs.size() == 2);
  CHECK(page.jobs[0].id == 5);
  CHECK(page.jobs[1].id == 6);
  CHECK(page.jobs[1].label == "other");
  CHECK(page.jobs[0].planner == "packed");
  CHECK(page.jobs[0].decision == "it is the best");
  CHECK(page.jobs[0].decision_age_ns == 9'000'000'000);
  CHECK(page.jobs[0].not_redrawn.empty());
  CHECK(page.jobs[1].not_redrawn == "plans of star do not follow the network");
  bench.config.plan.redraw.enabled = false;
  const auto still = topology_page(bench.config, {bench.jobs, {}, &told});
  CHECK(still.jobs[0].not_redrawn == "plan.redraw.enabled is false");
}

TEST_CASE("why compares all planners over the network of the file, or says why it cannot") {
  JobBench bench;
  bench.install(5);
  const auto why = [&] { return with_reasons(bench.config, {bench.jobs, {}}); };
  auto page = why();
  CHECK(page.jobs[0].not_compared.find("section network") != std::string::npos);
  CHECK(page.jobs[0].plans.empty());
  CHECK(page.uses.empty());

  bench.config.network.network = three_accesses();
  bench.config.network.bytes = 10'000'000;
  bench.config.plan.redraw.gain_ppm = 250'000;
  page = why();
  const telemetry::TopologyJob& job = page.jobs[0];
  CHECK(job.not_compared.empty());
  CHECK(job.predicted_ns > 0);
  CHECK(job.gain_needed_percent == 25);
  CHECK(job.traffic_bytes == 10'000'000);
  const auto planned = [&](const char* name) {
    const auto at = std::find_if(job.plans.begin(), job.plans.end(),
                                 [&](const auto& plan) { return plan.planner == name; });
    REQUIRE(at != job.plans.end());
    return at->predicted_ns;
  };
  CHECK(planned("star") == job.predicted_ns);  // the star is in force
  CHECK(planned("sharded") > 0);
  CHECK(planned("sharded") < planned("star"));
  CHECK(planned("packed") > 0);
}

TEST_CASE("why compares with plans that have the roots to which an operator restricts the job") {
  JobBench bench;
  bench.install(5);
  bench.config.network.network = three_accesses();
  bench.config.network.network->nodes[0].access.down_bits_per_s = 10'000'000;
  bench.config.network.bytes = 10'000'000;
  session::TopologyView told;
  told.plans = {{5, "train", JobBench::order(5).plan, {}, {}}};
  const auto packed = [&] {
    const auto page = with_reasons(bench.config, {bench.jobs, {}, &told});
    const auto& plans = page.jobs[0].plans;
    const auto at = std::find_if(plans.begin(), plans.end(),
                                 [](const auto& plan) { return plan.planner == "packed"; });
    REQUIRE(at != plans.end());
    return std::pair(at->predicted_ns, page.jobs[0].roots);
  };
  const auto [free_ns, no_roots] = packed();
  CHECK(no_roots.empty());
  told.plans[0].roots = {0};
  const auto [restricted_ns, roots] = packed();
  CHECK(roots == std::vector<std::string>{"w0"});
  CHECK(restricted_ns > free_ns);
}

TEST_CASE("a coordinator's why counts on what was measured, and says what came from where") {
  JobBench bench;
  bench.install(5);
  plan::Network network = three_accesses();
  for (std::size_t s = 0; s < 3; ++s) network.sites[s] = {"s" + std::to_string(s), {}};
  for (auto& node : network.nodes) node.access = {};
  for (plan::SiteId a = 0; a < 3; ++a) {
    for (plan::SiteId b = 0; b < 3; ++b) {
      if (a != b) network.links.push_back({a, b, 100'000'000, Duration::ms(1), 0});
    }
  }
  bench.config.network.network = network;
  bench.config.network.bytes = 10'000'000;
  session::TopologyView told;
  const auto why = [&] { return with_reasons(bench.config, {bench.jobs, {}, &told}); };
  const std::uint64_t before = why().jobs[0].predicted_ns;
  told.links = {
      {.from = 1, .to = 0, .bits_per_s = 10'000'000, .rate_confidence = 100, .rate_age_ms = 2000}};
  const auto page = why();
  CHECK(page.jobs[0].predicted_ns > before * 5);
  REQUIRE(page.uses.size() == 6);
  for (const telemetry::TopologyUse& use : page.uses) {
    CHECK(use.configured_bits_per_second == 100'000'000);
    const bool is_measured = use.from == network.sites[1].name && use.to == network.sites[0].name;
    CHECK(static_cast<double>(use.bits_per_second) == Approx(is_measured ? 1e7 : 1e8));
    CHECK(use.measured.node == (is_measured ? "w1" : ""));
    CHECK(use.measured.rate_age_ns == (is_measured ? 2'000'000'000 : 0));
  }
}

TEST_CASE("why counts on the samples of the plan in force, where a plan has selections") {
  JobBench bench;
  bench.config.training.mode = config::TrainingMode::kSelectiveBsp;
  bench.config.training.receivers_ppm = 1'000'000;
  bench.config.network.bytes = 10'000'000;
  // The file gives the rates of links and nothing else.
  for (auto& node : bench.config.cluster.nodes) node.port.link_rate_bits_per_s = 100'000'000;
  plan::PlanRequest request = config::plan_request_of(bench.config);
  request.planner = PlanKind::kSharded;
  request.members = gradplane::daemon::testing::ranks_on({0, 1, 2}).members;
  const auto plan = plan::make_plan(request);
  REQUIRE(plan.ok());
  session::TopologyView told;
  told.plans = {{6, "other", plan.value(), {}, {}}};
  const auto predicted = [&](Duration alone_for) {
    told.plans[0].alone_for = alone_for;
    const auto page = with_reasons(bench.config, {bench.jobs, {}, &told});
    REQUIRE(page.jobs.size() == 1);
    CHECK(page.jobs[0].not_compared.empty());
    CHECK(page.jobs[0].exchanges);
    return page.jobs[0].predicted_ns;
  };
  const std::uint64_t configured = predicted(Duration::seconds(20));
  CHECK(configured > 0);
  for (const api::NodeId from : {api::NodeId{0}, api::NodeId{2}})
    told.links.push_back({.from = from,
                          .to = 1,
                          .bits_per_s = 5'000'000,
                          .rate_confidence = 100,
                          .rate_age_ms = 10'000});
  CHECK(predicted(Duration::seconds(5)) == configured);
  CHECK(predicted(Duration::seconds(20)) > configured * 3);
}

TEST_CASE("a node that does not coordinate names the one that does") {
  JobBench bench;
  bench.install(5);
  const auto page = without_reasons(topology_page(bench.config, {bench.jobs, {}}), "w2");
  CHECK(page.jobs[0].not_compared.find("node w2") != std::string::npos);
}
