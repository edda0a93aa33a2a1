// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Which nodes without ranks answer the coordinator.
#include <set>
#include <vector>

#include "control/session/relays.h"
#include "tests/support/catch.h"
#include "tests/unit/session_bench.h"

using namespace gradplane;
using namespace gradplane::protocol;
using namespace gradplane::session;
using namespace gradplane::session::testing;

TEST_CASE("what a relay has said before it was asked does not count") {
  Relays relays({0, 1, 2}, 0);
  relays.on_connected(1);
  relays.watch(kNow);
  CHECK(relays.silent() == std::set<api::NodeId>{1, 2});
  CHECK(relays.settled_at() == kNow + kRelayGrace);
  relays.on_connected(1);
  relays.on_connected(2);
  CHECK(relays.silent().empty());
  CHECK(relays.settled_at() == Instant());
}

TEST_CASE("relays are asked while a job is taken over") {
  TestConfig c = config(0, 0);
  c.relays = {2};
  Outbox outbox;
  PlannedCoordinator coordinator(c, outbox);
  Report report;
  report.key = kKey;
  report.first_epoch = report.epoch = report.newest_epoch = 50;
  report.world_size = 1;
  coordinator.on_message(1, report, kNow);
  std::vector<bool> involved(3);
  coordinator.mark_involved(involved);
  CHECK(involved == std::vector<bool>{false, true, true});
}

TEST_CASE("a relay that says something while it is awaited answers") {
  TestConfig c = config(0, 0);
  c.relays = {2};
  Outbox outbox;
  PlannedCoordinator coordinator(c, outbox);
  coordinator.on_message(1, Join{kKey, 1, kRootUser, 1, {0}, "job"}, kNow);
  CHECK(coordinator.topology(kNow).silent == std::vector<api::NodeId>{2});
  coordinator.on_node_heard(2);
  CHECK(coordinator.topology(kNow).silent.empty());
}
