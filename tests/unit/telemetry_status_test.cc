// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/status.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "control/telemetry/printable.h"
#include "control/telemetry/table.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::telemetry;

namespace {

/// The job of full_report().
JobStatus full_job() {
  JobStatus job;
  job.id = 0x3fa81c02;
  job.label = "train.py";
  job.run_id = "r1";
  job.epoch = 14;
  job.plan_kind = "star";
  job.plan_change = "epoch 15 is in force from round 900 on";
  job.mode = "selective-bsp";
  job.state = JobState::kFailed;
  job.reason = "rank 3 left";
  job.world_size = 4;
  job.joined_count = 2;
  job.missing = {1, 3};
  job.missing_count = 2;
  job.ranks = {{.rank = 0,
                .node = "w0",
                .joined = true,
                .attached = true,
                .pid = 77,
                .rounds_completed = 15},
               {.rank = 2,
                .node = "w2",
                .joined = true,
                .attached = false,
                .pid = 0,
                .rounds_completed = 0}};
  job.ranks_omitted = 16;
  job.groups = 39;
  job.group_receivers = 40;
  job.group_receivers_hear = 41;
  job.group_receivers_listen = 42;
  job.grant_policy = "weighted";
  job.grant_weight = 3.5;
  job.rounds_completed = 17;
  job.payload_bytes_reduced = 18;
  job.blocks_sent = 1000;
  job.blocks_received = 20;
  job.blocks_retransmitted = 10;
  job.blocks_suspected_lost = 22;
  job.blocks_duplicate = 23;
  job.blocks_routed = 26;
  job.blocks_relayed = 27;
  job.blocks_to_groups = 33;
  job.group_trials = 36;
  job.group_members_left = 34;
  job.group_members_deaf = 35;
  job.blocks_of_soundings = 28;
  job.sounding_packets_sent = 29;
  job.sounding_packets_received = 30;
  job.rounds_closed_early = 31;
  job.rounds_closed_deadline = 32;
  job.rounds_closed_absent = 33;
  job.blocks_missing = 34;
  job.blocks_late = 35;
  job.blocks_excluded = 36;
  job.blocks_carried = 37;
  job.carry_dropped = 38;
  job.parity_sent = job.parity_received = 42;
  job.blocks_recovered = 43;
  job.payload_bytes_sent = 39 << 10;
  job.payload_bytes_saved = 40 << 10;
  job.drops = {{"late", 24}};
  return job;
}

/// A report in which no field has its default value.
StatusReport full_report() {
  StatusReport r;
  r.node = "w0";
  r.software = "gradplaned 0.1.0";
  r.role = "relay";
  r.pid = 123;
  r.uptime_ns = 11520ULL * 1000000000;
  r.port = {.kind = "af_packet",
            .interface = "eth1",
            .address = "10.0.0.2/24",
            .mtu_bytes = 1500,
            .rx_datagrams = 1,
            .rx_bytes = 2,
            .tx_datagrams = 3,
            .tx_bytes = 4,
            .tx_lent = 78,
            .rx_missed = 5,
            .handed_over = 77,
            .groups = 38,
            .igmp_version = 3,
            .drops = {{"bad_header", 6}, {"not_for_us", 0}}};
  r.poll = {.idle = "adaptive",
            .iterations = 7,
            .busy_ns = 250,
            .total_ns = 1000,
            .sleeps = 9,
            .wakes = 4,
            .rx_bursts = 2,
            .tx_bursts = 3,
            .stage_ns = {{"receive", 30}, {"transmit", 50}, {"sum", 10}, {"submit", 10}},
            .cores = {{2, 47000, 41, 100, 5, 3, 4, 1}},
            .why_one_core = "a reason"};
  r.peers = {{.node = "agg",
              .address = "10.0.0.1",
              .state = "alive",
              .silence_ns = 40,
              .rtt_ns = 250000,
              .rtt_min_ns = 100000,
              .window_blocks = 64,
              .blocks_sent = 10,
              .blocks_retransmitted = 11,
              .blocks_lost = 12}};
  r.peers_omitted = 13;
  r.links = {{.node = "w3",
              .rate_bits_per_second = 70'400'000,
              .rate_is_lower_bound = true,
              .rate_confidence_percent = 80,
              .rate_age_ns = 2'000'000'000,
              .rtt_ns = 41'000'000,
              .rtt_age_ns = 1'500'000'000,
              .loss_ppm = 1200,
              .loss_confidence_percent = 45,
              .loss_age_ns = 3'000'000'000}};
  r.links_omitted = 14;
  r.jobs = {full_job()};
  r.drops = {{"unknown_job", 25}};
  r.control_rejected = {{"wrong_type", 26}};
  return r;
}

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
  CHECK(error_of(R"({"jobs": {}})") == "jobs: a list of at most 32 entries is accepted");
  CHECK(error_of(R"({"jobs": [{"state": "happy"}]})") ==
        "jobs[0].state: waiting, ready, failed or ended is accepted");
  CHECK(error_of(R"({"jobs": [{"ranks": [{}, {"joined": 1}]}]})") ==
        "jobs[0].ranks[1].joined: true or false is accepted");
  CHECK(error_of(R"({"jobs": [{"ranks": [7]}]})") == "jobs[0].ranks[0]: an object is accepted");
  std::string many = "[{}";
  for (std::size_t i = 0; i < kMaxJobsReported; ++i) many += ",{}";
  CHECK(error_of("{\"jobs\": " + many + "]}") == "jobs: a list of at most 32 entries is accepted");
  CHECK_FALSE(error_of(std::string(kMaxStatusBytes + 1, ' ')).empty());
  CHECK_FALSE(error_of(std::string(100000, '[')).empty());
}

TEST_CASE("a label that is not UTF-8 does not break JSON") {
  StatusReport report = full_report();
  report.jobs[0].label = "a\xff\xfe";
  CHECK(from_json(to_json(report)).ok());
}

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
  report.jobs.assign(kMaxJobsReported, report.jobs[0]);
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
          0.03 us for a datagram; 0.5 datagrams in a burst in, 1.0 out
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
  own     36 blocks excluded, something of 37 carried, 38 not finite
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
