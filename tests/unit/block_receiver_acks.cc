// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <memory>
#include <random>

#include "dataplane/hop/block_receiver.h"
#include "tests/support/catch.h"

using namespace gradplane;
using hop::BlockReceiver;

namespace {

const Instant kStart = Instant::from_ns(1'000'000'000);

}  // namespace

TEST_CASE("a block is accepted once") {
  BlockReceiver receiver(512);
  receiver.open({10, 13});
  CHECK(receiver.accept(12));
  CHECK_FALSE(receiver.accept(12));
  CHECK(receiver.has(12));
  CHECK_FALSE(receiver.has(11));
  CHECK(receiver.arrived() == 1);
  CHECK(receiver.accept(10));
  CHECK_FALSE(receiver.complete());
  CHECK(receiver.accept(11));
  CHECK(receiver.complete());
  receiver.open({0, 512});
  CHECK(receiver.arrived() == 0);
  CHECK(receiver.accept(12));
}

TEST_CASE("an ack names exactly what arrived, whatever the order") {
  constexpr std::uint32_t kBlocks = 300;
  const auto ack = std::make_unique<BlockReceiver::Ack>();
  std::mt19937 random(5);
  BlockReceiver receiver(kBlocks);
  receiver.open({7, 7 + kBlocks});
  std::vector<bool> model(kBlocks);
  while (!receiver.complete()) {
    const auto i = static_cast<std::uint32_t>(random() % kBlocks);
    REQUIRE(receiver.accept(7 + i) == !model[i]);
    model[i] = true;
    receiver.fill_ack(*ack, kStart);
    REQUIRE(ack->first_word + ack->word_count <= (kBlocks + 63) / 64);
    for (std::uint32_t b = 0; b < kBlocks; ++b) {
      const std::size_t word = b / 64;
      bool named = word < ack->first_word;
      if (word >= ack->first_word && word < ack->first_word + ack->word_count) {
        named = (ack->words[word - ack->first_word] >> (b % 64) & 1) != 0;
      }
      if (named != model[b]) FAIL("block " << b);
    }
  }
  CHECK((ack->flags & wire::kFlagComplete) != 0);
}

TEST_CASE("an ack goes at once after enough packets, a duplicate, or the last block there is") {
  BlockReceiver receiver(64);
  receiver.open({0, 40});
  for (std::uint32_t n = 0; n + 1 < hop::kAckEveryPackets; ++n) {
    (void)receiver.accept(n);
    REQUIRE_FALSE(receiver.note_packet({.timestamp_us = n, .duplicate = false}, kStart));
    REQUIRE(receiver.owes_ack());
  }
  (void)receiver.accept(20);
  CHECK(receiver.note_packet({.timestamp_us = 20, .duplicate = false}, kStart));
  const auto ack = std::make_unique<BlockReceiver::Ack>();
  receiver.fill_ack(*ack, kStart);
  CHECK_FALSE(receiver.owes_ack());
  CHECK(receiver.note_packet({.timestamp_us = 21, .duplicate = true}, kStart));
  receiver.fill_ack(*ack, kStart);
  CHECK(receiver.note_packet({.timestamp_us = 21, .last = true}, kStart));
  receiver.fill_ack(*ack, kStart);
  CHECK_FALSE(receiver.note_packet({.timestamp_us = 21}, kStart));
  for (std::uint32_t b = 0; b < 40; ++b) (void)receiver.accept(b);
  CHECK(receiver.note_packet({.timestamp_us = 22, .duplicate = false}, kStart));
}

TEST_CASE("an ack echoes the newest sending time and how long it was held") {
  BlockReceiver receiver(64);
  receiver.open({0, 40});
  const auto ack = std::make_unique<BlockReceiver::Ack>();
  (void)receiver.note_packet({.timestamp_us = 0xffff'fff0, .duplicate = false}, kStart);
  (void)receiver.note_packet({.timestamp_us = 5, .duplicate = false},
                             kStart + Duration::us(10));  // after the clock wrapped around: newer
  (void)receiver.note_packet({.timestamp_us = 0xffff'fff8, .duplicate = false},
                             kStart + Duration::us(20));
  receiver.fill_ack(*ack, kStart + Duration::us(50));
  CHECK(ack->body.echo_us == 5);
  CHECK(ack->body.ack_delay_us == 40);
}

TEST_CASE("a closed receiver says so in every ack, and what entered before") {
  BlockReceiver receiver(64);
  receiver.open({0, 10});
  CHECK(receiver.accept(2));
  CHECK_FALSE(receiver.note_packet({.timestamp_us = 1}, kStart));
  receiver.close();
  CHECK(receiver.note_packet({.timestamp_us = 2, .duplicate = true}, kStart));
  auto ack = std::make_unique<BlockReceiver::Ack>();
  receiver.fill_ack(*ack, kStart);
  CHECK((ack->flags & wire::kFlagClosed) != 0);
  CHECK((ack->flags & wire::kFlagComplete) == 0);
  CHECK(ack->word_count == 1);
  CHECK(ack->words[0] == 0b100);
  receiver.open({0, 10});
  CHECK_FALSE(receiver.closed());
}

TEST_CASE("blocks that do not come from the peer count as arrived") {
  constexpr std::uint32_t kBlocks = 200;
  Bitmap carried(kBlocks);
  carried.reset(kBlocks);
  carried.set_range(64, 130);
  const auto ack = std::make_unique<BlockReceiver::Ack>();
  BlockReceiver receiver(kBlocks);
  receiver.open({1000, 1000 + kBlocks});
  receiver.carry_only(carried);
  CHECK(receiver.missing() == 66);
  CHECK_FALSE(receiver.has_heard());
  CHECK_FALSE(receiver.accept(1063));
  CHECK_FALSE(receiver.accept(1130));
  receiver.fill_ack(*ack, kStart);
  CHECK(ack->first_word == 1);
  REQUIRE(ack->word_count == 3);
  CHECK(ack->words[0] == 0);
  CHECK(ack->words[1] == ~std::uint64_t{3});
  for (std::uint32_t b = 1064; b < 1130; ++b) {
    CHECK_FALSE(receiver.complete());
    CHECK(receiver.accept(b));
  }
  CHECK(receiver.complete());
  receiver.open({0, kBlocks});
  CHECK(receiver.missing() == kBlocks);
  carried.reset(kBlocks);
  receiver.carry_only(carried);
  CHECK(receiver.complete());
}
