// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/core/iteration.h"
#include "tests/support/catch.h"

using namespace gradplane;
using core::Iteration;

TEST_CASE("a round of no bucket is an iteration by itself") {
  Iteration iteration(1);
  CHECK(iteration.ratio(0) == 0);
  CHECK(iteration.on_round(0, 0));
  iteration.on_announced(0, 100);
  iteration.on_settled(0, 0, 25);
  CHECK(iteration.ratio(0) == 0.25);
  iteration.on_settled(0, 0, 75);
  CHECK(iteration.ratio(0) == 1);
  CHECK(iteration.on_round(1, 0));
  CHECK(iteration.ratio(0) == 0);
  iteration.on_announced(0, 10);  // less than the last had
  iteration.on_settled(1, 0, 5);
  CHECK(iteration.ratio(0) == 0.5);
}

TEST_CASE("an iteration ends where a bucket comes again, and holds what the last one held") {
  Iteration iteration(2);
  CHECK(iteration.on_round(0, 1));
  iteration.on_announced(0, 60);
  CHECK_FALSE(iteration.on_round(1, 2));
  iteration.on_announced(0, 40);
  iteration.on_settled(0, 0, 60);
  iteration.on_settled(1, 0, 40);
  CHECK(iteration.ratio(0) == 1);
  CHECK(iteration.ratio(1) == 0);

  CHECK(iteration.on_round(2, 1));
  CHECK(iteration.ratio(0) == 0);
  iteration.on_announced(0, 60);
  iteration.on_settled(2, 0, 30);
  CHECK(iteration.ratio(0) == 0.3);  // of 100, though the second bucket is not there yet
  CHECK_FALSE(iteration.on_round(3, 2));
  iteration.on_announced(0, 90);  // it has grown
  iteration.on_settled(2, 0, 30);
  iteration.on_settled(3, 0, 15);
  CHECK(iteration.ratio(0) == 0.5);
}

TEST_CASE("what is left of an older iteration does not count for the new one") {
  Iteration iteration(1);
  iteration.on_round(0, 5);
  iteration.on_announced(0, 10);
  iteration.on_round(1, 5);
  iteration.on_announced(0, 10);
  iteration.on_settled(0, 0, 10);
  CHECK(iteration.ratio(0) == 0);
  iteration.on_settled(1, 0, 10);
  CHECK(iteration.ratio(0) == 1);
}
