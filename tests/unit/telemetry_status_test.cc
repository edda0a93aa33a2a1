// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/status.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "control/telemetry/printable.h"
#include "control/telemetry/table.h"
#include "tests/support/catch.h"
#include "tests/unit/telemetry_report.h"

using namespace gradplane;
using namespace gradplane::telemetry;

namespace {

std::string error_of(const std::string& text) {
  const auto report = from_json(text);
  return report.ok() ? "" : report.error().message;
}

}  // namespace

TEST_CASE("a status survives JSON, every field of it") {
  const std::string text = to_json(full_report());
  const auto report = from_json(text);
  REQUIRE(report.ok());
  CHECK(to_json(report.value()) == text);
  // A field that both directions lose would show here: no field of the report has its default
  // value.
  CHECK(text.find(":\"\"") == std::string::npos);
  CHECK(report.value().jobs[0].ranks[0].rounds_completed == 15);
  CHECK(report.value().jobs[0].state == JobState::kFailed);
  CHECK(report.value().port.drops.at("bad_header") == 6);
  CHECK(report.value().peers[0].blocks_lost == 12);
  CHECK(report.value().poll.busy_share() == 0.25);
}

TEST_CASE("a person sees the plan that is to come, beside the one in force") {
  StatusReport report = full_report();
  const auto shows = [&](const char* text) {
    return to_text(report).find(text) != std::string::npos;
  };
  CHECK(shows("star, epoch 14"));
  CHECK(shows("plan"));
  CHECK(shows("epoch 15 is in force from round 900 on"));
  report.jobs[0].plan_change.clear();
  CHECK_FALSE(shows("epoch 15"));
}

TEST_CASE("versions may differ: unknown members are tolerated, missing ones default") {
  const auto report = from_json(R"({"node": "x", "news": [1, {"a": 2}], "port": {"speed": 1}})");
  REQUIRE(report.ok());
  CHECK(report.value().node == "x");
  CHECK(report.value().jobs.empty());
}

TEST_CASE("every state of a job survives JSON") {
  for (const JobState state :
       {JobState::kWaiting, JobState::kReady, JobState::kFailed, JobState::kEnded}) {
    StatusReport report;
    report.jobs.resize(1);
    report.jobs[0].state = state;
    const auto again = from_json(to_json(report));
    REQUIRE(again.ok());
    CHECK(again.value().jobs[0].state == state);
    CHECK(to_text(report).find(job_state_name(state)) != std::string::npos);
  }
}

TEST_CASE("a hostile status is an error that names the member") {
  CHECK(error_of("") == "status: not JSON");
  CHECK(error_of("{\"node\": \"x\"") == "status: not JSON");
  CHECK(error_of("[]") == "status: an object is accepted");
  CHECK(error_of("3") == "status: an object is accepted");
  CHECK(error_of(R"({"pid": -1})") == "pid: an integer from 0 to 4294967295 is accepted");
  CHECK(error_of(R"({"pid": 4294967296})") == "pid: an integer from 0 to 4294967295 is accepted");
  CHECK(error_of(R"({"pid": 1.5})") == "pid: an integer from 0 to 4294967295 is accepted");
  CHECK(error_of(R"({"node": 5})") == "node: a text of at most 512 bytes is accepted");
  CHECK(error_of(R"({"node": ")" + std::string(513, 'x') + "\"}") ==
        "node: a text of at most 512 bytes is accepted");
  CHECK(error_of(R"({"port": []})") == "port: an object is accepted");
  CHECK(error_of(R"({"port": {"drops": {"x": "y"}}})") ==
        "port.drops.x: an integer from 0 to 18446744073709551615 is accepted");
  CHECK(error_of(R"({"jobs": {}})") == "jobs: a list of at most 128 entries is accepted");
  CHECK(error_of(R"({"jobs": [{"state": "happy"}]})") ==
        "jobs[0].state: waiting, ready, failed or ended is accepted");
  CHECK(error_of(R"({"jobs": [{"ranks": [{}, {"joined": 1}]}]})") ==
        "jobs[0].ranks[1].joined: true or false is accepted");
  CHECK(error_of(R"({"jobs": [{"ranks": [7]}]})") == "jobs[0].ranks[0]: an object is accepted");
  std::string many = "[{}";
  for (std::size_t i = 0; i < kMaxJobsReported; ++i) many += ",{}";
  CHECK(error_of("{\"jobs\": " + many + "]}") == "jobs: a list of at most 128 entries is accepted");
  CHECK_FALSE(error_of(std::string(kMaxStatusBytes + 1, ' ')).empty());
  CHECK_FALSE(error_of(std::string(100000, '[')).empty());
}

TEST_CASE("a label that is not UTF-8 does not break JSON") {
  StatusReport report = full_report();
  report.jobs[0].label = "a\xff\xfe";
  CHECK(from_json(to_json(report)).ok());
}

