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
  Instant now = Instant::from_ns(1000);
  CHECK(watch.look(dropped, now).empty());
  count(dropped, hop::Drop::kUnknownNode) = 9;
  count(dropped, hop::Drop::kDuplicate) = 1000;
  count(dropped, port::PortDrop::kNotForUs) = 1000;
  CHECK(watch.look(dropped, now + Duration::seconds(1)).empty());
  count(dropped, hop::Drop::kUnknownNode) = 12;
  const std::vector<std::string> warned = watch.look(dropped, now + Duration::seconds(2));
  REQUIRE(warned.size() == 1);
  CHECK(warned[0].find("dropped 12 received packets (unknown_node) that come from addresses that "
                       "are not in cluster.nodes") == 0);
  INFO("it goes on");
  std::size_t warnings = 0;
  for (Instant at = now; at < now + kDropWarningPause * 2; at = at + Duration::seconds(5)) {
    count(dropped, hop::Drop::kUnknownNode) += 20;
    warnings += watch.look(dropped, at).size();
  }
  CHECK(warnings == 1);
}

TEST_CASE("drops that have ended, and stray ones, bring no warning") {
  DropWatch watch;
  Dropped dropped;
  Instant at = Instant::from_ns(1000);
  CHECK(watch.look(dropped, at).empty());
  SECTION("the mistake was mended within the pause") {
    for (int look = 0; look < 4; ++look, at = at + Duration::seconds(5)) {
      count(dropped, hop::Drop::kMalformed) += 20;
      CHECK(watch.look(dropped, at).size() == (look == 0 ? 1 : 0));
    }
    for (; at < Instant::from_ns(1000) + kDropWarningPause * 2; at = at + Duration::seconds(5))
      CHECK(watch.look(dropped, at).empty());
  }
  SECTION("one stray packet in each window") {
    for (int look = 0; look < 100; ++look, at = at + kDropWindow) {
      count(dropped, hop::Drop::kUnknownNode) += 1;
      CHECK(watch.look(dropped, at).empty());
    }
  }
}

TEST_CASE("one packet with this node's address is enough for a warning") {
  DropWatch watch;
  Dropped dropped;
  count(dropped, port::PortDrop::kAddressConflict) = 1;
  const std::vector<std::string> warned = watch.look(dropped, Instant::from_ns(1000));
  REQUIRE(warned.size() == 1);
  CHECK(warned[0].find("the same --node") != std::string::npos);
}

TEST_CASE("what several cores have dropped counts together") {
  DropWatch watch;
  const auto core = std::make_unique<api::EngineSnapshot>();
  core->node.drops[static_cast<std::size_t>(hop::Drop::kMalformed)] = 5;
  Dropped dropped;
  dropped.add(*core);
  CHECK(watch.look(dropped, Instant::from_ns(1000)).empty());
  core->node.drops[static_cast<std::size_t>(hop::Drop::kMalformed)] = 12;
  dropped = {};
  dropped.add(*core);
  dropped.add(*core);
  CHECK(watch.look(dropped, Instant::from_ns(2000)).size() == 1);
}
