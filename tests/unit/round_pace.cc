// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How many rounds may begin before the nodes have agreed on another plan.
#include "dataplane/job/round_pace.h"

#include "tests/support/catch.h"

using namespace gradplane;
using job::RoundPace;

namespace {

constexpr Duration kSpan = Duration::seconds(1);
constexpr std::uint32_t kFirst = 0xffff'fff0;  // round numbers wrap around

/// Returns the pace after `count` rounds. Every `pause` another `at_once` rounds are done.
RoundPace paced(std::uint32_t count, std::uint32_t at_once, Duration pause) {
  RoundPace pace;
  Instant now;
  pace.look(now, kFirst);
  for (std::uint32_t done = at_once; done <= count; done += at_once) {
    now = now + pause;
    pace.look(now, kFirst + done);
  }
  return pace;
}

}  // namespace

TEST_CASE("slow rounds have a short way to the next plan") {
  CHECK(paced(100, 1, Duration::seconds(3)).most_in(kSpan) == 2);
  // Rounds begin at 0, 500 and 1000 ms, and one more is allowed for.
  CHECK(paced(100, 1, Duration::ms(500)).most_in(kSpan) == 4);
  CHECK(paced(100, 1, Duration::ms(400)).most_in(kSpan) == 4);
}

TEST_CASE("rounds of one iteration begin together") {
  CHECK(paced(96, 8, Duration::seconds(5)).most_in(kSpan) == 9);
}

TEST_CASE("the way is never longer than the limit, and that long where little is known") {
  CHECK(paced(1000, 1, Duration::ms(1)).most_in(kSpan) == kMaxActivationMarginRounds);
  CHECK(paced(kMaxActivationMarginRounds - 1, 1, Duration::seconds(3)).most_in(kSpan) ==
        kMaxActivationMarginRounds);
  CHECK(paced(kMaxActivationMarginRounds, 1, Duration::seconds(3)).most_in(kSpan) == 2);
  CHECK(RoundPace().most_in(kSpan) == kMaxActivationMarginRounds);
}

TEST_CASE("only the last rounds count") {
  RoundPace pace = paced(100, 1, Duration::ms(1));
  Instant now = Instant() + Duration::seconds(10);
  for (std::uint32_t n = 1; n <= kMaxActivationMarginRounds; ++n) {
    now = now + Duration::seconds(3);
    pace.look(now, kFirst + 100 + n);
  }
  CHECK(pace.most_in(kSpan) == 2);
}
