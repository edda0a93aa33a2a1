// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Engines in one process, over the loopback port: jobs, answers to control, round reports,
// snapshots.
#include <algorithm>
#include <array>

#include "tests/support/catch.h"
#include "tests/support/engine_host.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kElements = 5000;

/// Runs rounds [first, first + count) of a two-host job and checks every sum.
void run_rounds(EngineCluster& cluster, EngineHost::Job& a, EngineHost::Job& b, std::uint32_t first,
                std::uint32_t count) {
  for (std::uint32_t round = first; round < first + count; ++round) {
    const auto value = static_cast<float>(round);
    REQUIRE(a.trainers[0].submit(round, kElements, value));
    REQUIRE(b.trainers[0].submit(round, kElements, 2 * value));
    ipc::Completion at_a{}, at_b{};
    bool a_done = false, b_done = false;
    for (int turn = 0; turn < 20'000 && !(a_done && b_done); ++turn) {
      cluster.turn();
      a_done = a_done || a.trainers[0].completions.pop(at_a);
      b_done = b_done || b.trainers[0].completions.pop(at_b);
    }
    REQUIRE((a_done && b_done));
    CHECK(at_a.round == round);
    CHECK(at_a.status == ipc::CompletionStatus::kOk);
    CHECK(at_b.contributors == 2);
    CHECK(a.trainers[0].last(round, kElements) == 3 * value);
    CHECK(b.trainers[0].last(round, kElements) == 3 * value);
  }
}

std::size_t count(const std::vector<api::Event>& events, api::Event::Kind kind) {
  std::size_t n = 0;
  for (const api::Event& event : events) n += event.kind == kind ? 1 : 0;
  return n;
}

}  // namespace

TEST_CASE("two engines carry two jobs side by side") {
  EngineCluster cluster(2);
  auto& a1 = cluster.host(0).add({.id = 1, .plan = star_of(2)});
  auto& b1 = cluster.host(1).add({.id = 1, .plan = star_of(2)});
  auto& a2 = cluster.host(0).add({.id = 2, .plan = star_of(2), .block_bytes = kMinBlockBytes});
  auto& b2 = cluster.host(1).add({.id = 2, .plan = star_of(2), .block_bytes = kMinBlockBytes});
  for (std::uint32_t round = 0; round < 40; round += 10) {
    run_rounds(cluster, a1, b1, round, 10);
    run_rounds(cluster, a2, b2, round, 10);
  }
  CHECK(cluster.host(0).events().empty());
}

TEST_CASE("a job that leaves comes back to control, and the other goes on") {
  EngineCluster cluster(2);
  auto& a1 = cluster.host(0).add({.id = 1, .plan = star_of(2)});
  auto& b1 = cluster.host(1).add({.id = 1, .plan = star_of(2)});
  auto& a2 = cluster.host(0).add({.id = 2, .plan = star_of(2)});
  auto& b2 = cluster.host(1).add({.id = 2, .plan = star_of(2)});
  run_rounds(cluster, a1, b1, 0, 3);
  api::Command remove;
  remove.kind = api::Command::Kind::kRemoveJob;
  remove.job = a1.runtime.get();
  cluster.host(0).command(remove);
  run_rounds(cluster, a2, b2, 0, 3);
  cluster.turns(64);
  const std::vector<api::Event> events = cluster.host(0).events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == api::Event::Kind::kJobRemoved);
  CHECK(events[0].job == a1.runtime.get());
  REQUIRE(b1.trainers[0].submit(3, kElements, 1));
  cluster.turns(500);
  const auto snapshot = cluster.host(0).snapshot(cluster.now());
  CHECK(snapshot->job_count == 1);
  CHECK(snapshot->node.drops[static_cast<std::size_t>(hop::Drop::kUnknownJob)] > 0);
  REQUIRE(snapshot->jobs[0].peer_count == 1);
  CHECK(snapshot->jobs[0].peers[0].silence_ns >= 0);
  cluster.host(0).add({.id = 3, .plan = star_of(2)});
  cluster.turns(64);
  const auto later = cluster.host(0).snapshot(cluster.now());
  REQUIRE(later->job_count == 2);
  CHECK(later->jobs[0].peers[0].silence_ns > snapshot->jobs[0].peers[0].silence_ns);
  CHECK(later->jobs[1].peers[0].silence_ns < 0);  // nothing has come from the peer for this job
}

