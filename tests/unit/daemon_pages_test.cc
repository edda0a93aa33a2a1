// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What the daemon tells operators about rounds and bounds, and how it makes plans from its
// configuration.
#include <string>
#include <vector>

#include "control/daemon/bounds_page.h"
#include "control/daemon/planners.h"
#include "control/daemon/rounds_page.h"
#include "tests/unit/daemon_bench.h"

using namespace gradplane;
using namespace gradplane::daemon;
using namespace gradplane::daemon::testing;

namespace {

/// A report on a round of 10 blocks from each of two sources. Of node w1's blocks 4 are missing, of
/// w2's one.
api::JobRoundReport report_of(std::uint64_t number) {
  api::JobRoundReport out;
  out.job = 5;
  out.epoch = 1;
  RoundReport& report = out.report;
  report.number = number;
  report.round = static_cast<std::uint32_t>(number + 100);
  report.epoch = 9;
  report.bucket = 1;
  report.reason = CloseReason::kDeadline;
  report.duration = Duration::ms(3);
  report.blocks = 10;
  report.source_count = 2;
  report.missing_blocks = 5;
  report.lacking_sources = 2;
  report.sources[0] = {.node = 1, .missing_blocks = 4};
  report.sources[1] = {.node = 2, .missing_blocks = 1};
  report.lacking_tensors = 1;
  report.tensors[0] = {.index = 1, .missing_blocks = 5, .expected_blocks = 8};
  return out;
}

std::vector<std::uint64_t> numbers(const telemetry::RoundsPage& page) {
  std::vector<std::uint64_t> found;
  for (const telemetry::RoundEntry& round : page.rounds) found.push_back(round.number);
  return found;
}

telemetry::RoundsPage ask(const JobBench& bench, const protocol::RoundsRequest& request) {
  auto page = rounds_page(bench.config, bench.jobs, request);
  REQUIRE(page.ok());
  return std::move(page.value());
}

}  // namespace

TEST_CASE("a round is told with names in the place of numbers") {
  JobBench bench;
  bench.install(5);
  REQUIRE(bench.add_bucket(5, 1, 2));
  bench.jobs.keep_report(report_of(1));
  const telemetry::RoundsPage page = ask(bench, {.job = 5, .last = 10});
  CHECK(page.node == "w0");
  CHECK(page.roots == std::vector<std::string>{"w0"});
  CHECK(page.gathers);
  CHECK(page.buckets == 1);
  REQUIRE(page.rounds.size() == 1);
  const telemetry::RoundEntry& round = page.rounds[0];
  CHECK(round.round == 101);
  CHECK(round.epoch == 9);
  CHECK(round.reason == "deadline");
  CHECK(round.duration_ns == 3000000);
  CHECK(round.expected_blocks == 20);
  REQUIRE(round.sources.size() == 2);
  CHECK(round.sources[0].node == "w1");
  CHECK(round.sources[0].ranks == std::vector<std::uint32_t>{1});
  CHECK(round.sources[0].missing_blocks == 4);
  CHECK(round.sources[1].node == "w2");
  CHECK(round.other_sources == 0);
  CHECK(round.other_sources_missing_blocks == 0);
  REQUIRE(round.tensors.size() == 1);
  CHECK(round.tensors[0].name == "layer1");
  CHECK(round.tensors[0].expected_blocks == 8);
}

TEST_CASE("under another plan its roots are named, and earlier rounds are still told") {
  JobBench bench;
  bench.install(5);
  REQUIRE(bench.add_bucket(5, 1));
  bench.jobs.keep_report(report_of(1));
  session::PreparePlan order;
  order.job_id = 5;
  order.first_epoch = 1;
  order.plan = gradplane::testing::star_of(3);
  order.plan.epoch = 2;
  order.plan.members.pop_back();  // w2 leaves
  order.plan.trees[0].root = 1;
  order.plan.trees[0].parent = {1, api::kNoNode};
  REQUIRE(bench.jobs.prepare_plan(order).ok());
  const protocol::RoundsRequest request{.job = 5, .last = 10};
  CHECK(ask(bench, request).roots == std::vector<std::string>{"w0"});
  bench.jobs.commit_plan({.job_id = 5, .first_epoch = 1, .epoch = 2, .activation_round = 200});
  const telemetry::RoundsPage page = ask(bench, request);
  CHECK(page.roots == std::vector<std::string>{"w1"});
  CHECK_FALSE(page.gathers);
  REQUIRE(page.rounds.size() == 1);
  CHECK(page.rounds[0].sources[1].ranks == std::vector<std::uint32_t>{2});
  const std::string text = telemetry::rounds_text({page});
  CHECK(text.find("nothing is gathered at this node; ask w1") != std::string::npos);
  CHECK(text.find("1 of 1 rounds that this node has closed") != std::string::npos);
}

