// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The order in which an engine acts and tells others. A daemon may be killed at any moment. Its
// ranks must then have what the engine has acknowledged.
#include <array>
#include <utility>

#include "tests/support/catch.h"
#include "tests/support/engine_host.h"
#include "tests/support/seen_packet.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

/// Shows a function every datagram just before it leaves.
class WatchedQueue : public port::PortQueue {
 public:
  /// `is_tagged`: whether the engine says that a tag covers the packet.
  using Watch = std::function<void(const SeenPacket&, bool is_tagged)>;
  WatchedQueue(port::PortQueue& queue, const Watch& watch) : queue_(queue), watch_(watch) {}

  std::size_t receive(std::span<port::RxDatagram> out) noexcept override {
    return queue_.receive(out);
  }
  void release(std::span<port::RxDatagram> datagrams) noexcept override {
    queue_.release(datagrams);
  }
  bool allocate(port::TxDatagram& out) noexcept override { return queue_.allocate(out); }
  void discard(port::TxDatagram& datagram) noexcept override { queue_.discard(datagram); }
  std::size_t transmit(std::span<port::TxDatagram> datagrams) noexcept override {
    for (const port::TxDatagram& datagram : datagrams) {
      const auto packet = see(datagram.buffer.first(datagram.length_bytes));
      if (packet) watch_(*packet, datagram.is_tagged);
    }
    return queue_.transmit(datagrams);
  }
  void tick(Instant now) noexcept override { queue_.tick(now); }
  const port::PortCounters& counters() const noexcept override { return queue_.counters(); }

 private:
  port::PortQueue& queue_;
  Watch watch_;
};

}  // namespace

TEST_CASE("who acks a round's last result has put the completion into the rank's ring before") {
  constexpr std::uint32_t kElements = 5000;
  constexpr std::uint32_t kRounds = 50;
  const std::vector<Ipv4> nodes = {{0x0a000001U}, {0x0a000002U}};
  const auto network = port::LoopbackNetwork::create(nodes, {}).value();
  EngineHost root(*network, 0, nodes);
  const std::atomic<std::uint32_t>* written = nullptr;  // completions of the leaf's rank
  std::uint32_t acked = 0;
  bool in_order = true;
  EngineHost leaf(*network, 1, nodes, [&](port::PortQueue& queue) {
    return std::make_unique<WatchedQueue>(queue, [&](const SeenPacket& h, bool) {
      const bool complete = (h.flags & wire::kFlagComplete) != 0;
      if (h.type != wire::PacketType::kResultAck || !complete) return;
      acked = std::max(acked, h.round + 1);
      in_order = in_order && written->load() > h.round;
    });
  });
  auto& at_root = root.add({.plan = star_of(2)});
  auto& at_leaf = leaf.add({.plan = star_of(2)});
  written = &at_leaf.trainers[0].channel->channel.completions().tail;
  Instant now = Instant::from_ns(1'000'000'000);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    REQUIRE(at_root.trainers[0].submit(round, kElements, 1));
    REQUIRE(at_leaf.trainers[0].submit(round, kElements, 2));
    for (int turn = 0; turn < 20'000 && acked <= round; ++turn) {
      root.engine().poll_once(now);
      leaf.engine().poll_once(now);
      now = now + Duration::us(1);
    }
    REQUIRE(acked == round + 1);
    ipc::Completion completion;
    while (at_root.trainers[0].completions.pop(completion)) {
    }
    REQUIRE(at_leaf.trainers[0].completions.pop(completion));
  }
  CHECK(in_order);
}

TEST_CASE("a port hears which packets have tags, so that it computes no checksum for them") {
  const bool authenticate = GENERATE(false, true);
  const std::vector<Ipv4> nodes = {{0x0a000001U}, {0x0a000002U}};
  const auto network = port::LoopbackNetwork::create(nodes, {}).value();
  EngineHost root(*network, 0, nodes);
  std::array<std::uint32_t, 2> seen{};  // packets, without and with a tag
  EngineHost leaf(*network, 1, nodes, [&](port::PortQueue& queue) {
    return std::make_unique<WatchedQueue>(
        queue, [&](const SeenPacket&, bool is_tagged) { ++seen[is_tagged ? 1 : 0]; });
  });
  const JobSpec spec{.plan = star_of(2), .authenticate = authenticate};
  auto& at_root = root.add(spec);
  auto& at_leaf = leaf.add(spec);
  REQUIRE(at_root.trainers[0].submit(0, 5000, 1));
  REQUIRE(at_leaf.trainers[0].submit(0, 5000, 2));
  Instant now = Instant::from_ns(1'000'000'000);
  ipc::Completion completion;
  bool done = false;
  for (int turn = 0; turn < 20'000 && !done; ++turn) {
    root.engine().poll_once(now);
    leaf.engine().poll_once(now);
    now = now + Duration::us(1);
    done = at_leaf.trainers[0].completions.pop(completion);
  }
  REQUIRE(done);
  CHECK(seen[authenticate ? 1 : 0] > 15);  // the leaf's blocks and acks
  CHECK(seen[authenticate ? 0 : 1] == 0);
}
