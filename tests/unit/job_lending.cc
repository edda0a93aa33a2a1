// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Payloads that stay in the arena or in a sum until the port sends them.
#include "tests/support/catch.h"
#include "tests/support/core_node.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::uint32_t kElements = 1000;  // seven full blocks and a shorter one
constexpr Instant kNow = Instant::from_ns(1'000'000'000);

job::JobConfig config_of(std::uint16_t self, bool authenticate) {
  job::JobConfig config;
  config.job = config.epoch = 1;
  config.self = self;
  config.world_size = 2;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = 8192;
  config.authenticate = authenticate;
  config.peers = {{.node = static_cast<std::uint16_t>(1 - self)}};
  aggregate::TreeConfig& tree = config.trees.emplace_back();
  tree.member = true;
  tree.share = {0, 1};
  if (self == 0) tree.children = {{hop::PeerIndex(0), 1}};
  if (self == 1) tree.parent = hop::PeerIndex(0);
  config.local_ranks = {{.arena = nullptr, .rank = self}};
  return config;
}

/// Returns all packets of both ends in a round, in order. `lends_from`: the setting of both.
std::vector<std::vector<std::byte>> said_in_a_round(bool authenticate, std::size_t lends_from) {
  CoreNode root(config_of(0, authenticate), {.lends_from_bytes = lends_from});
  CoreNode leaf(config_of(1, authenticate), {.lends_from_bytes = lends_from});
  REQUIRE(root.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  REQUIRE(leaf.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  std::vector<std::vector<std::byte>> said;
  for (int turn = 0; turn < 3; ++turn) {
    for (const Sent& sent : leaf.drain(kNow)) {
      root.deliver(1, sent.bytes, kNow);
      said.push_back(sent.bytes);
    }
    for (const Sent& sent : root.drain(kNow)) {
      leaf.deliver(0, sent.bytes, kNow);
      said.push_back(sent.bytes);
    }
  }
  REQUIRE(root.holds_sum(0, 0, kElements));
  REQUIRE(leaf.holds_sum(0, 0, kElements));
  return said;
}

}  // namespace

TEST_CASE("packets with lent payloads have the bytes of others, their tags as well") {
  for (const bool authenticate : {false, true}) {
    const auto copied = said_in_a_round(authenticate, SIZE_MAX);
    CHECK(copied.size() > 16);
    CHECK(said_in_a_round(authenticate, 1) == copied);
  }
}

TEST_CASE("shorter payloads are copied") {
  CoreNode leaf(config_of(1, true), {.lends_from_bytes = kMinBlockBytes});
  REQUIRE(leaf.submit(0, 0, kElements) == job::SubmitResult::kAccepted);
  std::size_t lent = 0;
  std::size_t copied = 0;
  std::vector<std::byte> buffer(kMaxDatagramBytes);
  while (const auto packet = leaf.node().poll_transmit(buffer, kNow)) {
    (packet->lent.empty() ? copied : lent) += 1;
    if (!packet->lent.empty()) CHECK(packet->lent.size() == kMinBlockBytes);
  }
  CHECK(lent == 7);
  CHECK(copied == 1);
}

TEST_CASE("lent bytes count on a paced link") {
  constexpr std::size_t kBlocks = 8;
  const auto sent_at_once = [](std::size_t lends_from) {
    job::JobConfig config = config_of(1, false);
    config.block_bytes = 8192;
    config.round_bytes = kBlocks * config.block_bytes;
    CoreNode leaf(config, {.bits_per_second = 1'000'000, .lends_from_bytes = lends_from});
    REQUIRE(leaf.submit(0, 0, kBlocks * 2048) == job::SubmitResult::kAccepted);
    return leaf.drain(kNow).size();
  };
  const std::size_t copied = sent_at_once(SIZE_MAX);
  CHECK(copied < kBlocks);
  CHECK(sent_at_once(1) == copied);
}
