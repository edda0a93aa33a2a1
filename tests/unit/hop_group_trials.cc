// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// When a group is tried, and what is learned from it.
#include "tests/unit/group_children.h"

using namespace gradplane;
using namespace gradplane::hop;
using namespace gradplane::hop::testing;

TEST_CASE("a group is tried while some child does not hear it, more and more rarely") {
  Children c(2);
  CHECK_FALSE(c.group.trial(c.edges));  // there is no result
  c.open();
  c.offer(7);
  Instant now = kNow;
  CHECK(c.group.next_trial() <= now);
  const auto trial = c.group.trial(c.edges);
  REQUIRE(trial);
  CHECK(trial->block == 7);
  CHECK(trial->slot == 0);
  c.group.on_trial(now);
  CHECK_FALSE(c.group.trial(c.edges));  // each result is tried once
  Duration pause = kFirstGroupTrial;
  for (int n = 0; n < 12; ++n) {
    c.offer(8);
    CHECK(c.group.trial(c.edges));
    CHECK(c.group.next_trial() == now + pause);
    now = now + pause;
    c.group.on_trial(now);
    pause = std::min(pause * 2, kMaxGroupTrial);
  }
  c.group.on_heard(c.edges[0], 5, kNow);
  c.offer(9);
  CHECK(c.group.trial(c.edges));
  c.group.on_heard(c.edges[1], 5, kNow);
  CHECK_FALSE(c.group.trial(c.edges));
  // It is tried soon when somebody has gone deaf.
  c.group.on_lost(c.edges[1], kDeafAfter);
  CHECK(c.group.trial(c.edges));
  CHECK(c.group.next_trial() <= kNow);
}

TEST_CASE("a trial waits a little until all who do not hear the group would answer") {
  Children c(2);
  c.open();
  c.edges[1].hold(0);
  c.offer(1);
  c.group.begin_trials(kNow);
  c.group.begin_trials(kNow + Duration::ms(1));
  CHECK(c.group.trial_time(c.edges) == kNow + kTrialPatience);
  c.edges[1].release(0);
  CHECK(c.group.trial_time(c.edges) == kNow);
}

TEST_CASE("a group is not tried where nobody would answer") {
  Children c(2);
  c.open();
  c.offer(1);
  CHECK(c.group.trial(c.edges));
  SECTION("all children are held") {
    c.edges[0].hold(0);
    c.edges[1].hold(0);
  }
  SECTION("all have the block") {
    const std::uint64_t second = 2;
    for (OutEdge& edge : c.edges) {
      (void)edge.senders[0].take(1);
      (void)edge.senders[0].on_ack(0, {&second, 1});
    }
  }
  SECTION("the round is over") {
    c.group.stop(0, c.edges);
  }
  CHECK_FALSE(c.group.trial(c.edges));
}

TEST_CASE("an echo is older than all after ten minutes, because clocks go round") {
  Children c(2);
  c.group.on_heard(c.edges[0], 0xfffffff0, kNow);
  c.group.on_lost(c.edges[0], kDeafAfter);
  c.group.on_heard(c.edges[0], 5, kNow + Duration::seconds(1));
  CHECK(c.edges[0].member.hears);  // newer by the clock that goes round
  c.group.on_lost(c.edges[0], kDeafAfter);
  c.group.on_heard(c.edges[0], 4, kNow + Duration::seconds(2));
  CHECK_FALSE(c.edges[0].member.hears);
  c.group.on_heard(c.edges[0], 4, kNow + Duration::seconds(602));
  CHECK(c.edges[0].member.hears);
}
