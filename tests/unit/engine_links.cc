// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// An engine measures the links of arriving packets, and its snapshots show the estimates.
#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include "dataplane/hop/peer_table.h"
#include "tests/support/catch.h"
#include "tests/support/engine_host.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kJob = 1;
constexpr std::uint32_t kElements = 10 * kDefaultBlockBytes / sizeof(float);
constexpr std::uint64_t kWireBytes = kDefaultBlockBytes + hop::kWireOverheadBytes;
constexpr Duration kPromptly = Duration::us(20);

/// The root of a star, and the wire to it from every other host. Times count from the beginning of
/// the test.
class Root {
 public:
  explicit Root(std::uint16_t hosts) {
    for (std::uint16_t n = 0; n < hosts; ++n) nodes_.push_back({0x0a000001U + n});
    auto network = port::LoopbackNetwork::create(nodes_, {});
    REQUIRE(network.ok());
    network_ = network.value();
    host_ = std::make_unique<EngineHost>(*network_, 0, nodes_);
    for (std::uint16_t n = 1; n < hosts; ++n) {
      ports_.push_back(std::move(network_->open(nodes_[n]).value()));
    }
    job_ = &add(kJob);
    numbers_.resize(hosts);
  }

  EngineHost::Job& add(std::uint32_t id) {
    const auto hosts = static_cast<std::uint16_t>(nodes_.size());
    auto& job = host_->add({.id = id, .plan = star_of(hosts), .round_bytes = 4 * kElements});
    poll(Duration{});
    return job;
  }

  /// Puts a block into the root's receive queue, with the next packet number of its sender.
  void come(std::uint16_t from, Duration sent_at, std::uint32_t job = kJob) {
    come_again(from, sent_at, ++numbers_[from], job);
  }
  void come_again(std::uint16_t from, Duration sent_at, std::uint64_t number,
                  std::uint32_t job = kJob) {
    const PacketBuilder::Round round{
        .job = job,
        .geometry = Geometry::of(ElementType::kFloat32, kElements, kDefaultBlockBytes, 0)};
    const auto bytes = PacketBuilder::block(wire::PacketType::kPush, round, 0)
                           .sender(from)
                           .timestamp_us(static_cast<std::uint32_t>(sent_at.count_ns() / 1000))
                           .round_trip(100)
                           .number(number)
                           .bytes();
    port::PortQueue& queue = ports_[from - 1U]->queue(0);
    port::TxDatagram datagram;
    REQUIRE(queue.allocate(datagram));
    std::copy(bytes.begin(), bytes.end(), datagram.buffer.begin());
    datagram.length_bytes = static_cast<std::uint32_t>(bytes.size());
    datagram.destination = Endpoint{nodes_[0], EngineHost::kFirstUdpPort};
    REQUIRE(queue.transmit(std::span(&datagram, 1)) == 1);
  }
  void skip_numbers(std::uint16_t from, std::uint64_t count) { numbers_[from] += count; }

  void poll(Duration at) { host_->engine().poll_once(kBegin + at); }
  /// Sends single packets that wait in no queue, so that the engine learns the least delay.
  void come_promptly(Duration from, int count) {
    for (int n = 0; n < count; ++n) {
      const Duration at = from + Duration::ms(2 * n);
      poll(at);
      come(1, at);
      poll(at + kPromptly);
    }
  }
  std::unique_ptr<api::EngineSnapshot> snapshot(Duration at) {
    return host_->snapshot(kBegin + at);
  }
  EngineHost& host() { return *host_; }
  EngineHost::Job& job() { return *job_; }

 private:
  static constexpr Instant kBegin = Instant::from_ns(0);

  std::vector<Ipv4> nodes_;
  std::shared_ptr<port::LoopbackNetwork> network_;
  std::unique_ptr<EngineHost> host_;
  std::vector<std::unique_ptr<port::Port>> ports_;
  EngineHost::Job* job_ = nullptr;
  std::vector<std::uint64_t> numbers_;
};

/// Sends blocks at once over a link of 100 Mbit/s, where they wait. Every tenth is lost before the
/// link. Returns when the last one arrived.
Duration send_train(Root& root, Duration begin, int blocks) {
  constexpr Duration kBlockTime = Duration::ns(kWireBytes * 8 * 10);
  Duration at = begin;
  for (int n = 0; n < blocks; ++n) {
    at = at + kBlockTime;
    if (n % 9 == 0) root.skip_numbers(1, 1);
    root.come(1, begin);
    root.poll(at);
  }
  return at;
}

}  // namespace

