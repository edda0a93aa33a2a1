// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/grants/source_cap.h"

#include "tests/support/catch.h"

using namespace gradplane;
using grants::SourceCap;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr Duration kInTime = Duration::us(100);
constexpr std::uint32_t kWindow = 64;

/// Grants `blocks`, which are all outstanding credit. The source uses them after `took`.
void use(SourceCap& cap, std::uint32_t& total, std::uint32_t blocks, Duration took) {
  total += blocks;
  cap.on_granted(blocks, total, blocks, kStart);
  cap.on_used(total, kInTime, kWindow, kStart + took);
}

}  // namespace

TEST_CASE("credit that waits at its sender caps the sender's credit at what it can use") {
  SourceCap cap;
  CHECK(cap.blocks() == UINT32_MAX);
  Instant now = kStart;
  cap.on_granted(10, 10, 10, now);
  CHECK(cap.round_trip_sample(0, now) == std::nullopt);
  CHECK(cap.round_trip_sample(1, now + Duration::us(90)) == Duration::us(90));
  CHECK(cap.round_trip_sample(2, now + Duration::us(95)) == std::nullopt);
  cap.on_used(9, Duration::us(100), 64, now + Duration::us(500));
  CHECK(cap.blocks() == UINT32_MAX);
  cap.on_used(10, Duration::us(100), 64, now + Duration::us(125));
  CHECK(cap.blocks() == 8);
  for (std::uint32_t total = 18; cap.blocks() < 64; total += 8) {
    cap.on_granted(8, total, cap.blocks(), now);
    cap.on_used(total, Duration::us(100), 64, now + Duration::us(50));
    REQUIRE(total < 200);
  }
  CHECK(cap.blocks() == UINT32_MAX);
  cap.on_expired(20);
  CHECK(cap.blocks() == 10);
  for (int n = 0; n < 10; ++n) cap.on_expired(20);
  CHECK(cap.blocks() == SourceCap::kMin);
}

TEST_CASE("a cap grows with credit that used it, and not with less") {
  SourceCap cap;
  std::uint32_t total = 0;
  use(cap, total, 20, Duration::us(125));
  REQUIRE(cap.blocks() == 16);
  use(cap, total, 7, Duration::us(50));
  CHECK(cap.blocks() == 16);
  use(cap, total, 8, Duration::us(50));
  CHECK(cap.blocks() == 21);
}

TEST_CASE("one grant lowers the cap to half at the least") {
  SourceCap cap;
  std::uint32_t total = 0;
  use(cap, total, 20, Duration::ms(100));
  CHECK(cap.blocks() == 10);
}

TEST_CASE("the time that the smallest credit takes is the path's") {
  SourceCap cap;
  std::uint32_t total = 0;
  use(cap, total, SourceCap::kMin, Duration::us(300));
  REQUIRE(cap.blocks() == SourceCap::kMin);
  use(cap, total, 20, Duration::us(440));
  CHECK(cap.blocks() == SourceCap::kMin + 1);  // no queue, so the cap grows
}

TEST_CASE("heavy losses on a source's path lower its cap by the share that was lost") {
  SourceCap cap;
  std::uint32_t total = 0;
  for (int n = 0; n < 192; ++n) cap.on_block(false);
  cap.on_lost(64);
  use(cap, total, 20, Duration::us(50));
  CHECK(cap.blocks() == 15);
}

TEST_CASE("marks on a source's path lower its cap") {
  SourceCap cap;
  std::uint32_t total = 0;
  for (int n = 0; n < 64; ++n) cap.on_block(true);
  use(cap, total, 20, Duration::us(50));
  // The mean says that half of the blocks are marked, which is 0.2 above the usual share.
  CHECK(cap.blocks() == 18);
}
