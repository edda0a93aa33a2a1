// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/lab/link.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::lab;

namespace {

constexpr Instant kStart = Instant::from_ns(5'000'000'000);
constexpr std::size_t kFrame = 1514;
constexpr int kMany = 100'000;
constexpr std::int64_t kNoQueueLimit = std::int64_t{1} << 40;

LinkSettings settings_with_rate(std::int64_t bits_per_second) {
  LinkSettings settings;
  settings.rate_bits_per_second = bits_per_second;
  return settings;
}

/// Whether `count` of `n` draws with probability `p` is within four standard deviations.
bool is_likely(std::uint64_t count, double n, double p) {
  return std::abs(static_cast<double>(count) - n * p) <= 4 * std::sqrt(n * p * (1 - p));
}

bool is_near(double value, double expected, double tolerated_share) {
  return std::abs(value - expected) <= tolerated_share * std::abs(expected);
}

/// Offers frames one by one, `gap` apart. Returns the times at which frames arrive.
std::vector<Instant> arrivals(Link& link, int count, Duration gap, Rng& rng) {
  std::vector<Instant> result;
  for (int i = 0; i < count; ++i) {
    const Passage passage = link.offer(kStart + gap * i, kFrame, false, rng);
    result.insert(result.end(), passage.arrivals, passage.arrivals + passage.arrival_count);
  }
  return result;
}

}  // namespace

TEST_CASE("a frame takes its time on the wire and the delay") {
  LinkSettings settings = settings_with_rate(100'000'000);
  settings.delay = Duration::ms(5);
  Link link(settings);
  Rng rng(1);
  // 1514 and 24 bytes at 80 ns each. A short frame is padded to 60 bytes.
  CHECK(link.offer(kStart, kFrame, false, rng).arrivals[0] ==
        kStart + Duration::ns(1538 * 80) + Duration::ms(5));
  const Instant later = kStart + Duration::seconds(1);
  CHECK(link.offer(later, 42, false, rng).arrivals[0] ==
        later + Duration::ns(84 * 80) + Duration::ms(5));
}

TEST_CASE("a link without a rate has no queue") {
  Link link(LinkSettings{});
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    CHECK(link.offer(kStart, kFrame, false, rng).arrivals[0] == kStart);
  }
  CHECK(link.counters().queue_drops == 0);
  CHECK(link.counters().deepest_queue_bytes == 0);
}

TEST_CASE("what is offered too fast leaves at the rate") {
  const std::int64_t rate =
      GENERATE(as<std::int64_t>{}, 1'000'000, 200'000'000, 1'000'000'000, 9'999'999'999);
  LinkSettings settings = settings_with_rate(rate);
  settings.queue_bytes = kNoQueueLimit;
  Link link(settings);
  Rng rng(1);
  const auto times = arrivals(link, 1001, {}, rng);
  REQUIRE(times.size() == 1001);
  const double seconds = (times.back() - times.front()).to_seconds();
  CHECK(is_near(1000 * 1538 * 8 / seconds, static_cast<double>(rate), 1e-3));
}

TEST_CASE("a full queue drops the newcomer, and takes frames again when one has left") {
  LinkSettings settings = settings_with_rate(8'000'000);  // 1 us a byte
  settings.queue_bytes = 3 * 1538;
  Link link(settings);
  Rng rng(1);
  for (int i = 0; i < 3; ++i) CHECK(link.offer(kStart, kFrame, false, rng).arrival_count == 1);
  CHECK(link.queued_bytes(kStart) == 3 * 1538);
  CHECK(link.offer(kStart, kFrame, false, rng).arrival_count == 0);
  const Instant nearly = kStart + Duration::us(1537);
  CHECK(link.offer(nearly, kFrame, false, rng).arrival_count == 0);
  const Instant one_has_left = kStart + Duration::us(1538);
  CHECK(link.offer(one_has_left, kFrame, false, rng).arrivals[0] ==
        kStart + Duration::us(4 * 1538));
  CHECK(link.counters().frames == 6);
  CHECK(link.counters().bytes == 6 * kFrame);
  CHECK(link.counters().queue_drops == 2);
  CHECK(link.counters().random_drops == 0);
  CHECK(link.counters().deepest_queue_bytes == 3 * 1538);
  link.reset_counters();
  CHECK(link.counters().frames == 0);
  CHECK(link.counters().deepest_queue_bytes == 0);
}

TEST_CASE("jitter spreads the delay evenly and keeps the order") {
  LinkSettings settings;
  settings.delay = Duration::ms(10);
  settings.jitter = Duration::ms(4);
  Link link(settings);
  Rng rng(1);
  // The frames are so far apart that the link never delays one to keep their order.
  double sum_ns = 0;
  for (int i = 0; i < kMany; ++i) {
    const Instant sent = kStart + Duration::ms(20) * i;
    const Duration took = link.offer(sent, kFrame, false, rng).arrivals[0] - sent;
    REQUIRE(took >= Duration::ms(10));
    REQUIRE(took < Duration::ms(14));
    sum_ns += static_cast<double>(took.count_ns());
  }
  CHECK(is_near(sum_ns / kMany, 12e6, 0.005));
  Link dense(settings);
  const auto times = arrivals(dense, 1000, Duration::us(100), rng);
  CHECK(std::is_sorted(times.begin(), times.end()));
}

