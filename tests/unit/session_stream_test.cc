// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdint>
#include <vector>

#include "control/session/stream.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;

TEST_CASE("acknowledgements of what was never sent change nothing") {
  SendStream stream;
  REQUIRE(stream.push(std::vector<std::byte>(10)));
  REQUIRE(stream.push(std::vector<std::byte>(10)));
  stream.on_ack(3, 0);
  stream.on_ack(UINT32_MAX, 0xffffffff);
  std::uint32_t sequence = 9;
  REQUIRE(stream.next_due(Instant(), sequence) != nullptr);
  CHECK(sequence == 0);
  stream.on_ack(1, 0xffffffff);
  REQUIRE(stream.next_due(Instant(), sequence) != nullptr);
  CHECK(sequence == 1);
  stream.on_ack(2, 0);
  CHECK(stream.empty());
}
