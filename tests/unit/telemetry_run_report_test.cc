// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/run_report.h"

#include "tests/support/catch.h"

using namespace gradplane::telemetry;

namespace {

constexpr const char* kRank0 =
    R"({"version": 1, "pid": 11, "rank": "0", "carried_ops": 3, "carried_buckets": 2,)"
    R"( "carried_rounds": 4, "carried_bytes": 5120, "fallbacks": 1, "fallen_back_ops": 2,)"
    R"( "recovered_rounds": 1, "failed_ops": 0, "pending_ns": 1, "waited_ns": 1,)"
    R"( "partial_rounds": 2, "partial_blocks": 9, "averages": 3,)"
    R"( "passed_through": {"device": 2, "reduce_op": 1}, "fallback_cause": "no daemon"})";

}  // namespace

TEST_CASE("a run report is read line by line") {
  const RunReport report = parse_run_report(std::string(kRank0) + "\n\n{\"pid\": 12}\n");
  REQUIRE(report.processes.size() == 2);
  CHECK(report.unreadable_lines == 0);
  CHECK(report.carried());
  CHECK(report.processes[0].attached);
  CHECK(report.processes[0].carried_rounds == 4);
  CHECK(report.processes[0].passed_through.at("device") == 2);
  CHECK_FALSE(report.processes[1].attached);
}

TEST_CASE("the plain names of members are understood too") {
  const RunReport report =
      parse_run_report(R"({"attached": true, "carried": 7, "rounds": 8, "bytes": 9, "rank": 3})");
  REQUIRE(report.processes.size() == 1);
  CHECK(report.processes[0].carried_ops == 7);
  CHECK(report.processes[0].carried_bytes == 9);
  CHECK(report.processes[0].rank == "3");
}

TEST_CASE("the verdict says which operations were carried") {
  const std::string text = verdict_text(parse_run_report(
      R"({"carried_ops": 5, "carried": {"all_reduce": 2, "broadcast": 3}, "carried_rounds": 6})"));
  CHECK(text.find("carried 5 collectives (all_reduce 2, broadcast 3; 6 rounds, 0 B)") !=
        std::string::npos);
}

TEST_CASE("the verdict says what exchanges of updates did") {
  const std::string text = verdict_text(parse_run_report(
      R"({"carried_ops": 5, "early_rounds": 70, "early_blocks": 12941, "averages": 1,)"
      R"( "last_drift_ppm": 21500})"));
  CHECK(text.find(", 70 rounds ended before some update of another rank, which a later one takes "
                  "(12941 blocks), 1 exact mean of the parameters, last drift 2.15 %\n") !=
        std::string::npos);
  CHECK(verdict_text(parse_run_report(kRank0)).find("drift") == std::string::npos);
}

TEST_CASE("the verdict has the longest cause of a fallback whole") {
  const std::string cause = "rank 63 reports: " + std::string(1023, 'x');
  CHECK(verdict_text(parse_run_report(R"({"fallback_cause": ")" + cause + "\"}"))
            .ends_with(": " + cause + "\n"));
}

TEST_CASE("garbage in a run report is counted") {
  const RunReport report = parse_run_report(
      "x\n[1]\n{\"pid\": \"a\", \"rank\": [], "
      "\"passed_through\": 3, \"carried_ops\": -1}\n{");
  CHECK(report.unreadable_lines == 3);
  REQUIRE(report.processes.size() == 1);
  CHECK_FALSE(report.carried());
}

TEST_CASE("the verdict") {
  CHECK(verdict_text(parse_run_report(kRank0)) ==
        "gradplane: attached: 1 of 1 reporting processes went through gradplane; in 1 of them some "
        "collectives fell back\n"
        "  pid 11, rank 0: attached; carried 3 collectives (4 rounds, 5.0 KiB), passed through 3 "
        "(device 2, reduce_op 1), 2 rounds partial in 9 blocks, 3 exact means of the parameters, "
        "fell back 1 time for 2 collectives, recovered 1 round: no daemon\n");
  CHECK(verdict_text({}).starts_with("gradplane: not attached: no process reported. Either"));
  CHECK(verdict_text({}, "ended with exit status 2") ==
        "gradplane: not attached: no process reported. The command ended with exit status 2\n");
  CHECK(verdict_text(parse_run_report(R"({"fallen_back_ops": 25})"))
            .starts_with("gradplane: not attached: every collective fell back\n"));
  CHECK(verdict_text(parse_run_report(R"({"attached": true})"))
            .starts_with("gradplane: attached, but nothing was carried"));
  CHECK(verdict_text(parse_run_report("{}\nx"))
            .starts_with("gradplane: not attached: no collective was carried, and none passed "));
  const std::string one_rank = R"({"passed_through": {"one_rank": 3}})";
  CHECK(verdict_text(parse_run_report(one_rank))
            .starts_with("gradplane: not attached: every process group has one rank"));
  CHECK(verdict_text(parse_run_report(one_rank + "\n" + R"({"passed_through": {"device": 3}})"))
            .starts_with("gradplane: not attached: every collective went to the original\n"));
  CHECK(verdict_text(parse_run_report("{}\nx"))
            .ends_with("1 line of the report could not be read\n"));
  CHECK(verdict_text(parse_run_report(R"({"fallback_cause": "\u001b[2J"})")).find('\x1b') ==
        std::string::npos);
}