TEST_CASE("sources and tensors that a report has no room for are counted") {
  JobBench bench;
  bench.install(5);
  api::JobRoundReport report = report_of(1);
  report.report.missing_blocks = 50;
  report.report.lacking_sources = kReportedSources + 3;
  for (RoundReport::Source& source : report.report.sources) source = {1, 1};
  report.report.lacking_tensors = kReportedTensors + 2;
  report.report.other_tensors_missing_blocks = 9;
  bench.jobs.keep_report(report);
  const telemetry::RoundsPage page = ask(bench, {.job = 5, .last = 10});
  REQUIRE(page.rounds.size() == 1);
  CHECK(page.rounds[0].sources.size() == kReportedSources);
  CHECK(page.rounds[0].other_sources == 3);
  CHECK(page.rounds[0].other_sources_missing_blocks == 50 - kReportedSources);
  CHECK(page.rounds[0].tensors.size() == kReportedTensors);
  CHECK(page.rounds[0].other_tensors == 2);
  CHECK(page.rounds[0].other_tensors_missing_blocks == 9);
}

TEST_CASE("who asks on gets the rounds that came since, of the same epoch") {
  JobBench bench;
  bench.install(5);
  for (std::uint64_t number = 1; number <= 5; ++number) bench.jobs.keep_report(report_of(number));
  using Numbers = std::vector<std::uint64_t>;
  CHECK(numbers(ask(bench, {.job = 5, .epoch = 1, .after = 2, .last = 10})) == Numbers{3, 4, 5});
  CHECK(numbers(ask(bench, {.job = 5, .epoch = 2, .after = 2, .last = 10})) ==
        Numbers{1, 2, 3, 4, 5});
  CHECK(numbers(ask(bench, {.job = 5, .last = 2})) == Numbers{4, 5});
  const telemetry::RoundsPage none = ask(bench, {.job = 5, .epoch = 1, .after = 5, .last = 10});
  CHECK(none.rounds.empty());
  CHECK(none.next_after == 5);
  CHECK(!rounds_page(bench.config, bench.jobs, {.job = 6}).ok());
}

TEST_CASE("rounds that do not fit a message come with the next one") {
  JobBench bench;
  bench.install(5);
  for (std::uint64_t number = 1; number <= 30; ++number) {
    api::JobRoundReport report = report_of(number);
    report.report.lacking_sources = kReportedSources;
    for (RoundReport::Source& source : report.report.sources) source = {2, 1};
    bench.jobs.keep_report(report);
  }
  protocol::RoundsRequest request{.job = 5, .epoch = 1, .last = 100};
  std::uint64_t next = 1;
  std::size_t pages = 0;
  for (bool more = true; more; ++pages) {
    REQUIRE(pages < 30);
    const telemetry::RoundsPage page = ask(bench, request);
    CHECK(telemetry::to_json(page).size() < protocol::kMaxSocketMessageBytes);
    for (const std::uint64_t number : numbers(page)) CHECK(number == next++);
    more = page.more;
    request.after = page.next_after;
  }
  CHECK(next == 31);
  CHECK(pages > 2);
}

