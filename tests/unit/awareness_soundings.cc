// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// When blocks may go beyond window and pace to measure a link.
#include <array>
#include <cstdint>

#include "dataplane/awareness/sounding_policy.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::awareness;

namespace {

constexpr Instant kBegin = Instant::from_ns(1'000'000'000);
constexpr std::uint64_t kEarned =
    kSoundingBlocks * kSoundingOneOf;  // blocks that pay for a sounding

/// A policy over two links whose budget bears this many soundings.
struct Bench {
  SoundingPolicy policy;
  std::array<Sounding, 2> links;

  explicit Bench(std::uint64_t soundings) { send(0, soundings * kEarned); }
  void send(std::size_t link, std::uint64_t blocks) {
    for (std::uint64_t i = 0; i < blocks; ++i) policy.on_sent(links[link]);
  }
  bool begin(Instant now, std::size_t link) { return policy.begin(now, links[link], 1'000); }
};

}  // namespace

TEST_CASE("a link is sounded when enough is ready") {
  Bench bench(1);
  CHECK_FALSE(bench.policy.begin(kBegin, bench.links[1], kSoundingBlocks - 1));
  CHECK_FALSE(bench.links[1].is_on());
  CHECK(bench.policy.begin(kBegin, bench.links[1], kSoundingBlocks));
  CHECK(bench.links[1].is_on());
  CHECK_FALSE(bench.links[0].is_on());
}

TEST_CASE("a sounding has so many blocks") {
  Bench bench(1);
  REQUIRE(bench.begin(kBegin, 1));
  bench.send(1, kSoundingBlocks - 1);
  CHECK(bench.links[1].is_on());
  bench.send(1, 1);
  CHECK_FALSE(bench.links[1].is_on());
  bench.send(1, 1);
  CHECK(bench.policy.sounding_blocks() == kSoundingBlocks);
}

TEST_CASE("soundings of a link are apart") {
  Bench bench(3);
  REQUIRE(bench.begin(kBegin, 1));
  CHECK_FALSE(bench.begin(kBegin + kSoundingPause, 1));  // the one before has blocks left
  bench.send(1, kSoundingBlocks);
  CHECK_FALSE(bench.begin(kBegin + kSoundingPause - Duration::ns(1), 1));
  CHECK(bench.begin(kBegin, 0));  // another link
  CHECK(bench.begin(kBegin + kSoundingPause, 1));
}

TEST_CASE("all soundings together have at most 2 % of the blocks") {
  Bench bench(0);
  Instant now = kBegin;
  std::uint64_t begun = 0;
  for (std::uint64_t i = 0; i < 20 * kEarned; ++i) {
    now = now + Duration::ms(1);
    const std::size_t link = i % 2;
    if (bench.begin(now, link)) ++begun;
    bench.send(link, bench.links[link].is_on() ? kSoundingBlocks : 1);
    REQUIRE(bench.policy.sounding_blocks() * 50 <= bench.policy.blocks());
  }
  CHECK(begun >= 19);
}

TEST_CASE("what a sounding did not send is not lost to the budget") {
  Bench bench(1);
  REQUIRE(bench.begin(kBegin, 1));
  bench.send(1, 1);
  bench.policy.end(bench.links[1]);
  CHECK_FALSE(bench.links[1].is_on());
  const Instant later = kBegin + kSoundingPause;
  CHECK_FALSE(bench.begin(later, 1));  // one block short
  bench.send(0, kSoundingOneOf);
  CHECK(bench.begin(later, 1));
}

TEST_CASE("a long time without soundings earns few of them") {
  Bench bench(100);
  Instant now = kBegin;
  std::uint64_t begun = 0;
  for (int i = 0; i < 20; ++i) {
    begun += bench.begin(now, 1) ? 1 : 0;
    bench.send(1, kSoundingBlocks);
    now = now + kSoundingPause;
  }
  CHECK(begun == kSavedSoundings);
}
