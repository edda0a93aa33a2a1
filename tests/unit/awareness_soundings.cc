// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// When blocks may go without pacing to measure a link.
#include <cstdint>

#include "dataplane/awareness/sounding_policy.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::awareness;

namespace {

constexpr Instant kBegin = Instant::from_ns(1'000'000'000);
constexpr RateEstimate kUnknown{};
constexpr std::uint64_t kEarned =
    kSoundingBlocks * kSoundingOneOf;  // blocks that pay for a sounding

/// A policy over two links whose budget bears this many soundings.
SoundingPolicy earned(std::uint64_t soundings) {
  SoundingPolicy policy(2);
  for (std::uint64_t i = 0; i < soundings * kEarned; ++i) policy.on_sent(kBegin, 0);
  return policy;
}

}  // namespace

TEST_CASE("a link is sounded when its capacity is not known, and enough is ready") {
  struct Row {
    const char* what;
    RateEstimate known;
    std::uint64_t ready;
    bool is_sounded;
  };
  for (const Row& row : {
           Row{"unknown", kUnknown, kSoundingBlocks, true},
           Row{"too few are ready", kUnknown, kSoundingBlocks - 1, false},
           Row{"a lower bound", {.is_lower_bound = true, .confidence = 1}, kSoundingBlocks, true},
           Row{"known", {.confidence = kSoundingConfidence}, kSoundingBlocks, false},
           Row{"known long ago", {.confidence = kSoundingConfidence / 2}, kSoundingBlocks, true},
       }) {
    INFO(row.what);
    SoundingPolicy policy = earned(1);
    CHECK(policy.begin(kBegin, 1, row.known, row.ready) == row.is_sounded);
    CHECK(policy.is_sounding(kBegin, 1) == row.is_sounded);
    CHECK_FALSE(policy.is_sounding(kBegin, 0));
  }
}

TEST_CASE("a sounding has so many blocks, and ends in time") {
  SoundingPolicy policy = earned(1);
  REQUIRE(policy.begin(kBegin, 1, kUnknown, 1'000));
  for (std::uint32_t i = 0; i < kSoundingBlocks; ++i) {
    REQUIRE(policy.is_sounding(kBegin, 1));
    policy.on_sent(kBegin, 1);
  }
  CHECK_FALSE(policy.is_sounding(kBegin, 1));
  CHECK(policy.sounding_blocks() == kSoundingBlocks);

  policy = earned(1);
  REQUIRE(policy.begin(kBegin, 1, kUnknown, 1'000));
  policy.on_sent(kBegin, 1);
  CHECK(policy.is_sounding(kBegin + kSoundingTime - Duration::ns(1), 1));
  CHECK_FALSE(policy.is_sounding(kBegin + kSoundingTime, 1));
  policy.on_sent(kBegin + kSoundingTime, 1);
  CHECK(policy.sounding_blocks() == 1);
}

TEST_CASE("soundings of a link are apart") {
  SoundingPolicy policy = earned(3);
  REQUIRE(policy.begin(kBegin, 1, kUnknown, 1'000));
  CHECK_FALSE(policy.begin(kBegin + kSoundingPause - Duration::ns(1), 1, kUnknown, 1'000));
  CHECK(policy.begin(kBegin, 0, kUnknown, 1'000));  // another link
  CHECK(policy.begin(kBegin + kSoundingPause, 1, kUnknown, 1'000));
}

TEST_CASE("all soundings together have at most 2 % of the blocks") {
  SoundingPolicy policy(2);
  Instant now = kBegin;
  std::uint64_t begun = 0;
  for (std::uint64_t i = 0; i < 20 * kEarned; ++i) {
    now = now + Duration::ms(1);
    const std::size_t link = i % 2;
    if (policy.begin(now, link, kUnknown, 1'000)) {
      ++begun;
      for (std::uint32_t b = 0; b < kSoundingBlocks; ++b) policy.on_sent(now, link);
    } else {
      policy.on_sent(now, link);
    }
    REQUIRE(policy.sounding_blocks() * 50 <= policy.blocks());
  }
  CHECK(begun >= 19);
}

TEST_CASE("what a sounding did not send is not lost to the budget") {
  SoundingPolicy policy = earned(1);
  REQUIRE(policy.begin(kBegin, 1, kUnknown, 1'000));
  policy.on_sent(kBegin, 1);
  const Instant later = kBegin + kSoundingPause;
  CHECK_FALSE(policy.begin(later, 1, kUnknown, 1'000));  // one block short
  for (std::uint64_t i = 0; i < kSoundingOneOf; ++i) policy.on_sent(later, 1);
  CHECK(policy.begin(later, 1, kUnknown, 1'000));
}
