// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Which ranks wait for which others under bounded staleness.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "dataplane/model/staleness.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

void do_rounds(Staleness& staleness, std::size_t rank, int rounds) {
  for (int n = 0; n < rounds; ++n) staleness.on_done(rank);
}

}  // namespace

TEST_CASE("a rank waits for those more than the bound behind it") {
  Staleness staleness(3, 2);
  do_rounds(staleness, 0, 2);
  do_rounds(staleness, 1, 1);
  CHECK(staleness.may_begin(0));  // rank 2 is 2 rounds behind
  CHECK(!staleness.may_begin(0, 1));
  CHECK(staleness.is_awaited(2));  // rank 0 will wait for it after its next round
  CHECK(!staleness.is_awaited(1));
  staleness.on_done(0);
  CHECK(!staleness.may_begin(0));
  CHECK(staleness.waits_for(0, 2));
  CHECK(!staleness.waits_for(0, 1));
  CHECK(!staleness.waits_for(2, 0));
  CHECK(staleness.may_begin(1));
  CHECK(staleness.may_begin(2));
  staleness.on_done(2);
  CHECK(staleness.may_begin(0));
  CHECK(staleness.rounds_done(0) == 3);
}

TEST_CASE("with a bound of 0 all ranks are in the same round") {
  Staleness staleness(2, 0);
  CHECK(staleness.may_begin(0));
  staleness.on_done(0);
  CHECK(!staleness.may_begin(0));
  CHECK(staleness.may_begin(1));
  staleness.on_done(1);
  CHECK(staleness.may_begin(0));
}

TEST_CASE("nobody waits for a rank that is gone, and it begins nothing") {
  Staleness staleness(3, 1);
  do_rounds(staleness, 0, 5);
  do_rounds(staleness, 1, 5);
  CHECK(!staleness.may_begin(0));
  staleness.on_gone(2);
  CHECK(staleness.is_gone(2));
  CHECK(staleness.may_begin(0));
  CHECK(!staleness.may_begin(2));
  staleness.on_gone(0);
  do_rounds(staleness, 0, 9);
  CHECK(!staleness.is_awaited(1));
}

TEST_CASE("no rank is ever further ahead than bound + 1 rounds, and somebody may always go on") {
  std::mt19937_64 random(1);
  for (int run = 0; run < 50; ++run) {
    const std::size_t ranks = 1 + random() % 6;
    const auto bound = static_cast<std::uint32_t>(random() % 4);
    Staleness staleness(ranks, bound);
    for (int step = 0; step < 200; ++step) {
      std::vector<std::size_t> ready;
      std::vector<std::uint64_t> done;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (staleness.is_gone(rank)) continue;
        done.push_back(staleness.rounds_done(rank));
        if (staleness.may_begin(rank)) ready.push_back(rank);
      }
      REQUIRE(!ready.empty());
      const auto [least, most] = std::minmax_element(done.begin(), done.end());
      CHECK(*most - *least <= bound + 1);
      const std::size_t rank = ready[random() % ready.size()];
      if (done.size() > 1 && random() % 100 == 0) {
        staleness.on_gone(rank);
      } else {
        staleness.on_done(rank);
      }
    }
  }
}
