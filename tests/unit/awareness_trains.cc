// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Trains and losses, from packets as a receiver sees them.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "dataplane/awareness/loss_meter.h"
#include "dataplane/awareness/train_meter.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::awareness;

namespace {

constexpr std::uint32_t kBytes = 1500;
constexpr std::int64_t kLinkUs = 100;  // of the link for one packet: 120 Mbit/s
constexpr std::uint64_t kLinkRate = 120'000'000;
constexpr std::int64_t kDelayUs = 5'000;

struct Sent {
  std::int64_t sent_us = 0;
  std::int64_t came_us = 0;
};

/// Packets that are sent every `gap_us` over a link that takes kLinkUs for each.
std::vector<Sent> through_link(std::size_t count, std::int64_t gap_us, std::int64_t begin_us,
                               std::int64_t free_us = 0) {
  std::vector<Sent> packets;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t sent = begin_us + static_cast<std::int64_t>(i) * gap_us;
    free_us = std::max(free_us, sent) + kLinkUs;
    packets.push_back({sent, free_us + kDelayUs});
  }
  return packets;
}

std::vector<Sent> operator+(std::vector<Sent> a, const std::vector<Sent>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Bursts of 20 packets. In the pauses the queue becomes empty.
std::vector<Sent> bursts(std::int64_t count, std::int64_t begin_us) {
  std::vector<Sent> packets;
  for (std::int64_t i = 0; i < count; ++i) {
    packets = packets + through_link(20, 0, begin_us + i * 2'500);
  }
  return packets;
}

struct Rates {
  std::vector<std::uint64_t> trains;
  std::vector<std::uint64_t> bounds;
  std::uint64_t best_train() const {
    return trains.empty() ? 0 : *std::max_element(trains.begin(), trains.end());
  }
  std::uint64_t best_bound() const {
    return bounds.empty() ? 0 : *std::max_element(bounds.begin(), bounds.end());
  }
};

class Receiver {
 public:
  explicit Receiver(std::int64_t poll_us = 1, std::uint32_t clock_us = 0)
      : poll_us_(poll_us), clock_us_(clock_us) {}

  void take(const std::vector<Sent>& packets) {
    for (const Sent& p : packets) {
      take(p, (p.came_us + poll_us_ - 1) / poll_us_ * poll_us_, poll_us_, true);
    }
  }
  void take(const Sent& p, std::int64_t poll_at_us, std::int64_t waited_us, bool took_all) {
    const Arrival arrival{.at = Instant::from_ns(poll_at_us * 1000),
                          .waited = Duration::us(waited_us),
                          .took_all = took_all};
    const auto sent_us = static_cast<std::uint32_t>(p.sent_us) + clock_us_;
    const Measured m = meter_.on_packet({.sent_us = sent_us, .wire_bytes = kBytes}, arrival);
    if (m.train > 0) rates_.trains.push_back(m.train);
    if (m.bound > 0) rates_.bounds.push_back(m.bound);
  }
  void set_clock(std::uint32_t us) { clock_us_ = us; }
  const Rates& rates() const { return rates_; }

 private:
  std::int64_t poll_us_;
  std::uint32_t clock_us_;
  TrainMeter meter_;
  Rates rates_;
};

bool is_near_link(std::uint64_t rate) {
  return rate * 100 >= kLinkRate * 97 && rate * 100 <= kLinkRate * 103;
}

}  // namespace

TEST_CASE("packets that were sent back to back come at the rate of the link") {
  for (const std::int64_t poll_us : {1, 50, 100, 130, 200}) {
    for (const std::uint32_t clock : {0U, 1'000'000'000U, 0xffffff00U, 0x7ffffff0U}) {
      Receiver receiver(poll_us, clock);
      receiver.take(through_link(200, 10, 1'000'000));
      INFO("a poll every " << poll_us << " us, clock " << clock);
      REQUIRE_FALSE(receiver.rates().trains.empty());
      for (const std::uint64_t rate : receiver.rates().trains) CHECK(is_near_link(rate));
    }
  }
}

TEST_CASE("whether a run is a train follows from how fast it was sent") {
  struct Row {
    std::int64_t gap_us;
    bool is_train;
  };
  for (const Row row : {Row{0, true},
                        {50, true},
                        {89, true},
                        {92, false},
                        {100, false},
                        {120, false},
                        {400, false}}) {
    Receiver receiver;
    // The first packets are sent at once and build the queue that the others join.
    receiver.take(through_link(8, 0, 1'000'000) +
                  through_link(200, row.gap_us, 1'000'100, 1'000'800));
    INFO("a packet every " << row.gap_us << " us");
    // The packets that build the queue are one train in any case.
    CHECK((receiver.rates().trains.size() > 1) == row.is_train);
  }
}

TEST_CASE("paced packets give a lower bound, not far below their rate") {
  for (const std::int64_t poll_us : {1, 50, 200}) {
    Receiver receiver(poll_us);
    receiver.take(through_link(400, 150, 1'000'000));
    INFO("a poll every " << poll_us << " us");
    CHECK(receiver.rates().trains.empty());
    CHECK(receiver.rates().best_bound() <= 80'000'000);
    CHECK(receiver.rates().best_bound() >= 76'000'000);
  }
}

TEST_CASE("bursts between which the queue is empty are no train") {
  Receiver receiver;
  receiver.take(bursts(20, 1'000'000));
  CHECK(receiver.rates().trains.empty());
  CHECK(receiver.rates().best_bound() < kLinkRate);
  CHECK(receiver.rates().best_bound() > 0);
}

TEST_CASE("a train must be long") {
  Receiver receiver;
  // At the first two packets the queue is too short to be noticed. The third begins the train. The
  // last one proves that the link was not idle before.
  receiver.take(through_link(kTrainPackets + 3, 0, 1'000'000) + through_link(1, 0, 2'000'000));
  CHECK(receiver.rates().trains.empty());
  receiver.take(through_link(kTrainPackets + 4, 0, 3'000'000) + through_link(1, 0, 4'000'000));
  CHECK(receiver.rates().trains.size() == 1);
}

TEST_CASE("fewer packets are a train where they take long") {
  struct Row {
    std::int64_t link_us;  // of the link for one packet
    std::size_t packets;
    bool is_train;
    bool is_bound;
  };
  // A train excludes the first and the last packet.
  constexpr std::size_t kLeast = kSlowTrainPackets + 2;
  for (const Row& row : {Row{250, kLeast, true, true}, Row{250, kLeast - 1, false, true},
                         Row{249, kLeast, false, true}, Row{100, kLeast, false, true},
                         Row{100, kLeast - 2, false, false}}) {
    CAPTURE(row.link_us, row.packets);
    TrainMeter meter;
    Measured best;
    std::int64_t came_us = 1'000'000;
    const auto take = [&](std::int64_t sent_us, std::int64_t at_us) {
      const Measured m =
          meter.on_packet({.sent_us = static_cast<std::uint32_t>(sent_us), .wire_bytes = kBytes},
                          {.at = Instant::from_ns(at_us * 1000), .waited = Duration::us(1)});
      best = {std::max(best.train, m.train), std::max(best.bound, m.bound)};
    };
    take(900'000, 900'000 + 1);  // the first packet does not wait in a queue
    for (std::size_t i = 0; i < row.packets; ++i) {
      came_us += row.link_us;
      take(999'000, came_us);
    }
    take(1'999'000, 1'999'001);  // a pause, which ends the train
    take(1'999'100, 1'999'101);
    CHECK((best.train > 0) == row.is_train);
    if (row.is_train) CHECK(static_cast<double>(best.train) == Approx(48e6));
    CHECK((best.bound > 0) == row.is_bound);
  }
}

TEST_CASE("what a receiver that was away takes at once does not look like a fast link") {
  Receiver receiver;
  receiver.take(through_link(100, 100, 1'000'000));
  // 300 packets have arrived since the last poll. Each poll takes 32 of them. Only the polls that
  // take the last ones leave the receive queue empty.
  const auto late = through_link(300, 5, 1'010'000);
  std::int64_t at = late.back().came_us + 1;
  for (std::size_t i = 0; i < late.size(); ++i) {
    receiver.take(late[i], at, at - late.front().came_us + 1, i >= 288);
    if (i % 32 == 31) at += 200;
  }
  receiver.take(through_link(100, 100, 1'050'000));
  CHECK(receiver.rates().best_train() <= kLinkRate);
  CHECK(receiver.rates().best_bound() <= kLinkRate);
}

TEST_CASE("packets that come closer together than they were sent do not count as faster") {
  Receiver receiver;
  for (std::int64_t i = 0; i < 400; ++i) receiver.take({{1'000'000 + i * 400, 1'200'000 + i * 50}});
  CHECK(receiver.rates().trains.empty());
  CHECK(receiver.rates().best_bound() <= 30'000'000);
}

TEST_CASE("overtaken packets do not end a train") {
  auto packets = through_link(200, 10, 1'000'000);
  for (std::size_t i = 20; i + 5 < packets.size(); i += 20) {
    std::swap(packets[i].sent_us, packets[i + 5].sent_us);
  }
  Receiver receiver;
  receiver.take(packets);
  REQUIRE(receiver.rates().trains.size() >= 3);
  for (const std::uint64_t rate : receiver.rates().trains) CHECK(is_near_link(rate));
}

TEST_CASE("a sender whose clock begins again is measured as before") {
  Receiver receiver(1, 3'000'000'000U);
  receiver.take(through_link(200, 10, 1'000'000));
  const std::size_t before = receiver.rates().trains.size();
  receiver.set_clock(1'000'000'000U);
  receiver.take(through_link(200, 10, 3'000'000));
  CHECK(receiver.rates().trains.size() == 2 * before);
}

TEST_CASE("clocks that drift apart over a long pause do not make a train") {
  Receiver receiver;
  receiver.take(through_link(100, 150, 1'000'000));
  receiver.set_clock(static_cast<std::uint32_t>(-50'000));  // 50 ms behind
  receiver.take(bursts(20, 500'000'000));
  CHECK(receiver.rates().trains.empty());
}

TEST_CASE("packets that never come are lost, once others were sent long after them") {
  struct Row {
    const char* what;
    std::vector<std::uint64_t> missing;
    std::uint64_t lost;
  };
  for (const Row& row : {Row{"none", {}, 0}, Row{"two of the first stretch", {5, 512}, 2},
                         Row{"one of the next stretch", {513}, 0}}) {
    INFO(row.what);
    LossMeter meter;
    LossCount total;
    for (std::uint64_t n = 1; n <= kLossStretch + kLossPatience + 1; ++n) {
      if (std::count(row.missing.begin(), row.missing.end(), n) > 0) continue;
      const LossCount count = meter.on_packet(n);
      total = {total.sent + count.sent, total.lost + count.lost};
    }
    CHECK(total.sent == kLossStretch);
    CHECK(total.lost == row.lost);
  }
}

TEST_CASE("a packet may be overtaken and is not lost") {
  LossMeter meter;
  CHECK(meter.on_packet(1).sent == 0);
  for (std::uint64_t n = 3; n <= kLossStretch + kLossPatience; ++n)
    CHECK(meter.on_packet(n).sent == 0);
  CHECK(meter.on_packet(2).sent == 0);
  const LossCount count = meter.on_packet(kLossStretch + kLossPatience + 1);
  CHECK(count.sent == kLossStretch);
  CHECK(count.lost == 0);
  CHECK(meter.on_packet(4).sent == 0);  // the packet belongs to a stretch that has ended
}

TEST_CASE("one stretch of packets follows the other") {
  LossMeter meter;
  LossCount total;
  for (std::uint64_t n = 1; n <= 4 * kLossStretch; ++n) {
    const LossCount count = meter.on_packet(n);
    total = {total.sent + count.sent, total.lost + count.lost};
  }
  CHECK(total.sent == 3 * kLossStretch);
  CHECK(total.lost == 0);
}

TEST_CASE("what was sent while the path was dead is lost") {
  LossMeter meter;
  for (std::uint64_t n = 1; n <= 100; ++n) CHECK(meter.on_packet(n).sent == 0);
  const LossCount count = meter.on_packet(3'001);
  CHECK(count.sent == 3'000);
  CHECK(count.lost == 2'900);
}
