// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/iteration.h"
#include "tests/support/catch.h"

using namespace gradplane;
using hop::Iteration;

namespace {

constexpr hop::PeerIndex kPeer{0};
constexpr hop::PeerIndex kOther{1};

}  // namespace

TEST_CASE("a round of no bucket is an iteration by itself") {
  Iteration iteration(1);
  CHECK(iteration.ratio(kPeer) == 0);
  CHECK(iteration.on_round(0, 0));
  iteration.on_announced(kPeer, 100);
  iteration.on_settled(0, kPeer, 25);
  CHECK(iteration.ratio(kPeer) == 0.25);
  iteration.on_settled(0, kPeer, 75);
  CHECK(iteration.ratio(kPeer) == 1);
  CHECK(iteration.on_round(1, 0));
  CHECK(iteration.ratio(kPeer) == 0);
  iteration.on_announced(kPeer, 10);  // fewer blocks than the last iteration
  iteration.on_settled(1, kPeer, 5);
  CHECK(iteration.ratio(kPeer) == 0.5);
}

TEST_CASE("an iteration ends where a bucket comes again, and holds what the last one held") {
  Iteration iteration(2);
  CHECK(iteration.on_round(0, 1));
  iteration.on_announced(kPeer, 60);
  CHECK_FALSE(iteration.on_round(1, 2));
  iteration.on_announced(kPeer, 40);
  iteration.on_settled(0, kPeer, 60);
  iteration.on_settled(1, kPeer, 40);
  CHECK(iteration.ratio(kPeer) == 1);
  CHECK(iteration.ratio(kOther) == 0);

  CHECK(iteration.on_round(2, 1));
  CHECK(iteration.ratio(kPeer) == 0);
  iteration.on_announced(kPeer, 60);
  iteration.on_settled(2, kPeer, 30);
  CHECK(iteration.ratio(kPeer) == 0.3);  // of the 100 blocks of the last iteration
  CHECK_FALSE(iteration.on_round(3, 2));
  iteration.on_announced(kPeer, 90);  // more blocks than the last time
  iteration.on_settled(2, kPeer, 30);
  iteration.on_settled(3, kPeer, 15);
  CHECK(iteration.ratio(kPeer) == 0.5);
}

TEST_CASE("a round of no bucket among buckets is a part of their iteration") {
  Iteration iteration(1);
  const auto round = [&](std::size_t slot, std::uint16_t bucket, std::uint32_t blocks) {
    const bool begins = iteration.on_round(slot, bucket);
    iteration.on_announced(kPeer, blocks);
    return begins;
  };
  CHECK(round(0, 0, 1));  // a round without a bucket, such as a metric
  CHECK_FALSE(round(1, 1, 50));
  CHECK_FALSE(round(2, 2, 49));
  CHECK_FALSE(round(3, 0, 1));
  CHECK(round(4, 1, 50));
  CHECK(iteration.ratio(kPeer) == 0);
  iteration.on_settled(4, kPeer, 50);
  CHECK(iteration.ratio(kPeer) == Approx(50 / 101.0));
  CHECK_FALSE(round(5, 0, 1));
  iteration.on_settled(5, kPeer, 1);
  CHECK(iteration.ratio(kPeer) == Approx(51 / 101.0));
}

TEST_CASE("what is left of an older iteration does not count for the new one") {
  Iteration iteration(1);
  iteration.on_round(0, 5);
  iteration.on_announced(kPeer, 10);
  iteration.on_round(1, 5);
  iteration.on_announced(kPeer, 10);
  iteration.on_settled(0, kPeer, 10);
  CHECK(iteration.ratio(kPeer) == 0);
  iteration.on_settled(1, kPeer, 10);
  CHECK(iteration.ratio(kPeer) == 1);
}
