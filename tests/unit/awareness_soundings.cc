// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// When a sender may exceed window and pace to measure a link.
#include <algorithm>
#include <array>
#include <cstdint>

#include "dataplane/awareness/link_estimate.h"
#include "dataplane/awareness/sounding_policy.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::awareness;

namespace {

constexpr Instant kBegin = Instant::from_ns(1'000'000'000);
constexpr std::uint64_t kEarned =
    kSoundingBlocks * kSoundingOneOf;  // packets that pay for a sounding

/// A policy over two links, with a budget for so many soundings.
struct Bench {
  SoundingPolicy policy;
  std::array<Sounding, 2> links;

  explicit Bench(std::uint64_t soundings) { send(0, soundings * kEarned); }
  void send(std::size_t link, std::uint64_t packets) {
    for (std::uint64_t i = 0; i < packets; ++i) policy.on_sent(links[link]);
  }
  bool begin(Instant now, std::size_t link) {
    if (!policy.may_begin(now, links[link], {.alarm = true})) return false;
    policy.begin(now, links[link]);
    return true;
  }
};

}  // namespace

TEST_CASE("a sounding has so many packets") {
  Bench bench(1);
  REQUIRE(bench.begin(kBegin, 1));
  CHECK_FALSE(bench.links[0].is_on());
  bench.send(1, kSoundingBlocks - 1);
  CHECK(bench.links[1].is_on());
  bench.send(1, 1);
  CHECK_FALSE(bench.links[1].is_on());
  bench.send(1, 1);
  CHECK(bench.policy.sounding_packets() == kSoundingBlocks);
  CHECK(bench.links[1].number == 1);
}

TEST_CASE("soundings of a link are apart") {
  Bench bench(3);
  REQUIRE(bench.begin(kBegin, 1));
  CHECK_FALSE(bench.begin(kBegin + kSoundingPause, 1));  // the previous sounding has packets left
  bench.send(1, kSoundingBlocks);
  CHECK_FALSE(bench.begin(kBegin + kSoundingPause - Duration::ns(1), 1));
  CHECK_FALSE(bench.begin(kBegin + kSoundingsApart - Duration::ns(1), 0));  // another link
  CHECK(bench.begin(kBegin + kSoundingsApart, 0));
  CHECK(bench.begin(kBegin + kSoundingPause, 1));
}

TEST_CASE("soundings that are of no use become rare") {
  Bench bench(kSavedSoundings);
  Instant now = kBegin;
  Duration pause = kSoundingPause;
  for (int i = 0; i < 8; ++i) {
    CAPTURE(i);
    REQUIRE(bench.begin(now, 1));
    bench.send(1, kSoundingBlocks);
    CHECK_FALSE(bench.begin(now + pause - Duration::ns(1), 1));
    now = now + pause;
    pause = std::min(pause * 2, kLongestSoundingPause);
  }
  bench.links[1].on_use();
  REQUIRE(bench.begin(now, 1));
  bench.send(1, kSoundingBlocks);
  CHECK(bench.begin(now + kSoundingPause, 1));
}

TEST_CASE("all soundings together have at most 2 % of the packets") {
  Bench bench(0);
  Instant now = kBegin;
  std::uint64_t begun = 0;
  for (std::uint64_t i = 0; i < 20 * kEarned; ++i) {
    now = now + Duration::ms(1);
    const std::size_t link = i % 2;
    bench.links[link].on_use();
    if (bench.begin(now, link)) ++begun;
    bench.send(link, bench.links[link].is_on() ? kSoundingBlocks : 1);
    REQUIRE(bench.policy.sounding_packets() * 50 <= bench.policy.packets());
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
  CHECK_FALSE(bench.begin(later, 1));  // the budget lacks one packet
  bench.send(0, kSoundingOneOf);
  CHECK(bench.begin(later, 1));
}

TEST_CASE("a long time without soundings earns few of them") {
  Bench bench(100);
  Instant now = kBegin;
  std::uint64_t begun = 0;
  for (int i = 0; i < 30; ++i) {
    bench.links[1].on_use();
    begun += bench.begin(now, 1) ? 1 : 0;
    bench.send(1, kSoundingBlocks);
    now = now + kSoundingPause;
  }
  CHECK(begun == kSavedSoundings);
}

TEST_CASE("calm soundings leave half for links that change, until enough is saved") {
  Bench bench(1);
  const auto is_calm_one_due = [&bench](Instant now) {
    return bench.policy.may_begin(now, bench.links[1], {.is_used = false});
  };
  CHECK_FALSE(is_calm_one_due(kBegin));
  bench.send(0, kEarned);
  CHECK(is_calm_one_due(kBegin));
  REQUIRE(bench.begin(kBegin, 1));
  bench.send(1, kSoundingBlocks);
  bench.links[1].on_use();
  const Instant later = kBegin + kUnusedLinkPause;
  CHECK_FALSE(is_calm_one_due(later));
  CHECK(bench.begin(later, 1));  // an urgent one
  bench.send(0, kEarned * kSavedSoundings * 2);
  Instant now = later;
  for (std::uint64_t n = 0; n < kSavedSoundings - kReservedSoundings; ++n) {
    now = now + kSoundingsApart;
    REQUIRE(bench.policy.may_begin(now, bench.links[0], {.is_used = false}));
    bench.policy.begin(now, bench.links[0]);
    bench.links[0] = {};
  }
  now = now + kSoundingsApart;
  CHECK_FALSE(bench.policy.may_begin(now, bench.links[0], {.is_used = false}));
  CHECK(bench.policy.may_begin(now, bench.links[0], {.alarm = true}));
}

TEST_CASE("the pause between two soundings of a link depends on who needs to know it") {
  struct Row {
    const char* what;
    SoundingCause why;
    Duration pause;
  };
  for (const Row& row :
       {Row{"its receiver asks", {}, kSoundingPause},
        Row{"its receiver asks in an alarm", {.alarm = true}, kSoundingPause},
        Row{"an alarm alone", {.is_asked = false, .alarm = true}, kUnaskedPause},
        Row{"no tree uses it", {.is_used = false, .is_asked = false}, kUnusedLinkPause},
        Row{"no tree uses it, in an alarm",
            {.is_used = false, .is_asked = false, .alarm = true},
            kSoundingPause}}) {
    INFO(row.what);
    Bench bench(kSavedSoundings);
    REQUIRE(bench.begin(kBegin, 1));
    bench.send(1, kSoundingBlocks);
    bench.links[1].on_use();
    const Instant due = kBegin + row.pause;
    CHECK_FALSE(bench.policy.may_begin(due - Duration::ns(1), bench.links[1], row.why));
    CHECK(bench.policy.may_begin(due, bench.links[1], row.why));
  }
}

TEST_CASE("an alarm and who asks again soon may use what is reserved") {
  struct Row {
    const char* what;
    SoundingCause why;
    Duration after;  // since the last sounding
    bool of_use;     // whether the last sounding was of use
    bool may;
  };
  const Duration soon = kTrainPatience - Duration::ns(1);
  for (const Row& row :
       {Row{"an alarm", {.alarm = true}, kTrainPatience, true, true},
        Row{"an alarm, of a link that no tree uses",
            {.is_used = false, .is_asked = false, .alarm = true},
            kTrainPatience,
            true,
            true},
        Row{"asked again soon", {}, soon, true, true},
        Row{"asked later", {}, kTrainPatience, true, false},
        Row{"asked all the time", {}, soon, false, false},
        Row{"no tree uses it", {.is_used = false, .is_asked = false}, soon, true, false}}) {
    INFO(row.what);
    Bench bench(2);
    // Half of the budget is reserved, and the first sounding spends the other half.
    REQUIRE(bench.begin(kBegin, 1));
    bench.send(1, kSoundingBlocks);
    if (row.of_use) bench.links[1].on_use();
    CHECK(bench.policy.may_begin(kBegin + row.after, bench.links[1], row.why) == row.may);
  }
}

TEST_CASE("a sounding of a slow link is short, unless the one before was of no use") {
  Bench bench(1);
  Sounding& link = bench.links[1];
  link.is_slow = true;
  REQUIRE(bench.begin(kBegin, 1));
  bench.send(1, kShortSoundingBlocks - 1);
  CHECK(link.is_on());
  bench.send(1, 1);
  CHECK_FALSE(link.is_on());
  // The short sounding cost half of the budget for a long one. The rest does not pay for the next
  // sounding, even if that is a short one: otherwise short soundings would take the budget from a
  // link that has waited longer for a long one.
  CHECK_FALSE(bench.begin(kBegin + kSoundingPause, 1));
  link.on_use();
  CHECK_FALSE(bench.begin(kBegin + kSoundingPause, 1));
  bench.send(0, kShortSoundingBlocks * kSoundingOneOf);
  REQUIRE(bench.begin(kBegin + kSoundingPause, 1));
  bench.send(1, kShortSoundingBlocks);
  bench.send(0, kEarned);
  REQUIRE(bench.begin(kBegin + kSoundingPause * 2, 1));
  bench.send(1, kShortSoundingBlocks);
  CHECK(link.is_on());
}