TEST_CASE("a snapshot shows the rate, round trip and loss of a link, and how old they are") {
  Root root(2);
  CHECK(root.snapshot({})->link_count == 0);
  root.come_promptly(Duration::ms(10), 5);
  const Duration end = send_train(root, Duration::ms(30), 900);

  const auto snapshot = root.snapshot(end);
  CHECK(snapshot->links_heard == 1);
  REQUIRE(snapshot->link_count == 1);
  const api::LinkSnapshot& link = snapshot->links[0];
  CHECK(link.node == 1);
  CHECK(static_cast<double>(link.rate_bits_per_second) == Approx(100e6).epsilon(0.04));
  CHECK_FALSE(link.rate_is_lower_bound);
  CHECK(link.rate_confidence_percent >= 25);
  CHECK(link.rate_age_ns < Duration::ms(20).count_ns());
  CHECK(link.rtt_ns == (wire::kRoundTripUnit * 100).count_ns());
  CHECK(link.rtt_age_ns == 0);
  CHECK(link.loss_ppm == Approx(100'000).epsilon(0.05));
  CHECK(link.loss_confidence_percent > 0);
  CHECK(link.loss_age_ns < Duration::ms(120).count_ns());

  const auto later = root.snapshot(end + Duration::seconds(20));
  CHECK(later->links[0].rate_bits_per_second == link.rate_bits_per_second);
  CHECK(later->links[0].rate_age_ns >= Duration::seconds(20).count_ns());
  CHECK(later->links[0].rtt_age_ns == Duration::seconds(20).count_ns());
  CHECK(later->links[0].rate_confidence_percent < link.rate_confidence_percent);
  CHECK(later->links[0].loss_confidence_percent < link.loss_confidence_percent);

  const auto forgotten = root.snapshot(end + Duration::seconds(100));
  REQUIRE(forgotten->link_count == 1);
  CHECK(forgotten->links[0].node == 1);
  CHECK(forgotten->links[0].rate_confidence_percent == 0);
  CHECK(forgotten->links[0].rate_bits_per_second == 0);
  CHECK(forgotten->links[0].rtt_ns == 0);
  CHECK(forgotten->links[0].loss_confidence_percent == 0);
}

TEST_CASE("what a stalled loop takes in several polls does not show the speed of memory") {
  Root root(2);
  root.come_promptly(Duration::ms(10), 5);
  for (int n = 0; n < 320; ++n) root.come(1, Duration::ms(30));
  for (int n = 0; n < 10; ++n) root.poll(Duration::ms(40) + Duration::us(400 * n));
  root.come_promptly(Duration::ms(50), 5);
  // The 320 blocks arrived in 10 ms: between the last poll before the stall and the last poll that
  // took some of them. So the rate is at most 400 Mbit/s. A poll that takes 32 in 400 us would
  // measure 980.
  const auto snapshot = root.snapshot(Duration::ms(70));
  REQUIRE(snapshot->link_count == 1);
  CHECK(snapshot->links[0].rate_bits_per_second < 400'000'000);
}

TEST_CASE("a packet that only waited for the poll did not wait in a queue") {
  Root root(2);
  root.come_promptly(Duration::ms(10), 5);
  // The loop sleeps for 5 ms at a time. A burst comes at the end of one sleep, and others at the
  // beginning of the next sleeps. The first poll after a sleep leaves some packets for the next
  // poll.
  for (const std::int64_t sent_us : {24'500, 25'100, 30'100, 35'100}) {
    for (int n = 0; n < 40; ++n) root.come(1, Duration::us(sent_us));
    const Duration awake = Duration::us((sent_us / 5000 + 1) * 5000);
    root.poll(awake);
    root.poll(awake + kPromptly);
  }
  root.come_promptly(Duration::ms(50), 5);
  const auto snapshot = root.snapshot(Duration::ms(70));
  REQUIRE(snapshot->link_count == 1);
  CHECK(snapshot->links[0].rate_is_lower_bound);
}

TEST_CASE("packets that no peer has sent, or that came before, say nothing of a link") {
  Root root(2);
  root.come(1, Duration::ms(10), 77);
  root.poll(Duration::ms(10));
  CHECK(root.snapshot(Duration::ms(10))->links_heard == 0);
  root.come_promptly(Duration::ms(20), 5);
  for (int n = 0; n < 200; ++n) {
    root.come_again(1, Duration::ms(30), 3);
    root.poll(Duration::ms(31) + Duration::us(100 * n));
  }
  root.come_promptly(Duration::ms(60), 1);
  const auto snapshot = root.snapshot(Duration::ms(70));
  REQUIRE(snapshot->link_count == 1);
  CHECK(snapshot->links[0].rate_confidence_percent == 0);
}

TEST_CASE("all jobs of a sender share an estimate, and it outlives them") {
  Root root(2);
  root.add(2);
  for (int n = 0; n < 40; ++n) {
    const Duration at = Duration::ms(10) + Duration::us(100 * n);
    root.come(1, at, n % 2 == 0 ? kJob : 2);
    root.poll(at + kPromptly);
  }
  api::Command remove;
  remove.kind = api::Command::Kind::kRemoveJob;
  remove.job = root.job().runtime.get();
  root.host().command(remove);
  for (int n = 0; n < 64; ++n) root.poll(Duration::ms(20));
  const auto snapshot = root.snapshot(Duration::ms(20));
  CHECK(snapshot->job_count == 1);
  REQUIRE(snapshot->link_count == 1);
  // Each job alone has sent 20 packets, which are too few for a measurement.
  CHECK(snapshot->links[0].rate_confidence_percent > 0);
  CHECK(snapshot->links[0].rate_is_lower_bound);
}

TEST_CASE("successive snapshots go through more links than one of them holds") {
  constexpr std::uint16_t kHosts = 1 + api::kSnapshotLinks + 10;
  Root root(kHosts);
  for (std::uint16_t node = 1; node < kHosts; ++node) {
    root.come(node, Duration::ms(10));
    root.poll(Duration::ms(10) + kPromptly * node);
  }
  std::set<std::uint16_t> seen;
  for (int n = 0; n < 2; ++n) {
    const auto snapshot = root.snapshot(Duration::ms(20));
    CHECK(snapshot->links_heard == kHosts - 1U);
    REQUIRE(snapshot->link_count == api::kSnapshotLinks);
    std::set<std::uint16_t> of_this;
    for (const api::LinkSnapshot& link : snapshot->links) of_this.insert(link.node);
    CHECK(of_this.size() == api::kSnapshotLinks);
    seen.insert(of_this.begin(), of_this.end());
  }
  CHECK(seen.size() == kHosts - 1U);
}
