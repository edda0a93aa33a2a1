// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// When a node sends trials to a group, and what their answers tell.
#include "tests/unit/group_children.h"

using namespace gradplane;
using namespace gradplane::hop;
using namespace gradplane::hop::testing;

TEST_CASE("a group is tried while some child does not hear it, more and more rarely") {
  Children c(2);
  CHECK_FALSE(c.group.trial());  // there is no result to send
  c.open();
  c.offer(7);
  Instant now = kNow;
  CHECK(c.group.next_trial() <= now);
  const auto trial = c.group.trial();
  REQUIRE(trial);
  CHECK(trial->block == 7);
  CHECK(trial->slot == 0);
  c.group.on_trial(now);
  CHECK_FALSE(c.group.trial());  // each result is in one trial at most
  Duration pause = kFirstGroupTrial;
  for (int n = 0; n < 12; ++n) {
    c.offer(8);
    CHECK(c.group.trial());
    CHECK(c.group.next_trial() == now + pause);
    now = now + pause;
    c.group.on_trial(now);
    pause = std::min(pause * 2, kMaxGroupTrial);
  }
  c.group.on_heard(c.member(0), 5, kNow);
  c.offer(9);
  CHECK(c.group.trial());
  c.group.on_heard(c.member(1), 5, kNow);
  CHECK_FALSE(c.group.trial());
  // A trial is due soon after a child has gone deaf.
  c.go_deaf(1);
  CHECK(c.group.trial());
  CHECK(c.group.next_trial() <= kNow);
}

TEST_CASE("a trial waits a little until all who do not hear the group would answer") {
  Children c(2);
  c.open();
  c.edges[1].hold(0);
  c.offer(1);
  c.group.begin_trials(kNow);
  c.group.begin_trials(kNow + Duration::ms(1));
  CHECK(c.group.trial_time() == kNow + kTrialPatience);
  c.edges[1].release(0);
  CHECK(c.group.trial_time() == kNow);
}

TEST_CASE("a group is not tried where nobody would answer") {
  Children c(2);
  c.open();
  c.offer(1);
  CHECK(c.group.trial());
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
  SECTION("it is on its way to all, and may be the last that they lack") {
    for (OutEdge& edge : c.edges) (void)edge.senders[0].take(1);
  }
  SECTION("the round is over") {
    c.group.stop(0);
  }
  CHECK_FALSE(c.group.trial());
}

TEST_CASE("a group is tried in the round in which most of those who do not hear it would answer") {
  Children c(3);
  for (const std::size_t slot : {0U, 1U, 2U}) {
    c.open(slot);
    for (std::size_t child = 0; child < slot; ++child) c.edges[child].hold(slot);
    c.offer(static_cast<std::uint32_t>(slot), slot);
  }
  for (OutEdge& edge : c.edges) edge.hold(2);
  c.edges[0].senders[0].settle(0);
  c.edges[1].senders[0].settle(0);
  REQUIRE(c.group.trial());
  CHECK(c.group.trial()->slot == 1);  // in slot 1 two children can answer, in slot 0 one
  CHECK(c.group.trial()->block == 1);
  c.group.begin_trials(kNow);
  CHECK(c.group.trial_time() == kNow + kTrialPatience);
  // All children that did not hear the group would answer now.
  c.group.on_heard(c.member(0), 5, kNow);
  CHECK(c.group.trial_time() == kNow);
}

TEST_CASE(
    "of rounds in which as many would answer, a group is tried in the one of the last block") {
  Children c(2);
  for (const std::size_t slot : {0U, 1U, 2U}) c.open(slot);
  c.offer(5, 2);
  c.offer(6, 0);
  c.offer(7, 1);
  CHECK(c.group.trial()->block == 7);
  c.offer(8, 0);
  CHECK(c.group.trial()->block == 8);
}

TEST_CASE("an echo is older than all after ten minutes, because clocks go round") {
  Children c(2);
  c.group.on_heard(c.member(0), 0xfffffff0, kNow);
  c.go_deaf(0);
  c.group.on_heard(c.member(0), 5, kNow + Duration::seconds(1));
  CHECK(c.member(0).hears);  // the clock has wrapped around, so 5 is newer
  c.go_deaf(0);
  c.group.on_heard(c.member(0), 4, kNow + Duration::seconds(2));
  CHECK_FALSE(c.member(0).hears);
  c.group.on_heard(c.member(0), 4, kNow + Duration::seconds(602));
  CHECK(c.member(0).hears);
}