TEST_CASE("the bounds of every tensor are told, page by page") {
  JobBench bench;
  bench.install(5);
  for (const std::uint32_t bucket : {4U, 9U}) REQUIRE(bench.add_bucket(5, bucket, 400));
  protocol::BoundsRequest request{.job = 5};
  std::vector<std::string> told;
  std::size_t pages = 0;
  for (bool more = true; more; ++pages) {
    REQUIRE(pages < 30);
    const auto page = bounds_page(bench.config, bench.jobs, request);
    REQUIRE(page.ok());
    CHECK(telemetry::to_json(page.value()).size() < protocol::kMaxSocketMessageBytes);
    for (const telemetry::BoundsTensor& tensor : page.value().tensors) {
      told.push_back(std::to_string(tensor.bucket) + tensor.name);
      CHECK(tensor.why == "pattern");
      CHECK(tensor.bound == 0.25);
    }
    more = page.value().more;
    request.bucket = page.value().next_bucket;
    request.tensor = page.value().next_tensor;
  }
  REQUIRE(told.size() == 800);
  CHECK(told[0] == "4layer0");
  CHECK(told[399] == "4layer399");
  CHECK(told[400] == "9layer0");
  CHECK(told[799] == "9layer399");
  CHECK(pages > 1);
}

namespace {

std::vector<api::NodeId> roots_of(const config::Config& config) {
  const auto plan = planner_of(config)(ranks_on({1, 2}));
  if (!plan.ok()) FAIL(plan.error().message);
  CHECK(plan.value().plan.epoch == 3);
  CHECK(check_plan(plan.value().plan).ok());
  std::vector<api::NodeId> roots;
  for (const api::Tree& tree : plan.value().plan.trees) roots.push_back(tree.root);
  return roots;
}

}  // namespace

TEST_CASE("a plan has the roots that the configuration names") {
  using Roots = std::vector<api::NodeId>;
  config::Config config = three_nodes();
  CHECK(roots_of(config) == Roots{0});
  config.plan.root = 2;
  CHECK(roots_of(config) == Roots{2});
  config.plan.kind = PlanKind::kSharded;
  config.plan.roots = config::ShardRoots::kTraining;
  CHECK(roots_of(config) == Roots{1, 2});
  config.plan.roots = config::ShardRoots::kAggregators;
  config.cluster.nodes[0].aggregate = true;
  CHECK(roots_of(config) == Roots{0});
}

TEST_CASE(
    "a job has the plan that the configuration names for it, until somebody asks for another") {
  config::Config config = three_nodes();
  config.plan.jobs = {{"big-*", PlanKind::kSharded}};
  config.plan.roots = config::ShardRoots::kTraining;
  session::PlanInput input = ranks_on({1, 2});
  const auto kind = [&] { return planner_of(config)(input).value().plan.kind; };
  CHECK(kind() == PlanKind::kStar);
  input.label = "big-1";
  CHECK(kind() == PlanKind::kSharded);
  input.choice = session::PlanChoice{PlanKind::kStar, {}};
  CHECK(kind() == PlanKind::kStar);
  input.choice->roots = {99};
  const auto missing = planner_of(config)(input);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message.find("there is no node 99") == 0);
}

TEST_CASE("a root has a share by the rate of its link") {
  config::Config config = three_nodes();
  config.plan.kind = PlanKind::kSharded;
  config.plan.roots = config::ShardRoots::kTraining;
  config.cluster.nodes[1].port.link_rate_bits_per_s = 1000000000;
  config.cluster.nodes[2].port.link_rate_bits_per_s = 500000000;
  const auto plan = planner_of(config)(ranks_on({1, 2}));
  REQUIRE(plan.ok());
  REQUIRE(plan.value().plan.trees.size() == 2);
  CHECK(plan.value().plan.trees[0].weight == 2 * plan.value().plan.trees[1].weight);
}

