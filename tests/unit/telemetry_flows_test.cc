// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/flows.h"

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::telemetry;

namespace {

FlowStatus flow(std::string limit, std::string reason) {
  return {.node = "agg",
          .rtt_ns = 1'500'000,
          .rtt_min_ns = 800'000,
          .rate_bits_per_second = 187'500'000,
          .window_blocks = 83,
          .in_flight_blocks = 41,
          .pacing_bits_per_second = 200'000'000,
          .granted = true,
          .grant_blocks = 17,
          .controller = "cubic",
          .gain = 1.125,
          .limit = std::move(limit),
          .reason = std::move(reason)};
}

StatusReport report_with(std::vector<FlowStatus> flows) {
  StatusReport report;
  report.node = "w1";
  JobStatus job;
  job.id = 0x3fa81c02;
  job.label = "train.py";
  job.flows = std::move(flows);
  report.jobs.push_back(std::move(job));
  return report;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("flows are told with numbers, the limit and why") {
  const std::string text = flows_text(report_with({flow("window", "loss")}));
  INFO(text);
  CHECK(has(text, "job 3fa81c02 train.py\n"));
  for (const char* part : {"agg", "1.5 ms", "800.0 us", "187.5 Mbit/s", "83", "41", "17",
                           "cubic x 1.12", "window", "reduced after a loss"}) {
    CHECK(has(text, part));
  }
}

TEST_CASE("flows say by which policy and with which weight this node grants its link to a job") {
  StatusReport report = report_with({flow("window", "loss")});
  CHECK(has(flows_text(report), "job 3fa81c02 train.py\n"));
  report.jobs[0].grant_policy = "weighted";
  report.jobs[0].grant_weight = 2.5;
  CHECK(has(flows_text(report), "job 3fa81c02 train.py, grants weighted, weight 2.5\n"));
  CHECK(has(flows_json(report), "\"grant_policy\":\"weighted\""));
  CHECK(has(flows_json(report), "\"grant_weight\":2.5"));
  // No weight is shown if the policy does not use weights.
  report.jobs[0].grant_policy = "fair";
  CHECK(has(flows_text(report), "job 3fa81c02 train.py, grants fair\n"));
  const Result<StatusReport> again = from_json(to_json(report));
  REQUIRE(again.ok());
  CHECK(again.value().jobs[0].grant_policy == "fair");
  CHECK(again.value().jobs[0].grant_weight == 2.5);
}

TEST_CASE("a limit that is not the controller's has words of its own") {
  CHECK(has(flows_text(report_with({flow("application", "loss")})), "nothing is queued"));
  CHECK(has(flows_text(report_with({flow("peer", "loss")})), "does not answer"));
  CHECK(has(flows_text(report_with({flow("peer link", "loss")})), "share of the peer's link"));
  CHECK_FALSE(has(flows_text(report_with({flow("application", "loss")})), "after a loss"));
  // A newer daemon may send unknown reasons.
  CHECK(has(flows_text(report_with({flow("window", "moon\x1b")})), "moon?"));
}

TEST_CASE("what is not there is a dash, and a gain of 1 goes without saying") {
  FlowStatus idle;
  idle.node = "agg";
  idle.controller = "delay";
  idle.limit = "application";
  const std::string text = flows_text(report_with({idle}));
  INFO(text);
  CHECK(has(text, " - "));
  CHECK(has(text, " idle "));
  CHECK_FALSE(has(flows_text(report_with({flow("window", "loss")})), "idle"));
  CHECK(has(text, "delay "));
  CHECK_FALSE(has(text, "delay x"));
  CHECK(flows_text(report_with({})) == "no job of node w1 sends anything\n");
}

TEST_CASE("flows survive the way through JSON") {
  StatusReport report = report_with({flow("window", "loss"), flow("peer", "silence")});
  report.jobs[0].flows_omitted = 3;
  const auto again = from_json(to_json(report));
  REQUIRE(again.ok());
  CHECK(flows_json(again.value()) == flows_json(report));
  CHECK(flows_text(again.value()) == flows_text(report));
  CHECK(has(flows_text(report), "and 3 more, left out here"));
  const std::string json = flows_json(report);
  for (const char* part :
       {"\"limit\":\"window\"", "\"reason\":\"loss\"", "\"grant_blocks\":17", "\"granted\":true",
        "\"gain\":1.125", "\"flows_omitted\":3", "\"pacing_bits_per_second\":200000000"}) {
    CHECK(has(json, part));
  }
  CHECK(flows_json(report_with({})) == "[]\n");
}

TEST_CASE("a report that would be too long leaves flows out and counts them") {
  StatusReport report = report_with(std::vector<FlowStatus>(64, flow("window", "loss")));
  const std::string text = to_json(report, 4096);
  CHECK(text.size() <= 4096);
  const auto again = from_json(text);
  REQUIRE(again.ok());
  CHECK(again.value().jobs[0].flows.size() + again.value().jobs[0].flows_omitted == 64);
}

TEST_CASE("a job of which all flows were left out says so") {
  StatusReport report = report_with({});
  report.jobs[0].flows_omitted = 7;
  CHECK(flows_text(report) ==
        "job 3fa81c02 train.py\n  7 flows, left out because the status would be too long\n");
  CHECK(has(flows_json(report), "\"flows_omitted\":7"));
}