TEST_CASE("a job too many, and one whose id is taken, are refused") {
  EngineCluster cluster(1);
  for (std::uint32_t id = 1; id <= kMaxJobs; ++id) {
    cluster.host(0).add({.id = id, .plan = star_of(1), .round_bytes = 4096});
  }
  cluster.turns(64);
  CHECK(cluster.host(0).events().empty());
  auto& extra = cluster.host(0).add({.id = 100, .plan = star_of(1), .round_bytes = 4096});
  cluster.turns(64);
  std::vector<api::Event> events = cluster.host(0).events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == api::Event::Kind::kJobRefused);
  CHECK(events[0].job_refusal == JobRefusal::kTooMany);
  CHECK(events[0].job == extra.runtime.get());

  EngineCluster other(1);
  other.host(0).add({.id = 7, .plan = star_of(1), .round_bytes = 4096});
  other.host(0).add({.id = 7, .plan = star_of(1), .round_bytes = 4096});
  other.turns(64);
  events = other.host(0).events();
  REQUIRE(count(events, api::Event::Kind::kJobRefused) == 1);
  CHECK(events[0].job_refusal == JobRefusal::kSameId);
}

TEST_CASE("a control message arrives whole, from whom it says") {
  EngineCluster cluster(2);
  api::Command send;
  send.kind = api::Command::Kind::kSendControl;
  send.control.node = 1;
  send.control.length_bytes = kMaxControlBytes;
  for (std::size_t i = 0; i < kMaxControlBytes; ++i) send.control.bytes[i] = std::byte(i % 251);
  cluster.host(0).command(send);
  cluster.turns(64);
  const std::vector<api::Event> events = cluster.host(1).events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == api::Event::Kind::kControl);
  CHECK(events[0].control.node == 0);
  CHECK(events[0].control.length_bytes == kMaxControlBytes);
  CHECK(events[0].control.bytes == send.control.bytes);
  CHECK(events[0].job == nullptr);
}

TEST_CASE("a flood of control messages does not crowd out the engine's own answers") {
  EngineCluster cluster(2);
  api::Command send;
  send.kind = api::Command::Kind::kSendControl;
  send.control.node = 1;
  send.control.length_bytes = 8;
  for (int n = 0; n < 2 * static_cast<int>(api::kQueueEntries); ++n) {
    cluster.host(0).command(send);
    cluster.turns(2);
    if (n % 32 == 0) cluster.turns(64);
  }
  // Nobody takes the events of host 1 meanwhile. Each job comes twice and is refused once. All
  // refusals are reported.
  for (std::uint32_t id = 1; id <= kMaxJobs; ++id) {
    cluster.host(1).add({.id = id, .plan = star_of(2), .round_bytes = 4096});
    cluster.host(1).add({.id = id, .plan = star_of(2), .round_bytes = 4096});
  }
  cluster.turns(64);
  const std::vector<api::Event> events = cluster.host(1).events();
  CHECK(count(events, api::Event::Kind::kJobRefused) == kMaxJobs);
  CHECK(count(events, api::Event::Kind::kControl) < api::kQueueEntries);
  CHECK(cluster.host(1).snapshot(cluster.now())->control_lost > api::kQueueEntries);
}

TEST_CASE("an answer waits for room instead of being lost") {
  EngineCluster cluster(1);
  api::EngineSnapshot snapshot;
  api::Command fill;
  fill.kind = api::Command::Kind::kFillSnapshot;
  fill.snapshot = &snapshot;
  for (std::size_t n = 0; n < api::kQueueEntries; ++n) cluster.host(0).command(fill);
  cluster.turns(64);
  for (std::size_t n = 0; n < 40; ++n) cluster.host(0).command(fill);
  cluster.turns(64);
  CHECK(cluster.host(0).events().size() == api::kQueueEntries);
  cluster.turns(64);
  CHECK(cluster.host(0).events().size() == 40);
}

TEST_CASE("a snapshot says what happened and who is waited for") {
  EngineCluster cluster(2);
  auto& a = cluster.host(0).add({.id = 9, .plan = star_of(2)});
  auto& b = cluster.host(1).add({.id = 9, .plan = star_of(2)});
  run_rounds(cluster, a, b, 0, 5);
  REQUIRE(a.trainers[0].submit(5, kElements, 1));
  cluster.turns(5000);
  const auto at_root = cluster.host(0).snapshot(cluster.now());
  REQUIRE(at_root->job_count == 1);
  const api::JobSnapshot& job = at_root->jobs[0];
  const std::uint64_t blocks = (kElements * 4 + kDefaultBlockBytes - 1) / kDefaultBlockBytes;
  CHECK(job.job == 9);
  CHECK(job.epoch == 1);
  CHECK(job.traffic.rounds_completed == 5);
  CHECK(job.traffic.blocks_received == 5 * blocks);
  CHECK(job.traffic.blocks_sent == 5 * blocks);
  CHECK(job.traffic.payload_bytes_received == 5 * kElements * 4);
  CHECK(job.traffic.payload_bytes_reduced == 5 * kElements * 4);
  CHECK(job.open_rounds == 1);
  CHECK(job.oldest_round == 5);
  CHECK(job.local_missing == 0);
  REQUIRE(job.silent_node_count == 1);
  CHECK(job.silent_nodes[0] == 1);
  REQUIRE(job.peer_count == 1);
  CHECK(job.peers[0].node == 1);
  CHECK(job.peers[0].in_flight_blocks == 0);
  CHECK(at_root->port.rx_datagrams == cluster.host(0).queue().counters().rx_datagrams);
  CHECK(at_root->polls > 0);
  CHECK(at_root->busy_polls < at_root->polls);
  const auto at_leaf = cluster.host(1).snapshot(cluster.now());
  CHECK(at_leaf->jobs[0].open_rounds == 0);
}

