// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How an engine serves its device. If the device drops datagrams, the node grants less. Before an
// engine ends, it lets the port send its reports.
#include "dataplane/engine/engine.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

/// A queue that receives nothing and sends everything. The test sets how many datagrams it has
/// missed.
class DeafQueue : public port::PortQueue {
 public:
  std::size_t receive(std::span<port::RxDatagram>) noexcept override { return 0; }
  void release(std::span<port::RxDatagram>) noexcept override {}
  bool allocate(port::TxDatagram&) noexcept override { return false; }
  void discard(port::TxDatagram&) noexcept override {}
  std::size_t transmit(std::span<port::TxDatagram> datagrams) noexcept override {
    return datagrams.size();
  }
  void tick(Instant) noexcept override { ++ticks; }
  const port::PortCounters& counters() const noexcept override { return counters_; }

  void miss(std::uint64_t datagrams) { counters_.rx_missed += datagrams; }

  std::size_t ticks = 0;

 private:
  port::PortCounters counters_;
};

struct Bench {
  static engine::EngineOptions options() {
    engine::EngineOptions options;
    options.nodes = {{1}, {2}};
    options.link.bits_per_second = 1'000'000'000;
    return options;
  }
  DeafQueue queue;
  api::CommandQueue commands{api::kQueueEntries};
  api::EventQueue events{api::kQueueEntries};
  api::ReportQueue reports{api::kReportQueueEntries};
  engine::Engine engine{options(), queue, commands, events, reports};
  Instant now = Instant::from_ns(1'000'000'000);
};

}  // namespace

TEST_CASE("what the device misses slows the grants, for a while") {
  Bench bench;
  DeafQueue& queue = bench.queue;
  Instant& now = bench.now;
  const auto pressed_after_a_turn = [&] {
    now = now + Duration::us(1);
    bench.engine.poll_once(now);
    return bench.engine.grants().stats(now).pressed;
  };
  CHECK_FALSE(pressed_after_a_turn());
  queue.miss(3);
  CHECK(pressed_after_a_turn());
  now = now + Duration::ms(25);
  CHECK_FALSE(pressed_after_a_turn());  // the counter has not grown since
  queue.miss(1);
  CHECK(pressed_after_a_turn());
}

TEST_CASE("at its end an engine lets the port tell all that is due, however many groups it left") {
  Bench bench;
  bench.engine.poll_once(bench.now);
  const std::size_t before = bench.queue.ticks;
  bench.engine.finish(bench.now);
  CHECK(bench.queue.ticks - before >= port::kTicksToTellAll);
}
