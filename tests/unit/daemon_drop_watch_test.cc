// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/drop_watch.h"

#include <memory>

#include "dataplane/hop/counters.h"
#include "dataplane/port/port.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::daemon;

namespace {

std::uint64_t& count(Dropped& dropped, hop::Drop reason) {
  return dropped.by_node[static_cast<std::size_t>(reason)];
}

std::uint64_t& count(Dropped& dropped, port::PortDrop reason) {
  return dropped.by_port[static_cast<std::size_t>(reason)];
}

}  // namespace

TEST_CASE("an operator is warned of drops that show a wrong configuration, and seldom") {
  DropWatch watch;
  Dropped dropped;
  const Instant start = Instant::from_ns(1000);
  count(dropped, hop::Drop::kUnknownNode) = 9;
  count(dropped, hop::Drop::kDuplicate) = 1000;
  count(dropped, port::PortDrop::kNotForUs) = 1000;
  CHECK(watch.look(dropped, start).empty());
  count(dropped, hop::Drop::kUnknownNode) = 12;
  const std::vector<std::string> warned = watch.look(dropped, start);
  REQUIRE(warned.size() == 1);
  CHECK(warned[0].find("dropped 12 received packets (unknown_node) that come from addresses that "
                       "are not in cluster.nodes") == 0);
  count(dropped, hop::Drop::kUnknownNode) = 100;
  CHECK(watch.look(dropped, start + kDropWarningPause - Duration::ns(1)).empty());
  CHECK(watch.look(dropped, start + kDropWarningPause).size() == 1);
  INFO("it is over");
  CHECK(watch.look(dropped, start + kDropWarningPause * 3).empty());
}

TEST_CASE("one packet with this node's address is enough for a warning") {
  DropWatch watch;
  Dropped dropped;
  count(dropped, port::PortDrop::kAddressConflict) = 1;
  count(dropped, port::PortDrop::kWrongVlan) = 10;
  const std::vector<std::string> warned = watch.look(dropped, Instant::from_ns(1000));
  REQUIRE(warned.size() == 2);
  CHECK(warned[0].find("the same --node") != std::string::npos);
  CHECK(warned[1].find("port.vlan") != std::string::npos);
}

TEST_CASE("what several cores have dropped counts together") {
  DropWatch watch;
  const auto core = std::make_unique<api::EngineSnapshot>();
  core->node.drops[static_cast<std::size_t>(hop::Drop::kMalformed)] = 5;
  Dropped dropped;
  dropped.add(*core);
  CHECK(watch.look(dropped, Instant::from_ns(1000)).empty());
  dropped.add(*core);
  CHECK(watch.look(dropped, Instant::from_ns(1000)).size() == 1);
}
