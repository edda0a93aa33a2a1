// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/replay_window.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "tests/support/catch.h"

using namespace gradplane;
using hop::kReplayWindow;
using hop::ReplayWindow;

namespace {

constexpr std::uint64_t kSpan = std::uint64_t{1} << 32;

std::uint32_t low_half(std::uint64_t number) {
  return static_cast<std::uint32_t>(number);
}

/// A model of the window that keeps a set of all numbers.
class Model {
 public:
  bool accept(std::uint64_t number) {
    if (number == 0 || number + kReplayWindow <= newest_) return false;
    newest_ = std::max(newest_, number);
    return seen_.insert(number).second;
  }
  std::uint64_t newest() const { return newest_; }

 private:
  std::set<std::uint64_t> seen_;
  std::uint64_t newest_ = 0;
};

}  // namespace

TEST_CASE("a number is taken once") {
  ReplayWindow window;
  CHECK_FALSE(window.accept(0));
  CHECK(window.accept(1));
  CHECK_FALSE(window.accept(1));
  CHECK(window.accept(5));
  CHECK(window.accept(3));
  CHECK_FALSE(window.accept(5));
  CHECK_FALSE(window.accept(3));
  CHECK(window.accept(2));
}

TEST_CASE("a number is taken while it is in the window") {
  ReplayWindow window;
  CHECK(window.accept(kReplayWindow + 10));
  CHECK(window.accept(11));        // as far behind as the window allows
  CHECK_FALSE(window.accept(10));  // one behind the window
  CHECK_FALSE(window.accept(11));
}

TEST_CASE("what came before a jump is forgotten and refused") {
  const std::uint64_t jump =
      GENERATE(kReplayWindow - 1, kReplayWindow, kReplayWindow + 1, 3 * kReplayWindow + 7, kSpan);
  ReplayWindow window;
  for (std::uint64_t n = 1; n <= 100; ++n) REQUIRE(window.accept(n));
  REQUIRE(window.accept(100 + jump));
  for (std::uint64_t n = 1; n <= 100; ++n) CHECK_FALSE(window.accept(n));
  std::uint64_t taken = 0;
  for (std::uint64_t n = 101; n < 100 + jump && n < 101 + 4 * kReplayWindow; ++n) {
    taken += window.accept(n) ? 1 : 0;
  }
  if (jump < kSpan) CHECK(taken == std::min(jump, kReplayWindow) - 1);
}

TEST_CASE("a window does what a set of all numbers does") {
  std::mt19937_64 random(GENERATE(1u, 2u, 3u, 4u, 5u));
  ReplayWindow window;
  Model model;
  // Numbers begin just before 2^32, so that the restored halves wrap around.
  std::uint64_t base = kSpan - 5000;
  REQUIRE(window.accept(base) == model.accept(base));
  for (int step = 0; step < 200'000; ++step) {
    const std::uint64_t dice = random() % 100;
    std::uint64_t number = base;
    if (dice < 60) {
      number = ++base;
    } else if (dice < 70) {
      number = base += random() % 200;
    } else if (dice < 71) {
      number = base += kReplayWindow - 3 + random() % 6;
    } else if (dice < 95) {
      number = base - random() % 300;
    } else {
      number = base - kReplayWindow - 5 + random() % 10;
    }
    if (window.restore(low_half(number)) != number) FAIL("restored " << number);
    if (window.accept(number) != model.accept(number)) FAIL("number " << number);
  }
  CHECK(model.newest() > kSpan);
}

TEST_CASE("the high half of a number is restored from the newest") {
  struct Row {
    std::uint64_t newest;
    std::uint64_t number;
  };
  const Row rows[] = {
      {0, 1},
      {0, kSpan / 2},
      {1, kSpan / 2 + 1},
      {5, 0xffff'ffff},  // no number is below the first span
      {kSpan - 1, kSpan},
      {kSpan - 1, kSpan + 7},
      {kSpan, kSpan - 1},
      {kSpan + 7, kSpan - 100},
      {7 * kSpan - 1, 7 * kSpan},
      {7 * kSpan, 7 * kSpan - 1},
      {7 * kSpan, 7 * kSpan + kSpan / 2},
      {7 * kSpan + 9, 7 * kSpan + 9},
      {7 * kSpan + 9, 6 * kSpan + kSpan / 2 + 10},
      {7 * kSpan + kSpan / 2, 8 * kSpan - 1},
      {8 * kSpan - 1, 8 * kSpan + kSpan / 2 - 2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.newest, row.number);
    ReplayWindow window;
    if (row.newest > 0) REQUIRE(window.accept(row.newest));
    CHECK(window.restore(low_half(row.number)) == row.number);
  }
}
