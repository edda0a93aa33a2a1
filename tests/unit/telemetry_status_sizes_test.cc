// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What a status leaves out where it would be too long for a message.
#include <string>

#include "control/telemetry/status.h"
#include "tests/support/catch.h"
#include "tests/unit/telemetry_report.h"

using namespace gradplane;
using namespace gradplane::telemetry;

TEST_CASE("the largest cluster fits a message of the control socket") {
  constexpr std::size_t kMessageBytes = std::size_t{64} << 10;
  StatusReport report = full_report();
  report.peers_omitted = 0;
  report.jobs[0].ranks_omitted = 0;
  report.links_omitted = 0;
  report.links.assign(kMaxNodes, report.links[0]);
  report.peers.assign(kMaxNodes, report.peers[0]);
  report.jobs[0].ranks.assign(kMaxRanks, report.jobs[0].ranks[1]);
  report.jobs[0].ranks.back().attached = true;
  report.jobs.assign(32, report.jobs[0]);
  const std::string text = to_json(report, kMessageBytes);
  CHECK(text.size() <= kMessageBytes);
  const auto shorter = from_json(text);
  REQUIRE(shorter.ok());
  CHECK(shorter.value().peers.size() + shorter.value().peers_omitted == kMaxNodes);
  CHECK(shorter.value().links.size() + shorter.value().links_omitted == kMaxNodes);
  const JobStatus& job = shorter.value().jobs.back();
  CHECK(job.ranks.size() + job.ranks_omitted == kMaxRanks);
  REQUIRE_FALSE(job.ranks.empty());
  CHECK(job.ranks[0].attached);
  CHECK(to_json(full_report(), kMessageBytes) == to_json(full_report()));
}

TEST_CASE("jobs that do not fit a message are left out, from the last, and counted") {
  constexpr std::size_t kMessageBytes = std::size_t{64} << 10;
  StatusReport report = full_report();
  report.jobs_omitted = report.jobs[0].ranks_omitted = report.peers_omitted = 0;
  report.peers.assign(40, report.peers[0]);
  report.jobs[0].ranks.assign(64, report.jobs[0].ranks[1]);
  report.jobs.assign(kMaxJobsReported, report.jobs[0]);
  report.jobs.front().label = "the first";
  const std::string text = to_json(report, kMessageBytes);
  CHECK(text.size() <= kMessageBytes);
  const auto shorter = from_json(text);
  REQUIRE(shorter.ok());
  REQUIRE(shorter.value().jobs.size() >= 16);
  INFO("some ranks and peers of them stay");
  CHECK(shorter.value().jobs.front().ranks.size() >= 16);
  CHECK(shorter.value().jobs.front().ranks.size() + shorter.value().jobs.front().ranks_omitted ==
        64);
  CHECK(shorter.value().peers.size() >= 16);
  CHECK(shorter.value().jobs.size() + shorter.value().jobs_omitted == kMaxJobsReported);
  CHECK(shorter.value().jobs.front().label == "the first");
  const std::string left_out = std::to_string(shorter.value().jobs_omitted);
  CHECK(to_text(shorter.value()).find("\nand " + left_out + " more jobs, left out here\n") !=
        std::string::npos);
}

TEST_CASE("flows are left out before ranks and peers, and not all of them if a part fits") {
  constexpr std::size_t kMessageBytes = std::size_t{64} << 10;
  StatusReport report = full_report();
  report.peers_omitted = 0;
  JobStatus& job = report.jobs[0];
  job.ranks_omitted = job.flows_omitted = 0;
  report.peers.assign(100, report.peers[0]);
  job.ranks.assign(300, job.ranks[1]);
  job.flows.assign(200, {});
  REQUIRE(to_json(report).size() > kMessageBytes);
  const std::string text = to_json(report, kMessageBytes);
  CHECK(text.size() <= kMessageBytes);
  const auto shorter = from_json(text);
  REQUIRE(shorter.ok());
  CHECK(shorter.value().peers.size() == 100);
  const JobStatus& told = shorter.value().jobs[0];
  CHECK(told.ranks.size() == 300);
  CHECK(told.flows.size() >= 25);
  CHECK(told.flows.size() + told.flows_omitted == 200);
}