TEST_CASE("what a node sums of its own ranks alone is counted too") {
  EngineCluster cluster(1);
  auto& job = cluster.host(0).add({.id = 9, .plan = star_of(1)});
  REQUIRE(job.trainers[0].submit(0, kElements, 1));
  cluster.turns(100);
  const auto snapshot = cluster.host(0).snapshot(cluster.now());
  REQUIRE(snapshot->job_count == 1);
  CHECK(snapshot->jobs[0].traffic.rounds_completed == 1);
  CHECK(snapshot->jobs[0].traffic.payload_bytes_received == 0);
  CHECK(snapshot->jobs[0].traffic.payload_bytes_reduced == kElements * 4);
}

TEST_CASE("a datagram of a stranger, or to another port, is counted and dropped") {
  const std::vector<Ipv4> all = {{0x0a000001}, {0x0a000002}, {0x0a000063}};
  auto network = port::LoopbackNetwork::create(all, {});
  REQUIRE(network.ok());
  EngineHost host(*network.value(), 0, {all[0], all[1]});
  auto neighbour = network.value()->open(all[1]);
  auto stranger = network.value()->open(all[2]);
  const auto send = [&](port::Port& from, std::uint16_t udp_port) {
    port::TxDatagram datagram;
    REQUIRE(from.queue(0).allocate(datagram));
    datagram.length_bytes = 48;
    std::fill_n(datagram.buffer.begin(), datagram.length_bytes, std::byte{});
    datagram.destination = Endpoint{all[0], udp_port};
    from.queue(0).transmit(std::span(&datagram, 1));
    host.engine().poll_once(Instant::from_ns(1));
  };
  send(*stranger.value(), 47000);
  send(*neighbour.value(), 47001);
  send(*neighbour.value(), 47000);  // dropped as malformed
  const auto snapshot = host.snapshot(Instant::from_ns(2));
  CHECK(snapshot->node.drops[static_cast<std::size_t>(hop::Drop::kUnknownNode)] == 2);
  CHECK(snapshot->node.drops[static_cast<std::size_t>(hop::Drop::kMalformed)] == 1);
}

TEST_CASE("rounds under bounds are reported with their job; without room they are lost, not late") {
  EngineCluster cluster(2);
  constexpr std::uint32_t kSmall = 200;
  std::array<EngineHost::Job*, 2> jobs{};
  std::vector<std::unique_ptr<aggregate::Bucket>> buckets;
  for (std::size_t h = 0; h < 2; ++h) {
    jobs[h] = &cluster.host(h).add({.id = 9, .plan = star_of(2), .round_bytes = 4096});
    api::BoundedTensor tensor;
    tensor.elements = kSmall;
    tensor.bound = 0.1F;
    buckets.push_back(jobs[h]->runtime->make_bucket(
        {.bucket = 1, .type = ElementType::kFloat32, .elements = kSmall, .tensors = {tensor}}));
    REQUIRE(buckets.back() != nullptr);
    api::Command add;
    add.kind = api::Command::Kind::kAddBucket;
    add.job = jobs[h]->runtime.get();
    add.bucket = buckets.back().get();
    cluster.host(h).command(add);
  }
  cluster.turns(64);
  const auto run_round = [&](std::uint32_t round) {
    for (EngineHost::Job* job : jobs) {
      REQUIRE(job->trainers[0].submissions.push(
          {.round = round,
           .elements = kSmall,
           .element_type = static_cast<std::uint8_t>(ElementType::kFloat32),
           .bucket = 1}));
    }
    std::size_t done = 0;
    ipc::Completion completion{};
    for (int turn = 0; turn < 20'000 && done < 2; ++turn) {
      cluster.turn();
      for (EngineHost::Job* job : jobs) done += job->trainers[0].completions.pop(completion);
    }
    REQUIRE(done == 2);
  };
  const auto rounds = static_cast<std::uint32_t>(api::kReportQueueEntries + 3);
  for (std::uint32_t round = 0; round < rounds; ++round) run_round(round);
  const std::vector<api::JobRoundReport> reports = cluster.host(0).reports();
  REQUIRE(reports.size() == api::kReportQueueEntries);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    CHECK(reports[i].job == 9);
    CHECK(reports[i].epoch == star_of(2).epoch);
    CHECK(reports[i].report.round == i);
    CHECK(reports[i].report.number == i + 1);
  }
  CHECK(cluster.host(1).reports().empty());
  run_round(rounds);
  const std::vector<api::JobRoundReport> later = cluster.host(0).reports();
  REQUIRE(later.size() == 1);
  CHECK(later[0].report.number == rounds + 1);
}
