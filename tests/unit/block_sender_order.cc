// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <set>

#include "dataplane/hop/block_sender.h"
#include "tests/support/catch.h"

using namespace gradplane;
using hop::BlockSender;

namespace {

constexpr Duration kWindow = Duration::us(200);

BlockSender opened(std::uint32_t begin, std::uint32_t end, std::uint32_t rotation = 0) {
  BlockSender sender(512);
  sender.open({begin, end}, rotation);
  sender.offer_all();
  return sender;
}

void take_all(BlockSender& sender, std::uint32_t now_us) {
  while (sender.has_queued()) (void)sender.take(now_us++);
}

}  // namespace

TEST_CASE("every block goes once, in an order that begins at the rotation") {
  const std::uint32_t size = GENERATE(1u, 5u, 64u, 65u, 130u);
  for (std::uint32_t rotation : {0U, 1U, 63U, 64U, 7919U, 0xffff'ffffU}) {
    CAPTURE(size, rotation);
    BlockSender sender = opened(100, 100 + size, rotation);
    for (std::uint32_t i = 0; i < size; ++i) {
      REQUIRE(sender.all_sent() == false);
      const BlockSender::Pick pick = sender.take(i);
      REQUIRE(pick.block == 100 + (rotation % size + i) % size);
      REQUIRE_FALSE(pick.retransmission);
    }
    CHECK(sender.all_sent());
    CHECK_FALSE(sender.has_queued());
    CHECK(sender.in_flight() == size);
    CHECK(sender.on_complete() == size);
    CHECK(sender.complete());
  }
}

TEST_CASE("blocks that are offered late go after the cursor, then around") {
  BlockSender sender(64);
  sender.open({0, 8}, 4);
  sender.offer(6);
  CHECK(sender.take(0).block == 6);
  sender.offer(2);
  sender.offer(7);
  sender.offer(7);
  CHECK(sender.take(0).block == 7);
  CHECK(sender.take(0).block == 2);
  CHECK_FALSE(sender.has_queued());
  sender.offer(2);
  CHECK_FALSE(sender.has_queued());
}

TEST_CASE("an ack counts each block in flight once") {
  BlockSender sender = opened(0, 130);
  take_all(sender, 0);
  const std::uint64_t some[] = {0b1010, 0, 0b11};
  CHECK(sender.on_ack(0, some) == 4);
  CHECK(sender.on_ack(0, some) == 0);
  CHECK(sender.on_ack(1, {}) == 62);
  CHECK(sender.on_arrived(64) == 1);
  CHECK(sender.on_arrived(64) == 0);
  CHECK(sender.on_ack(1000, {}) == 63);
  CHECK(sender.complete());
  CHECK(sender.in_flight() == 0);
}

TEST_CASE("an ack of blocks that were never sent means nothing") {
  BlockSender sender(64);
  sender.open({0, 20}, 0);
  sender.offer(0);
  sender.offer(1);
  (void)sender.take(0);
  CHECK(sender.on_complete() == 1);
  CHECK_FALSE(sender.complete());
  CHECK_FALSE(sender.all_sent());
  CHECK(sender.take(0).block == 1);
  CHECK_FALSE(sender.was_sent(2));
  CHECK(sender.was_sent(1));
}

TEST_CASE("only what was sent a window before the echo is lost") {
  BlockSender sender = opened(0, 4);
  for (const std::uint32_t at : {1000U, 1100U, 1300U, 1301U}) (void)sender.take(at);
  CHECK(sender.find_lost(1300, kWindow).blocks == 1);  // later by exactly the window is not enough
  CHECK(sender.in_flight() == 3);
  const BlockSender::Pick pick = sender.take(2000);
  CHECK(pick.block == 0);
  CHECK(pick.retransmission);
  CHECK(sender.find_lost(1300, kWindow).blocks == 0);
  const BlockSender::Lost lost = sender.find_lost(1501, kWindow);
  CHECK(lost.blocks == 2);
  CHECK(lost.newest_us == 1300);
  CHECK(sender.in_flight() == 2);
}

TEST_CASE("a lost block that arrives after all is not sent again") {
  BlockSender sender = opened(0, 2);
  (void)sender.take(1000);
  (void)sender.take(5000);
  REQUIRE(sender.find_lost(5000, kWindow).blocks == 1);
  const std::uint64_t first[] = {1};
  CHECK(sender.on_ack(0, first) == 0);  // the block is no longer in flight
  CHECK_FALSE(sender.has_queued());
  CHECK(sender.on_complete() == 1);
  CHECK(sender.complete());
}

TEST_CASE("the microsecond clock may wrap between sending and echo") {
  BlockSender sender = opened(0, 3);
  (void)sender.take(0xffff'ff00);
  (void)sender.take(0xffff'ffff);
  (void)sender.take(0x0000'0010);
  CHECK(sender.find_lost(0x0000'0010, kWindow).blocks == 1);
  CHECK(sender.probe(0x0000'0400) == 1);
  CHECK(sender.take(0x0000'0401).block == 0);
  CHECK(sender.take(0x0000'0402).block == 1);
  CHECK(hop::before_us(0xffff'ffff, 0));
  CHECK_FALSE(hop::before_us(0, 0xffff'ffff));
  CHECK(hop::clock_us(Instant::from_ns((std::int64_t{1} << 32) * 1000 + 5000)) == 5);
}

TEST_CASE("a probe takes the block that has waited longest") {
  BlockSender sender = opened(0, 3, 1);
  for (const std::uint32_t at : {50U, 40U, 60U}) (void)sender.take(at);
  CHECK(sender.probe(100) == 1);
  CHECK(sender.in_flight() == 2);
  CHECK(sender.take(100).block == 2);  // the block that was sent earliest, at 40
  BlockSender idle = opened(0, 3);
  CHECK(idle.probe(100) == 0);
}

TEST_CASE("closing forgets everything and says what was in flight") {
  BlockSender sender = opened(0, 10);
  (void)sender.take(0);
  (void)sender.take(0);
  CHECK(sender.close() == 2);
  CHECK_FALSE(sender.has_queued());
  CHECK(sender.in_flight() == 0);
  CHECK(sender.on_complete() == 0);
  sender.open({5, 9}, 0);
  sender.offer_all();
  CHECK(sender.take(0).block == 5);
}

TEST_CASE("critical blocks go first; repairs go before new blocks while they are few") {
  Bitmap critical(200);
  critical.reset(200);
  critical.set(13);
  critical.set(17);
  BlockSender sender(200);
  sender.open({10, 110}, 5, &critical);
  sender.offer_all();
  CHECK(sender.take(0).block == 13);
  CHECK(sender.take(0).block == 17);
  std::vector<std::uint32_t> sent;
  for (int n = 0; n < 22; ++n) sent.push_back(sender.take(0).block);
  CHECK(sent.front() == 15);
  CHECK(sent.back() == 37);
  // All blocks but 17 are lost. The critical block 13 goes at once. Then come repairs, up to an
  // eighth of all packets that were sent, and then new blocks.
  CHECK(sender.on_ack(0, std::vector<std::uint64_t>{1U << 7}) == 1);
  CHECK(sender.find_lost(10'000, kWindow).blocks == 23);
  const BlockSender::Pick again = sender.take(20'000);
  CHECK(again.block == 13);
  CHECK(again.retransmission);
  std::vector<std::uint32_t> next;
  for (int n = 0; n < 7; ++n) next.push_back(sender.take(20'000).block);
  CHECK(next == std::vector<std::uint32_t>{15, 16, 18, 19, 38, 39, 40});
  while (!sender.all_sent()) (void)sender.take(20'000);
  CHECK(sender.has_queued());
}

TEST_CASE("once the peer gathers no more, what it has not is excluded") {
  BlockSender sender = opened(0, 10);
  for (int n = 0; n < 6; ++n) (void)sender.take(0);
  CHECK(sender.on_ack(0, std::vector<std::uint64_t>{0b1011}) == 3);
  CHECK_FALSE(sender.settled());
  CHECK(sender.on_closed() == 3);
  CHECK(sender.settled());
  CHECK_FALSE(sender.complete());
  CHECK(sender.excluded() == 7);
  CHECK_FALSE(sender.has_queued());
  CHECK(sender.in_flight() == 0);
  // Later acks and offers do not change the excluded blocks.
  CHECK(sender.on_complete() == 0);
  sender.offer(9);
  CHECK_FALSE(sender.has_queued());
  CHECK(sender.is_acked(3));
  CHECK_FALSE(sender.is_acked(2));
}

TEST_CASE("on a long path a repair goes twice, behind all else, unless the first is acked") {
  BlockSender sender = opened(0, 4);
  take_all(sender, 0);
  CHECK(sender.on_ack(0, std::vector<std::uint64_t>{0b1100}) == 2);
  CHECK(sender.find_lost(10'000, kWindow).blocks == 2);
  CHECK_FALSE(sender.take(20'000, true).copy);
  CHECK(sender.take(20'000, true).block == 1);
  CHECK(sender.in_flight() == 2);
  // Both blocks are in flight again, and a copy of each is queued.
  const BlockSender::Pick copy = sender.take(20'001, true);
  CHECK(copy.block == 0);
  CHECK(copy.copy);
  CHECK(copy.retransmission);
  CHECK(sender.in_flight() == 2);
  CHECK(sender.on_ack(0, std::vector<std::uint64_t>{0b1110}) == 1);
  CHECK_FALSE(sender.has_queued());
  CHECK(sender.on_complete() == 1);
  CHECK(sender.complete());
}

TEST_CASE("the end of a round may go twice, once, as far back as asked") {
  BlockSender sender = opened(0, 4);
  for (std::uint32_t b = 0; b < 4; ++b) (void)sender.take(1000 * b);
  sender.copy_tail(3000, Duration::us(1500));
  CHECK(sender.in_flight() == 4);
  CHECK(sender.on_ack(0, std::vector<std::uint64_t>{0b0100}) == 1);
  const BlockSender::Pick copy = sender.take(3001);
  CHECK(copy.block == 3);
  CHECK(copy.copy);
  CHECK_FALSE(sender.has_queued());
  sender.copy_tail(3002, Duration::us(5000));
  CHECK_FALSE(sender.has_queued());
}

TEST_CASE("blocks that do not go to the peer are settled from the start") {
  constexpr std::uint32_t kBlocks = 200;
  Bitmap carried(kBlocks);
  carried.reset(kBlocks);
  carried.set_range(64, 130);
  BlockSender sender(kBlocks);
  sender.open({1000, 1000 + kBlocks}, 7919);
  sender.carry_only(carried);
  CHECK(sender.settled_count() == kBlocks - 66);
  CHECK(sender.was_sent(1063));
  CHECK_FALSE(sender.was_sent(1064));
  sender.offer_all();
  CHECK(sender.queued() == 66);
  while (sender.has_queued()) {
    CHECK_FALSE(sender.all_sent());
    const BlockSender::Pick pick = sender.take(0);
    CHECK((pick.block >= 1064 && pick.block < 1130));
  }
  CHECK(sender.all_sent());
  // An ack covers only the blocks from 1064 on, because the peer never gets the others.
  CHECK(sender.acked_beyond(0, std::vector<std::uint64_t>(4)) == 0);
  CHECK(sender.on_ack(1, std::vector<std::uint64_t>{~std::uint64_t{0}, 3}) == 66);
  CHECK(sender.complete());
  CHECK(sender.repeat(1000));  // a block that was acked goes again as a question
  sender.open({0, kBlocks}, 0);
  CHECK(sender.settled_count() == 0);
}
