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

TEST_CASE("frames that no honest peer sends end the conversation") {
  ReceiveStream stream;
  std::vector<std::vector<std::byte>> messages;
  const std::vector<std::byte> body(kMaxFrameBytes, std::byte{1});
  Datagram d;
  d.body = body;
  SECTION("a piece without a beginning") {
    d.flags = kHasFrame | kLastFrame;
    CHECK(stream.accept(d, messages) == DatagramDrop::kBadMessage);
  }
  SECTION("a beginning inside a message") {
    d.flags = kHasFrame | kFirstFrame;
    REQUIRE(stream.accept(d, messages) == DatagramDrop::kCount);
    d.sequence = 1;
    CHECK(stream.accept(d, messages) == DatagramDrop::kBadMessage);
  }
  SECTION("a message without an end") {
    d.flags = kHasFrame | kFirstFrame;
    DatagramDrop drop = DatagramDrop::kCount;
    for (d.sequence = 0; drop == DatagramDrop::kCount; ++d.sequence) {
      REQUIRE(d.sequence <= kMaxFramesPerMessage);
      drop = stream.accept(d, messages);
      d.flags = kHasFrame;
    }
    CHECK(drop == DatagramDrop::kBadMessage);
  }
  SECTION("frames far ahead are dropped, not kept") {
    d.flags = kHasFrame | kFirstFrame | kLastFrame;
    d.sequence = kLinkWindow;
    CHECK(stream.accept(d, messages) == DatagramDrop::kBeyondWindow);
    for (d.sequence = UINT32_MAX; d.sequence > UINT32_MAX - 3; --d.sequence)
      CHECK(stream.accept(d, messages) == DatagramDrop::kDuplicate);
    d.sequence = kLinkWindow - 1;
    CHECK(stream.accept(d, messages) == DatagramDrop::kCount);
    CHECK(stream.accept(d, messages) == DatagramDrop::kDuplicate);
    CHECK(stream.selective() == std::uint32_t{1} << (kLinkWindow - 2));
    CHECK(stream.acknowledged() == 0);
  }
  CHECK(messages.empty());
}