TEST_CASE("frames are lost at random, after they have used the rate") {
  LinkSettings settings = settings_with_rate(1'000'000'000);
  settings.queue_bytes = kNoQueueLimit;
  settings.loss.random = 0.03;
  Link link(settings);
  Rng rng(7);
  const auto times = arrivals(link, kMany, {}, rng);
  const std::uint64_t lost = link.counters().random_drops;
  CHECK(is_likely(lost, kMany, 0.03));
  CHECK(times.size() + lost == kMany);
  CHECK(link.queued_bytes(kStart) == std::int64_t{1538} * kMany);
}

TEST_CASE("losses come in bursts of the length that was asked for") {
  LinkSettings settings;
  settings.loss.bursts = GilbertElliott{0.01, 0.25, 1.0, 0.0};
  Link link(settings);
  Rng rng(7);
  int bursts = 0;
  int lost = 0;
  bool was_lost = false;
  for (int i = 0; i < kMany; ++i) {
    const bool is_lost = link.offer(kStart, kFrame, false, rng).arrival_count == 0;
    bursts += is_lost && !was_lost;
    lost += is_lost;
    was_lost = is_lost;
  }
  // The share of time in the bad state is enter / (enter + leave). A stay there lasts 1 / leave
  // frames in the mean.
  CHECK(is_near(static_cast<double>(lost) / kMany, 0.01 / 0.26, 0.1));
  CHECK(is_near(static_cast<double>(lost) / bursts, 4.0, 0.1));
  LinkSettings half = settings;
  half.loss.bursts = GilbertElliott{0.01, 0.25, 0.5, 0.02};
  Link milder(half);
  arrivals(milder, kMany, {}, rng);
  const double expected = (0.01 * 0.5 + 0.25 * 0.02) / 0.26;
  CHECK(is_near(static_cast<double>(milder.counters().random_drops) / kMany, expected, 0.1));
}

TEST_CASE("some frames come late and are overtaken") {
  LinkSettings settings;
  settings.delay = Duration::ms(1);
  settings.reorder = {0.1, Duration::ms(3)};
  Link link(settings);
  Rng rng(3);
  std::uint64_t late = 0;
  for (int i = 0; i < kMany; ++i) {
    const Instant sent = kStart + Duration::us(100) * i;
    const Duration took = link.offer(sent, kFrame, false, rng).arrivals[0] - sent;
    REQUIRE((took == Duration::ms(1) || took == Duration::ms(4)));
    late += took == Duration::ms(4);
  }
  CHECK(link.counters().reordered == late);
  CHECK(is_likely(late, kMany, 0.1));
}

TEST_CASE("some frames come twice") {
  LinkSettings settings;
  settings.duplicate_share = 0.05;
  Link link(settings);
  Rng rng(3);
  const auto times = arrivals(link, kMany, {}, rng);
  CHECK(is_likely(link.counters().duplicates, kMany, 0.05));
  CHECK(times.size() == kMany + link.counters().duplicates);
}

TEST_CASE("what finds a long queue is marked, if it can be") {
  LinkSettings settings = settings_with_rate(8'000'000);
  settings.ecn_threshold_bytes = 2 * 1538;
  Link link(settings);
  Rng rng(1);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(link.offer(kStart, kFrame, true, rng).mark);
  CHECK(link.offer(kStart, kFrame, true, rng).mark);
  CHECK_FALSE(link.offer(kStart, kFrame, false, rng).mark);
  CHECK(link.counters().marks == 1);
  CHECK_FALSE(link.offer(kStart + Duration::seconds(1), kFrame, true, rng).mark);
}

TEST_CASE("new settings hold for new frames, which overtake none") {
  LinkSettings settings;
  settings.delay = Duration::ms(50);
  Link link(settings);
  Rng rng(1);
  const Instant first = link.offer(kStart, kFrame, false, rng).arrivals[0];
  settings.delay = Duration::ms(1);
  link.set(settings);
  CHECK(link.offer(kStart, kFrame, false, rng).arrivals[0] == first);
  const Instant later = kStart + Duration::ms(50);
  CHECK(link.offer(later, kFrame, false, rng).arrivals[0] == later + Duration::ms(1));
}

TEST_CASE("what is queued when the rate changes stays as many bytes") {
  const auto new_rate = GENERATE(std::int64_t{100'000'000}, std::int64_t{1'000'000});
  LinkSettings settings = settings_with_rate(10'000'000);
  settings.queue_bytes = 40 * 1538;
  Link link(settings);
  Rng rng(1);
  for (int i = 0; i < 30; ++i) link.offer(kStart, kFrame, false, rng);
  REQUIRE(link.queued_bytes(kStart) == 30 * 1538);
  settings.rate_bits_per_second = new_rate;
  link.set(settings);
  const Passage next = link.offer(kStart, kFrame, false, rng);
  REQUIRE(next.arrival_count == 1);
  CHECK(link.queued_bytes(kStart) == 31 * 1538);
  // The frame does not overtake the frames that left at the old rate.
  const double at_new = 31 * 1538 * 8 / static_cast<double>(new_rate);
  const double before_it = 30 * 1538 * 8 / 10e6;
  CHECK(is_near((next.arrivals[0] - kStart).to_seconds(), std::max(at_new, before_it), 0.001));
  CHECK(link.counters().sent_wire_bytes == 31 * 1538);
}

TEST_CASE("the same seed gives the same history, another one another") {
  LinkSettings settings = settings_with_rate(500'000'000);
  settings.jitter = Duration::us(300);
  settings.loss = {0.02, GilbertElliott{0.01, 0.2, 0.7, 0.01}};
  settings.reorder = {0.05, Duration::ms(1)};
  settings.duplicate_share = 0.03;
  const auto history = [&settings](std::uint64_t seed) {
    Link link(settings);
    Rng rng(seed);
    return arrivals(link, 2000, Duration::us(20), rng);
  };
  CHECK(history(1) == history(1));
  CHECK(history(1) != history(2));
}
