// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The words in which a status reports trouble.
#include <string>

#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"
#include "control/telemetry/status.h"
#include "control/telemetry/table.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::telemetry;

TEST_CASE("a silent peer is told with the time, and its metric says that it is not alive") {
  StatusReport report;
  report.peers = {{.node = "agg", .address = "10.0.0.1", .state = "alive"}};
  const auto metric = [&] {
    const std::string text = to_openmetrics(report);
    const std::size_t at = text.find("gradplane_peer_alive{");
    REQUIRE(at != std::string::npos);
    return text.substr(text.find(' ', at) + 1, 1);
  };
  CHECK(metric() == "1");
  report.peers[0].state = "silent";
  report.peers[0].silence_ns = 22'000'000'000;
  CHECK(to_text(report).find(" silent 22 s ") != std::string::npos);
  CHECK(metric() == "0");
}

TEST_CASE("groups that are only tried do not look used") {
  StatusReport report;
  report.jobs.resize(1);
  CHECK(to_text(report).find("groups") == std::string::npos);
  report.jobs[0].group_trials = 1;
  CHECK(to_text(report).find("groups  1 trial, and nothing sent once for a group: fewer than two "
                             "receivers hear any\n") != std::string::npos);
  // All receivers hear their group, but no block was for two of them.
  report.jobs[0].groups = 1;
  report.jobs[0].group_receivers = report.jobs[0].group_receivers_hear = 3;
  CHECK(to_text(report, {.width = 200})
            .find("groups  1 trial, and nothing sent once for a group: so far no block was for two "
                  "receivers that hear one\n") != std::string::npos);
}

TEST_CASE("a peer of which nothing has come is not heard yet") {
  StatusReport report;
  report.peers.push_back({.node = "w1", .address = "10.77.0.2", .state = "unknown"});
  report.peers.push_back({.node = "w2", .address = "10.77.0.3", .state = "alive"});
  const std::string text = to_text(report);
  CHECK(text.find("w1    10.77.0.2  not heard yet") != std::string::npos);
  CHECK(text.find("w2    10.77.0.3  alive") != std::string::npos);
}

TEST_CASE("of ranks of other nodes a status does not say that they are not attached") {
  StatusReport report;
  report.node = "w0";
  JobStatus& job = report.jobs.emplace_back();
  job.ranks.push_back({.rank = 0, .node = "w0", .joined = true, .attached = true, .pid = 7});
  job.ranks.push_back({.rank = 1, .node = "w0", .joined = true});
  job.ranks.push_back({.rank = 2, .node = "w1", .joined = true});
  const std::string text = to_text(report);
  CHECK(text.find("     0  w0    yes     yes         7       0\n") != std::string::npos);
  CHECK(text.find("     1  w0    yes     no          -       -\n") != std::string::npos);
  CHECK(text.find("     2  w1    yes     -           -       -\n") != std::string::npos);
}

TEST_CASE("a status says how many receivers hear their groups") {
  StatusReport report;
  report.jobs.resize(1);
  CHECK(to_text(report).find("hearing") == std::string::npos);
  report.jobs[0].groups = 2;
  report.jobs[0].group_receivers = 7;
  report.jobs[0].group_receivers_hear = 6;
  CHECK(to_text(report).find("hearing 6 of 7 receivers of 2 groups hear it\n") !=
        std::string::npos);
  report.jobs[0].group_receivers_listen = 1;
  CHECK(to_text(report).find("hear it; 1 too slow or lossy for the others for now\n") !=
        std::string::npos);
}

TEST_CASE("a coordinator without a part in a job says so, and counts nothing") {
  StatusReport report;
  report.jobs.resize(1);
  JobStatus& job = report.jobs[0];
  job.state = JobState::kReady;
  const auto shows = [&](const char* text) {
    const auto again = from_json(to_json(report));
    REQUIRE(again.ok());
    return to_text(again.value()).find(text) != std::string::npos;
  };
  CHECK_FALSE(shows("  part "));
  CHECK(shows("  rounds  0 completed"));
  job.has_part = false;
  CHECK(shows("  part    none here: this node coordinates the job only\n"));
  CHECK_FALSE(shows("rounds"));
  job.blocks_received = 7;
  CHECK(shows("coordinates the job only; what follows is of its part before\n"));
  CHECK(shows("received 7"));
}

TEST_CASE("quantities") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(UINT64_MAX) == "16.0 EiB");
  CHECK(duration_text(1500) == "1.5 us");
  CHECK(duration_text(59ULL * 1000000000) == "59 s");
  CHECK(duration_text(90ULL * 1000000000) == "1 min 30 s");
  CHECK(duration_text(200000ULL * 1000000000) == "2 d 7 h");
}

TEST_CASE("waiting says for whom") {
  StatusReport report;
  JobStatus job;
  job.missing_count = 1000;
  job.missing = {4, 5};
  report.jobs = {job};
  CHECK(to_text(report).find("missing rank 4, 5 and 998 more\n") != std::string::npos);
}

TEST_CASE("words are wrapped and clipped by characters, not bytes") {
  CHECK(wrapped("> ", "aa bb cc", 7) == "> aa bb\n  cc\n");
  CHECK(wrapped("> ", "aaaaaaaaaa", 5) == "> aaaaaaaaaa\n");
  CHECK(wrapped("> ", "", 5) == "> \n");
  CHECK(columns("h\xc3\xa9h\xc3\xa9") == 4);
  CHECK(clipped("h\xc3\xa9h\xc3\xa9", 3) == "h\xc3\xa9~");
  CHECK(clipped("abc", 3) == "abc");
  CHECK(printable("a\nb\x7f\xc2\x80") == "a?b??");
}