TEST_CASE("text for a person") {
  CHECK(to_text(full_report()) == R"(gradplaned 0.1.0 on w0, pid 123, up 3 h 12 min
  role    relay
  port    af_packet eth1 10.0.0.2/24, MTU 1500
          received 1 datagram (2 B), sent 3 (4 B), missed 5
          78 frames sent from where the payload lay, without a copy
          77 frames came by another queue than their poll core's
          in 38 groups, IGMP version 3
  dropped bad_header 6
  poll    adaptive, 25.0 % busy, 9 sleeps, 4 ended by a rank
  core    CPU 2: 41.0 % busy, 5 sleeps, 3 datagrams in and 4 out over UDP port 47000, 1 job
          each job has one of the cores, because a reason
  turns   transmit 50 %, receive 30 %, sum 10 %, others 10 %
  refused unknown_job 25
  control wrong_type 26

job 3fa81c02 train.py failed, star, epoch 14
  reason  rank 3 left
  plan    epoch 15 is in force from round 900 on
  grants  weighted, weight 3.5
  ranks   2 of 4 joined
  missing rank 1, 3
  rounds  17 completed, 18 B summed
  blocks  sent 1000, received 20, retransmitted 10 (1.00 %), lost 22, duplicate 23
  routes  26 blocks sent over auxiliary routes, 27 sent on for others
  groups  33 blocks sent once for a group, 36 trials; a member was 34 times too slow, 35 times deaf
  hearing 41 of 40 receivers of 39 groups hear it; 42 too slow or lossy for the others for now
  parity  42 packets sent, 42 received, 43 blocks recovered
  sounded 28 blocks and 29 packets without one sent, 30 received
  closed  31 rounds early, 32 by deadline, 33 without somebody; blocks missing 34, late 35
  own     36 blocks excluded, 37 with a remainder carried, 38 not finite
  wire    39.0 KiB sent instead of 79.0 KiB
  dropped late 24
  RANK  NODE  JOINED  ATTACHED  PID  ROUNDS
     0  w0    yes     yes        77      15
     2  w2    yes     -           -       -
  and 16 more, left out here

peers
  NODE  ADDRESS   STATE       RTT       MIN  WINDOW  SENT  REPEATED  LOST
  agg   10.0.0.1  alive  250.0 us  100.0 us      64    10        11    12
  and 13 more, left out here

measured links to this node
  FROM                  RATE  SURE  AGE      RTT  AGE    LOSS  SURE  AGE
  w3    at least 70.4 Mbit/s  80 %  2 s  41.0 ms  1 s  0.12 %  45 %  3 s
  and 14 more, left out here
)");
}

TEST_CASE("text stays within its width and cannot drive a terminal") {
  StatusReport report = full_report();
  report.jobs[0].label = std::string("\x1b]0;owned\x07\xc2\x9b") + "31m";
  report.jobs[0].reason = std::string(300, 'x') + " \x1b[2J end";
  report.peers[0].node = std::string(63, 'n');
  for (int i = 0; i < 40; ++i) report.port.drops["reason_" + std::to_string(i)] = 1;
  for (std::uint32_t i = 0; i < 64; ++i) report.jobs[0].missing.push_back(100 + i);
  report.jobs[0].missing_count = 900;
  report.peers[0].blocks_sent = UINT64_MAX;
  std::istringstream lines(to_text(report));
  std::size_t too_long = 0;
  for (std::string line; std::getline(lines, line);) {
    too_long += line.size() > 130 ? 1 : 0;
    CHECK(line.find('\x1b') == std::string::npos);
    CHECK(line.find("\xc2\x9b") == std::string::npos);
    CHECK_FALSE(line.ends_with(' '));
  }
  CHECK(too_long == 1);  // the word of 300 letters
  CHECK(to_text(report, {.color = true, .width = 100}).find("\x1b[31mfailed\x1b[0m") !=
        std::string::npos);
}

TEST_CASE("OpenMetrics: families are whole, typed and end with EOF") {
  StatusReport report = full_report();
  report.jobs[0].label = "a\"b\\c\nd";
  report.jobs.push_back(report.jobs[0]);
  report.jobs[1].id = 5;
  const std::string text = to_openmetrics(report);
  CHECK(text.ends_with("\n# EOF\n"));
  CHECK(text.find("gradplane_job_info{job_id=\"3fa81c02\",label=\"a\\\"b\\\\c?d\",plan=\"star\","
                  "mode=\"selective-bsp\"} 1\n") != std::string::npos);
  CHECK(text.find("gradplane_job_rank_rounds_total{job_id=\"3fa81c02\",rank=\"0\"} 15\n") !=
        std::string::npos);
  CHECK(text.find("gradplane_status_omitted{what=\"ranks\"} 32\n") != std::string::npos);
  CHECK(text.find("gradplane_status_omitted{what=\"peers\"} 13\n") != std::string::npos);
  CHECK(text.find("gradplane_peer_rtt_seconds{peer=\"agg\"} 0.00025\n") != std::string::npos);
  CHECK(text.find("gradplane_job_blocks_routed_total{job_id=\"3fa81c02\"} 26\n") !=
        std::string::npos);
  CHECK(text.find("gradplane_job_blocks_relayed_total{job_id=\"3fa81c02\"} 27\n") !=
        std::string::npos);
  CHECK(text.find("gradplane_job_blocks_of_soundings_total{job_id=\"3fa81c02\"} 28\n") !=
        std::string::npos);
  CHECK(text.find("gradplane_job_sounding_packets_sent_total{job_id=\"3fa81c02\"} 29\n") !=
        std::string::npos);
  CHECK(text.find("gradplane_job_sounding_packets_received_total{job_id=\"3fa81c02\"} 30\n") !=
        std::string::npos);
  CHECK(text.find("gradplane_port_drops_total{reason=\"bad_header\"} 6\n") != std::string::npos);

  std::istringstream lines(text);
  std::set<std::string> families;
  std::set<std::string> samples;
  std::string family;
  std::string type;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    std::istringstream words(line);
    std::string hash;
    std::string kind;
    words >> hash >> kind;
    if (hash == "#" && kind == "TYPE") {
      words >> family >> type;
      CHECK(families.insert(family).second);
      continue;
    }
    if (hash == "#") continue;
    const std::string suffix = type == "counter" ? "_total" : type == "info" ? "_info" : "";
    CHECK(line.substr(0, line.find_first_of("{ ")) == family + suffix);
    CHECK(samples.insert(line.substr(0, line.rfind(' '))).second);
  }
  CHECK(families.size() > 25);
}
