// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/progress_watch.h"

#include "control/config/option_table.h"
#include "dataplane/hop/block_sender.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::job;

namespace {

constexpr Duration kLimit = Duration::seconds(5);
constexpr Instant kStart = Instant::from_ns(7'000'000'000'000);

/// Looks for `time` as often as a node that polls. Returns the time then.
Instant look_for(ProgressWatch& watch, Instant now, Duration time) {
  for (const Instant end = now + time; now < end;) {
    now = now + hop::kLookInterval;
    watch.look(now);
  }
  return now;
}

}  // namespace

TEST_CASE("a watch is stalled when nothing has moved for its limit") {
  ProgressWatch watch(kLimit);
  watch.look(kStart);
  watch.moved();
  Instant now = look_for(watch, kStart, kLimit - hop::kLookInterval);
  CHECK_FALSE(watch.is_stalled());
  watch.moved();
  now = look_for(watch, now, kLimit - hop::kLookInterval);
  CHECK_FALSE(watch.is_stalled());
  look_for(watch, now, hop::kLookInterval);
  CHECK(watch.is_stalled());
  CHECK(watch.quiet() == kLimit);
}

TEST_CASE("time in which the node did not look counts for nothing") {
  ProgressWatch watch(kLimit);
  Instant now = kStart;
  for (int stops = 0; stops < 5; ++stops) {
    now = now + Duration::seconds(3600);
    watch.look(now);
    CHECK(watch.quiet() == kLongestStep * (stops + 1));
  }
  watch.look(now - Duration::seconds(1));  // a clock that runs backwards
  CHECK(watch.quiet() == kLongestStep * 5);
}

TEST_CASE("after a look for nothing the next is some time later") {
  ProgressWatch watch(kLimit);
  const Instant now = look_for(watch, kStart, kLimit + hop::kLookInterval);
  REQUIRE(watch.is_stalled());
  watch.postpone();
  CHECK_FALSE(watch.is_stalled());
  look_for(watch, now, hop::kAskInterval);
  CHECK(watch.is_stalled());
}

TEST_CASE("without a limit nothing is ever stalled") {
  ProgressWatch watch({});
  look_for(watch, kStart, Duration::seconds(100));
  CHECK_FALSE(watch.is_on());
  CHECK_FALSE(watch.is_stalled());
}

TEST_CASE("a round is given up after a dead node is, and before a process group loses patience") {
  constexpr Duration kGroupTimeout = Duration::seconds(30 * 60);  // the default of torch
  CHECK(stall_after(Duration::ms(100)) == kMinStall);
  CHECK(stall_after(Duration::seconds(3)) == Duration::seconds(6));
  for (const config::Option& option : config::options()) {
    if (option.path != "liveness.suspect_after") continue;
    const Duration longest = Duration::ns(static_cast<std::int64_t>(option.max));
    CHECK(stall_after(longest) > longest);
    CHECK(stall_after(longest) < kGroupTimeout);
    return;
  }
  FAIL("there is no liveness.suspect_after");
}

TEST_CASE("a question is put once a while, and at every look until it is answered") {
  hop::Inquiry inquiry;
  Instant now = kStart;
  CHECK_FALSE(inquiry.is_due(4, now));
  CHECK_FALSE(inquiry.is_due(4, now + hop::kAskInterval - Duration::ns(1)));
  now = now + hop::kAskInterval;
  REQUIRE(inquiry.is_due(4, now));
  CHECK_FALSE(inquiry.is_answered_by(4, hop::clock_us(now)));  // no question was asked
  inquiry.on_asked(hop::clock_us(now), now);
  CHECK(inquiry.is_due(4, now + hop::kLookInterval));
  inquiry.on_asked(hop::clock_us(now + hop::kLookInterval), now + hop::kLookInterval);
  CHECK(inquiry.unanswered_for() == hop::kLookInterval * 2);
  // An ack from before the first question is no answer.
  CHECK_FALSE(inquiry.is_answered_by(4, hop::clock_us(now) - 1));
  CHECK_FALSE(inquiry.is_answered_by(5, hop::clock_us(now)));
  REQUIRE(inquiry.is_answered_by(4, hop::clock_us(now)));
  inquiry.on_answer(now);
  CHECK(inquiry.unanswered_for() == Duration{});
  CHECK_FALSE(inquiry.is_due(4, now + hop::kLookInterval));
  CHECK(inquiry.is_due(4, now + hop::kAskInterval));
  CHECK_FALSE(inquiry.is_due(5, now + hop::kAskInterval));  // another round has its own time
  inquiry.rest();
  CHECK_FALSE(inquiry.waits());
}

TEST_CASE("a settled round's blocks may be sent once more, behind all else") {
  hop::BlockSender sender(4);
  sender.open({10, 14}, 0);
  sender.offer_all();
  CHECK_FALSE(sender.repeat(10));
  for (std::uint32_t n = 0; n < 4; ++n) (void)sender.take(n);
  CHECK_FALSE(sender.repeat(10));  // a block in flight is sent again anyway
  REQUIRE(sender.on_complete() == 4);
  REQUIRE(sender.repeat(12));
  REQUIRE(sender.repeat(12));
  CHECK(sender.queued() == 1);
  const hop::BlockSender::Pick pick = sender.take(9);
  CHECK(pick.block == 12);
  CHECK(pick.copy);
  CHECK(pick.retransmission);
  CHECK(sender.in_flight() == 0);
  CHECK(sender.queued() == 0);
  // The result of block 13 has come, so there is nothing to ask.
  REQUIRE(sender.repeat(13));
  CHECK(sender.on_arrived(13) == 0);
  CHECK(sender.queued() == 0);
}

TEST_CASE("a later bitmap may not lack what an earlier one had") {
  hop::BlockSender sender(130);
  sender.open({0, 130}, 0);
  sender.offer_all();
  for (std::uint32_t n = 0; n < 130; ++n) (void)sender.take(n);
  (void)sender.on_complete();
  const std::uint64_t all = ~std::uint64_t{0};
  CHECK(sender.acked_beyond(0, std::vector<std::uint64_t>{all, all, 3}) == 0);
  CHECK(sender.acked_beyond(3, {}) == 0);
  CHECK(sender.acked_beyond(1, std::vector<std::uint64_t>{all, 3}) == 0);
  CHECK(sender.acked_beyond(0, std::vector<std::uint64_t>{all - 4, all, 1}) == 2);
  CHECK(sender.acked_beyond(1, std::vector<std::uint64_t>{all}) == 2);
  CHECK(sender.acked_beyond(0, {}) == 130);
}
