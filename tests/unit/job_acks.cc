// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How long a node holds acks back.
#include "dataplane/hop/ack_queue.h"
#include "dataplane/hop/clock.h"
#include "tests/support/catch.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"
#include "tests/support/two_workers.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kBlocks = 1300;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;
constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::uint64_t kRate = 100'000'000;

/// A worker that gets results one by one, and the times of its acks.
class Receiving {
 public:
  explicit Receiving(job::JobConfig config, Duration rtt = Duration::us(200))
      : leaf_(std::move(config)) {
    REQUIRE(leaf_.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
    while (!leaf_.drain(now_).empty()) {
      now_ = now_ + Duration::ms(1);
      const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, kRound)
                           .sender(0)
                           .flags(wire::kFlagComplete)
                           .echo_us(hop::clock_us(now_ - rtt));
      leaf_.deliver(0, ack.bytes(), now_);
    }
    // The number of the first ack may have looked like a gap.
    pass(hop::kMaxSteadyAckDelay * 2);
    began_ = now_;
  }

  /// Takes the next result `later` after the last one, and the acks that go meanwhile.
  void take(Duration later) {
    pass(later);
    const auto result = PacketBuilder::block(wire::PacketType::kResult, kRound, next_++).sender(0);
    leaf_.deliver(0, PacketBuilder(result).contributors(kRanks).bytes(), now_);
    collect();
  }
  void pass(Duration time) {
    for (const Instant end = now_ + time; now_ < end;) {
      now_ = std::min(end, now_ + Duration::us(100));
      leaf_.node().tick(now_);
      collect();
    }
  }
  /// A packet of the sender does not come.
  static void lose() { (void)PacketBuilder::ack(wire::PacketType::kPushAck, kRound).bytes(); }

  /// The times of all acks so far, in tenths of a millisecond since the first result.
  const std::vector<int>& acks() const { return acks_; }

 private:
  static constexpr std::uint16_t kRanks = 2;
  inline static const PacketBuilder::Round kRound{
      .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes)};

  void collect() {
    for (const Sent& sent : leaf_.drain(now_)) {
      if (sent.seen().type != wire::PacketType::kResultAck) continue;
      acks_.push_back(static_cast<int>((now_ - began_).count_ns() / 100'000));
    }
  }

  CoreNode leaf_;
  Instant now_ = kStart;
  Instant began_;
  std::uint32_t next_ = 0;
  std::vector<int> acks_;
};

/// Worker 1, which knows the rate of its link to the root.
job::JobConfig worker(std::uint64_t rate = kRate) {
  job::JobConfig config = two_workers(1, kBlocks);
  config.peers[0].rates.rate_bits_per_second = rate;
  return config;
}

/// The acks while a result comes each millisecond.
std::vector<int> acks_of_ten(job::JobConfig config, Duration rtt = Duration::us(200)) {
  Receiving leaf(std::move(config), rtt);
  leaf.take({});
  for (int n = 1; n < 10; ++n) leaf.take(Duration::ms(1));
  return leaf.acks();
}

const std::vector<int> kEarly = {40, 80};
const std::vector<int> kLate = {80};

}  // namespace

TEST_CASE("while blocks keep coming an ack waits for 8 ms instead of 4") {
  CHECK(acks_of_ten(worker()) == kLate);
}

TEST_CASE("an ack goes within 4 ms when no further block comes") {
  Receiving leaf(worker());
  leaf.take({});
  leaf.take(Duration::us(900));
  leaf.pass(Duration::ms(20));
  CHECK(leaf.acks() == std::vector<int>{40});
  // Each block that comes alone is acked after 4 ms.
  leaf.take({});
  leaf.pass(Duration::ms(20));
  CHECK(leaf.acks() == std::vector<int>{40, 9 + 200 + 40});
}

