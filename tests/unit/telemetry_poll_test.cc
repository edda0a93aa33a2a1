// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/status.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::telemetry;

namespace {

StatusReport earlier_report() {
  StatusReport r;
  r.node = "w0";
  r.pid = 123;
  r.uptime_ns = 60'000'000'000;
  r.port.rx_datagrams = 1000;
  r.port.tx_datagrams = 2000;
  r.poll.idle = "adaptive";
  r.poll.busy_ns = 250;
  r.poll.total_ns = 1000;
  r.poll.sleeps = r.poll.wakes = r.poll.rx_bursts = r.poll.tx_bursts = 100;
  r.poll.stage_ns = {{"receive", 30}, {"transmit", 50}, {"sum", 10}};
  r.poll.cores = {{2, 47000, 41, 100, 5, 3, 4, 1}};
  return r;
}

}  // namespace

TEST_CASE("text tells what poll loops did since an earlier report of the same daemon") {
  const StatusReport before = earlier_report();
  StatusReport now = before;
  now.uptime_ns += 2'000'000'000;
  now.port.rx_datagrams += 30'000;
  now.port.tx_datagrams += 10'000;
  now.poll.busy_ns += 300;
  now.poll.total_ns += 400;
  now.poll.sleeps += 2;
  now.poll.wakes += 1;
  now.poll.rx_bursts += 10'000;
  now.poll.tx_bursts += 5000;
  now.poll.stage_ns["sum"] += 3'000'000;
  now.poll.stage_ns["receive"] += 1'000'000;
  now.poll.cores[0].busy_ns += 1;
  now.poll.cores[0].total_ns += 2;
  const auto text = [&](const StatusReport& earlier) {
    return to_text(now, {.color = false, .width = 100, .before = &earlier});
  };
  const std::string since = text(before);
  INFO(since);
  CHECK(since.find("adaptive, 75.0 % busy in the last 2 s, 2 sleeps, 1 ended by a rank") !=
        std::string::npos);
  CHECK(since.find("CPU 2: 50.0 % busy, 0 sleeps, 0 datagrams in") != std::string::npos);
  CHECK(since.find("sum 75 %, receive 25 %, transmit 0 %, others 0 %") != std::string::npos);
  CHECK(since.find("0.10 us for a datagram; 3.0 datagrams in a burst in, 2.0 out") !=
        std::string::npos);

  now.port.rx_datagrams = before.port.rx_datagrams + 1000;
  now.port.tx_datagrams = before.port.tx_datagrams;
  CHECK(text(before).find("for a datagram") != std::string::npos);
  --now.port.rx_datagrams;
  CHECK(text(before).find("for a datagram") == std::string::npos);  // of so few none can be told

  // Another process has other counters, and a report of the same moment leaves no time between.
  StatusReport other = before;
  other.pid += 1;
  CHECK(text(other) == to_text(now));
  CHECK(text(now) == to_text(now));
}

TEST_CASE("a poll loop that never sleeps is not called busy for it") {
  StatusReport report = earlier_report();
  report.poll.idle = "busy";
  CHECK(to_text(report).find("poll    always awake, 25.0 % busy\n") != std::string::npos);
}

TEST_CASE("a daemon whose counters went back is shown without negative numbers") {
  StatusReport before = earlier_report();
  StatusReport now = before;
  now.uptime_ns += 1'000'000'000;
  before.poll.busy_ns = before.poll.sleeps = before.poll.stage_ns["sum"] = UINT64_MAX;
  before.port.rx_datagrams = UINT64_MAX;
  const std::string text = to_text(now, {.color = false, .width = 100, .before = &before});
  INFO(text);
  CHECK(text.find("0.0 % busy in the last 1 s, 0 sleeps, 0 ended by a rank") != std::string::npos);
  CHECK(text.find("turns") == std::string::npos);
}
