// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/engine/stage_clock.h"

#include "tests/support/catch.h"

using namespace gradplane;
using api::Stage;
using engine::kMeasuredTurns;
using engine::StageClock;

namespace {

std::int64_t g_now_ns = 0;
std::uint64_t g_looks = 0;

Instant fake_clock() {
  ++g_looks;
  return Instant::from_ns(g_now_ns);
}

void run_turn(StageClock& clock, std::uint64_t turn, bool worked) {
  clock.begin_turn(turn);
  g_now_ns += 3;
  clock.end(Stage::kReceive);
  g_now_ns += 5;
  clock.end(Stage::kTransmit);
  clock.end_turn(worked);
}

std::uint64_t of(const StageClock& clock, Stage stage) {
  return clock.times()[static_cast<std::size_t>(stage)];
}

}  // namespace

TEST_CASE("one turn of many is measured and stands for the others") {
  StageClock clock(fake_clock);
  for (std::uint64_t turn = 0; turn < 2 * kMeasuredTurns; ++turn) run_turn(clock, turn, true);
  CHECK(of(clock, Stage::kReceive) == 2 * kMeasuredTurns * 3);
  CHECK(of(clock, Stage::kTransmit) == 2 * kMeasuredTurns * 5);
  CHECK(of(clock, Stage::kSum) == 0);
}

TEST_CASE("turns without work do not count") {
  StageClock clock(fake_clock);
  run_turn(clock, 0, false);
  CHECK(of(clock, Stage::kReceive) == 0);
  run_turn(clock, kMeasuredTurns, true);
  CHECK(of(clock, Stage::kReceive) == kMeasuredTurns * 3);
}

TEST_CASE("the clock is looked at in measured turns alone") {
  StageClock clock(fake_clock);
  g_looks = 0;
  for (std::uint64_t turn = 1; turn < kMeasuredTurns; ++turn) run_turn(clock, turn, true);
  CHECK(g_looks == 0);
  StageClock none(nullptr);
  run_turn(none, 0, true);
  CHECK(of(none, Stage::kReceive) == 0);
}
