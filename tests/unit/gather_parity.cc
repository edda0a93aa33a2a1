// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// When a round that lacks blocks may close although parity may still come.
#include "tests/support/catch.h"
#include "tests/unit/gather_rig.h"

using namespace gradplane;
using namespace gradplane::testing;
using Rig = GatherRig;

TEST_CASE("early: what lacks may come in rows of parity, as long as these may come") {
  Rig rig;
  rig.learn(Duration::ms(50));
  rig.gather->open({0, kBlocks});
  rig.arrive(0, 0, kBlocks, Duration{}, true);
  rig.arrive(1, 0, 91, Duration{});
  const auto last = [&](Duration at) {
    rig.gather->on_block(
        1, {.block = 91, .last = true, .has_rows = true, .bounded = true, .rtt = kRtt},
        kStart + at);
  };
  SECTION("after the last block, for a quarter of a round trip") {
    last(Duration::ms(60));
    CHECK_FALSE(rig.at(Duration::ms(60)));
    CHECK_FALSE(rig.at(Duration::us(60'499)));
    CHECK(rig.at(Duration::us(60'500)) == CloseReason::kEarly);
  }
  SECTION("a row says that others may follow") {
    last(Duration::ms(60));
    rig.gather->on_row(1, false, kStart + Duration::us(60'300));
    CHECK_FALSE(rig.at(Duration::us(60'799)));
    CHECK(rig.at(Duration::us(60'800)) == CloseReason::kEarly);
  }
  SECTION("after the last row nothing comes") {
    last(Duration::ms(60));
    rig.gather->on_row(1, true, kStart + Duration::us(60'100));
    CHECK(rig.at(Duration::us(60'100)) == CloseReason::kEarly);
  }
  SECTION("a row says that everything was sent, if the last block is lost") {
    CHECK_FALSE(rig.at(Duration::ms(60)));
    rig.gather->on_row(1, true, kStart + Duration::ms(60));
    CHECK(rig.at(Duration::ms(60)) == CloseReason::kEarly);
  }
  SECTION("it is no reason to wait past the deadline") {
    last(Duration::us(79'900));
    CHECK_FALSE(rig.at(Duration::us(79'999)));
    CHECK(rig.at(Duration::ms(80)) == CloseReason::kDeadline);
  }
  SECTION("a round that is not open has no rows") {
    rig.gather->close(CloseReason::kEarly, kStart + Duration::ms(60));
    rig.gather->on_row(1, true, kStart + Duration::ms(60));
    rig.gather->open({0, kBlocks});
    rig.gather->on_row(0, true, kStart + Duration::ms(70));
    rig.arrive(0, 0, 1, Duration::ms(80));
    CHECK_FALSE(rig.at(Duration::ms(131)));
  }
}