TEST_CASE("a plan over a network comes with its predicted time, and stays when none is better") {
  config::Config config = three_nodes();
  CHECK(planner_of(config)(ranks_on({1, 2})).value().note.empty());
  config.plan.kind = PlanKind::kAuto;
  config.network.bytes = 12'500'000;
  config.block_bytes = kDefaultBlockBytes;
  config.round_bytes = kMaxRoundBytes;
  config.network.network =
      plan::network_of_accesses(std::vector<plan::Access>(3, {100'000'000, 100'000'000, {}, 0}));
  session::PlanInput input = ranks_on({1, 2});
  const auto offer = planner_of(config)(input);
  REQUIRE(offer.ok());
  CHECK(offer.value().planner == PlanKind::kAuto);
  CHECK(offer.value().plan.kind == PlanKind::kPacked);
  CHECK(offer.value().plan.members.size() == 2);
  // 12500000 B are 100 Mbit, and 8 % of overhead are added, at 100 Mbit/s.
  CHECK(offer.value().note == "predicted 1.09 s for an all_reduce of 12500000 B");
  CHECK_FALSE(offer.value().time_in_force);
  api::Plan star{2, 0, input.members, {{1, 2, {2, api::kNoNode}}}, PlanKind::kStar};
  input.in_force = star;
  const auto kept = planner_of(config)(input);
  REQUIRE(kept.ok());
  CHECK(kept.value().plan.kind == PlanKind::kStar);
  CHECK(kept.value().plan.trees[0].root == 2);
  CHECK(kept.value().plan.epoch == 3);
  REQUIRE(kept.value().time_in_force);
  CHECK(kept.value().time_in_force == kept.value().time);
  CHECK(kept.value().note_in_force == "now " + kept.value().note);
  // A switch costs the time of three rounds of 4 MiB.
  CHECK(kept.value().switch_price > Duration::ms(1000));
  CHECK(kept.value().switch_price < Duration::ms(1200));
  // With `redraw` the planner returns the best plan, and the session decides.
  input.redraw = true;
  CHECK(planner_of(config)(input).value().plan.kind == PlanKind::kPacked);
}

TEST_CASE("a planner counts on links as they were measured, and not on nodes that are silent") {
  config::Config config = three_nodes();
  config.plan.kind = PlanKind::kPacked;
  config.network.bytes = 12'500'000;
  config.block_bytes = kDefaultBlockBytes;
  config.cluster.nodes[0].aggregate = true;
  const auto time_of = [&config](const session::PlanInput& input) {
    const auto offer = planner_of(config)(input);
    if (!offer.ok()) FAIL(offer.error().message);
    return offer.value().time.value().to_seconds();
  };
  session::PlanInput input = ranks_on({1, 2});
  // The file names no rates, and nothing has been measured.
  CHECK_FALSE(planner_of(config)(input).ok());
  const auto sample = [](std::uint16_t from, std::uint16_t to, std::uint64_t rate) {
    protocol::LinkSample link;
    link.from = from;
    link.to = to;
    link.bits_per_s = rate;
    link.rate_confidence = 100;
    return link;
  };
  input.links = {sample(1, 2, 100'000'000), sample(2, 1, 100'000'000), sample(0, 1, 100'000'000),
                 sample(0, 2, 100'000'000), sample(1, 0, 100'000'000), sample(2, 0, 100'000'000)};
  const double fast_s = time_of(input);
  input.links[0].bits_per_s = input.links[1].bits_per_s = 20'000'000;
  // The plan goes over node 0, which has no ranks.
  CHECK(time_of(input) < 3 * fast_s);
  const auto members = [&] { return planner_of(config)(input).value().plan.members.size(); };
  CHECK(members() == 3);
  input.silent = {0};
  CHECK(members() == 2);
  CHECK(time_of(input) > 4 * fast_s);
  // A star needs node 0 as its root, so it has it although it is silent.
  config.plan.kind = PlanKind::kStar;
  CHECK(members() == 3);
}

TEST_CASE("bounds are resolved only where something may be missing") {
  config::Config config = three_nodes();
  CHECK(!resolver_of(config));
  config.gather.rules.preset = bounds::Preset::kMlt;
  CHECK(resolver_of(config));
  config.gather.rules.preset = bounds::Preset::kExact;
  config.gather.rules.patterns.push_back({"*.bias", 0.5F});
  REQUIRE(resolver_of(config));
  const session::ResolvedBounds resolved = resolver_of(config)(
      {{1, ElementType::kFloat32, 512, {{"a.bias", 0, 512, 0, api::BoundReason::kExact, ""}}}});
  REQUIRE(resolved.tables.size() == 1);
  CHECK(resolved.tables[0].tensors[0].why == api::BoundReason::kPattern);
  config.gather.rules.patterns.clear();
  CHECK(!resolver_of(config));
  config.gather.rules.wire_types.push_back({"*", WireType::kInt8});
  CHECK(resolver_of(config));
}
