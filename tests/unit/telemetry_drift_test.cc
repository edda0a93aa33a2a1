// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Selective training in a status.
#include <cstdint>
#include <limits>
#include <string>

#include "control/telemetry/status.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::telemetry;

namespace {

StatusReport report_of(const DriftStatus& drift) {
  StatusReport report;
  JobStatus& job = report.jobs.emplace_back();
  job.id = 0x3fa81c02;
  job.mode = "selective-bsp";
  job.selections = 5;
  job.staleness = 4;
  job.drifts = {drift};
  return report;
}

const DriftStatus kDrift{3, 39, 3900, 0.25, 12.5, 0.02};

}  // namespace

TEST_CASE("drifts survive JSON, the largest too, and no node has more than it has ranks") {
  constexpr double kMost = std::numeric_limits<double>::max();
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  for (const DriftStatus& drift : {kDrift, DriftStatus{0, kLast, kLast, kMost, 0, kMost}}) {
    const auto report = from_json(to_json(report_of(drift)));
    REQUIRE(report.ok());
    const JobStatus& job = report.value().jobs.at(0);
    CHECK(job.mode == "selective-bsp");
    CHECK(job.selections == 5);
    CHECK(job.staleness == 4);
    const DriftStatus& read = job.drifts.at(0);
    CHECK(read.rank == drift.rank);
    CHECK(read.averages == drift.averages);
    CHECK(read.step == drift.step);
    CHECK(read.distance == drift.distance);
    CHECK(read.norm == drift.norm);
    CHECK(read.relative == drift.relative);
  }
  std::string many = "{}";
  for (std::size_t i = 0; i < kMaxLocalRanks; ++i) many += ",{}";
  CHECK(from_json(R"({"jobs": [{"drifts": [)" + many + "]}]}").error().message ==
        "jobs[0].drifts: a list of at most 64 entries is accepted");
}

TEST_CASE("a person sees selections and drifts, and nothing of them where training is exact") {
  StatusReport report = report_of(kDrift);
  report.jobs[0].staleness = 0;
  const std::string text = to_text(report);
  CHECK(text.find(
            "  mode    selective-bsp, 5 selections of receivers, one for each step in turn\n") !=
        std::string::npos);
  CHECK(text.find("  drift   rank 3: 2 % at step 3900 (distance 0.25, norm 12.5), measured 39 "
                  "times\n") != std::string::npos);
  report.jobs[0].mode = "exact";
  report.jobs[0].selections = 0;
  report.jobs[0].drifts.clear();
  CHECK(to_text(report).find("mode") == std::string::npos);
}

TEST_CASE("a person sees how far behind a rank may be without being waited for") {
  StatusReport report = report_of(kDrift);
  report.jobs[0].mode = "selective-ssp";
  report.jobs[0].updates_received = 1240;
  report.jobs[0].updates_late = 96;
  CHECK(to_text(report, {.width = 200})
            .find("  mode    selective-ssp, 5 selections of receivers, one for each step in turn; "
                  "no rank "
                  "waits for one that is at most 4 steps behind\n") != std::string::npos);
  CHECK(to_text(report, {.width = 200})
            .find("  updates 1240 of other ranks received, 96 of them after the result of their "
                  "step\n") != std::string::npos);
  report.jobs[0].selections = 1;
  report.jobs[0].staleness = 1;
  CHECK(to_text(report, {.width = 200})
            .find("  mode    selective-ssp, 1 selection of receivers for all steps; no rank waits "
                  "for one "
                  "that is at most 1 step behind\n") != std::string::npos);
}

TEST_CASE("metrics have the last drift of each rank") {
  const std::string text = to_openmetrics(report_of(kDrift));
  for (const char* sample :
       {"job_selections{job_id=\"3fa81c02\"} 5\n", "job_staleness_steps{job_id=\"3fa81c02\"} 4\n",
        "job_rank_averages_total{job_id=\"3fa81c02\",rank=\"3\"} 39\n",
        "job_rank_drift_step{job_id=\"3fa81c02\",rank=\"3\"} 3900\n",
        "job_rank_drift_distance{job_id=\"3fa81c02\",rank=\"3\"} 0.25\n",
        "job_rank_drift_norm{job_id=\"3fa81c02\",rank=\"3\"} 12.5\n",
        "job_rank_drift_ratio{job_id=\"3fa81c02\",rank=\"3\"} 0.02\n"}) {
    CAPTURE(sample);
    CHECK(text.find(std::string("\ngradplane_") + sample) != std::string::npos);
  }
}