TEST_CASE("an ack that has waited goes 2.5 ms after the last block") {
  Receiving leaf(worker());
  leaf.take({});
  for (int n = 1; n < 5; ++n) leaf.take(Duration::ms(1));
  leaf.pass(Duration::ms(20));
  CHECK(leaf.acks() == std::vector<int>{65});
}

TEST_CASE("an ack waits no longer where a packet seems to be lost") {
  Receiving leaf(worker());
  leaf.take({});
  leaf.take(Duration::ms(1));
  Receiving::lose();
  for (int n = 0; n < 4; ++n) leaf.take(Duration::ms(1));
  CHECK(leaf.acks() == std::vector<int>{40});
  // When nothing was missing for 8 ms, acks may wait again.
  for (int n = 0; n < 12; ++n) leaf.take(Duration::ms(1));
  CHECK(leaf.acks() == std::vector<int>{40, 80, 160});
}

TEST_CASE("an ack waits no longer where the window may have no room meanwhile") {
  CHECK(acks_of_ten(worker(0)) == kEarly);
  CHECK(acks_of_ten(worker(), hop::kSteadyPath) == kEarly);
  job::JobConfig other = worker();
  other.congestion.controller = ControllerKind::kSwift;
  CHECK(acks_of_ten(std::move(other)) == kEarly);
  job::JobConfig granted = worker();
  granted.grants = true;
  CHECK(acks_of_ten(std::move(granted)) == kEarly);
}

TEST_CASE("an ack goes after 16 blocks, however long it has waited") {
  Receiving leaf(worker());
  for (int n = 0; n < 32; ++n) leaf.take(Duration::us(300));
  CHECK(leaf.acks() == std::vector<int>{48, 96});
}

TEST_CASE("the request of an ack that has gone does not hurry the next one") {
  Receiving leaf(worker());
  for (int n = 0; n < 20; ++n) leaf.take(Duration::us(200));
  leaf.pass(Duration::ms(10));
  // The ack of the first 16 blocks went at 3.2 ms, before its first request was due at 4.2 ms. From
  // then on the node looks at intervals of half a millisecond whether the next ack is due.
  CHECK(leaf.acks() == std::vector<int>{32, 34 + 38});
}

TEST_CASE("the last blocks of many are acked, too") {
  for (const std::uint64_t rate : {std::uint64_t{0}, kRate}) {
    Receiving leaf(worker(rate));
    // So many acks go within 4 ms that their requests fill the queue. The last ones find no room.
    for (int n = 0; n < 80 * 16 + 5; ++n) leaf.take(Duration::us(3));
    const std::size_t before = leaf.acks().size();
    CHECK(before == 80);
    leaf.pass(Duration::ms(5));
    CHECK(leaf.acks().size() == before + 1);
  }
}

TEST_CASE("a receiver that owes an ack requests it once, until one goes at once") {
  hop::AckQueue queue(1);
  hop::BlockReceiver one(kBlocks);
  hop::BlockReceiver other(kBlocks);
  queue.request({}, 1, one, false, kStart);
  queue.request({}, 1, one, false, kStart);
  queue.request({}, 2, other, false, kStart + Duration::ms(1));
  const Instant due = kStart + hop::kMaxAckDelay;
  const auto first = queue.take(due);
  REQUIRE(first);
  CHECK(first->round == 1);
  CHECK_FALSE(first->is_urgent);
  CHECK_FALSE(queue.take(due));
  REQUIRE(queue.postpone(*first, due));
  queue.request({}, 1, one, false, due);
  CHECK_FALSE(queue.empty());
  CHECK_FALSE(queue.take(due));
  CHECK(queue.next_due() == due + hop::kAckLookInterval);
  queue.request({}, 1, one, true, due);
  const auto urgent = queue.take(due);
  REQUIRE(urgent);
  CHECK(urgent->is_urgent);
  CHECK(queue.take(due + Duration::ms(1))->round == 2);
  CHECK(queue.take(due + Duration::ms(1))->round == 1);
  CHECK(queue.empty());
  CHECK(queue.next_due() == Instant::never());
}
