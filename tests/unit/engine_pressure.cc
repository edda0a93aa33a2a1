// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A device that drops what arrives makes the node grant less.
#include "dataplane/engine/engine.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

/// Gives nothing and takes everything; how much it has missed is the test's to say.
class DeafQueue : public port::PortQueue {
 public:
  std::size_t receive(std::span<port::RxDatagram>) noexcept override { return 0; }
  void release(std::span<port::RxDatagram>) noexcept override {}
  bool allocate(port::TxDatagram&) noexcept override { return false; }
  void discard(port::TxDatagram&) noexcept override {}
  std::size_t transmit(std::span<port::TxDatagram> datagrams) noexcept override {
    return datagrams.size();
  }
  void tick(Instant) noexcept override {}
  const port::PortCounters& counters() const noexcept override { return counters_; }

  void miss(std::uint64_t datagrams) { counters_.rx_missed += datagrams; }

 private:
  port::PortCounters counters_;
};

}  // namespace

TEST_CASE("what the device misses slows the grants, for a while") {
  DeafQueue queue;
  api::CommandQueue commands{api::kQueueEntries};
  api::EventQueue events{api::kQueueEntries};
  api::ReportQueue reports{api::kReportQueueEntries};
  engine::EngineOptions options;
  options.nodes = {{1}, {2}};
  options.link.bits_per_second = 1'000'000'000;
  engine::Engine engine(options, queue, commands, events, reports);
  Instant now = Instant::from_ns(1'000'000'000);
  const auto pressed_after_a_turn = [&] {
    now = now + Duration::us(1);
    engine.poll_once(now);
    return engine.grants().stats(now).pressed;
  };
  CHECK_FALSE(pressed_after_a_turn());
  queue.miss(3);
  CHECK(pressed_after_a_turn());
  now = now + Duration::ms(25);
  CHECK_FALSE(pressed_after_a_turn());  // the counter stands: it was looked at
  queue.miss(1);
  CHECK(pressed_after_a_turn());
}
