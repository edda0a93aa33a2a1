// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Estimates of links: the confidence that samples give, and when samples expire.
#include <cstdint>
#include <vector>

#include "dataplane/awareness/incoming_links.h"
#include "dataplane/awareness/link_estimate.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::awareness;

namespace {

constexpr Instant kBegin = Instant::from_ns(1'000'000'000'000);

Instant after(Duration time) {
  return kBegin + time;
}

/// Adds each rate as the sample of one period, from kBegin on.
RateSamples samples_of(const std::vector<std::uint64_t>& rates) {
  RateSamples samples;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    samples.add(after(kSamplePeriod * static_cast<std::int64_t>(i)), rates[i]);
  }
  return samples;
}

Instant end_of(const std::vector<std::uint64_t>& rates) {
  return after(kSamplePeriod * static_cast<std::int64_t>(rates.size() - 1));
}

/// Passes 64 packets of 1500 bytes, sent every `gap_us`, over a link that takes `link_us` for each.
void carry(LinkEstimate& link, Instant begin, std::int64_t link_us, std::int64_t gap_us) {
  Duration free;
  for (std::int64_t i = 0; i < 64; ++i) {
    const Duration sent = Duration::us(i * gap_us);
    free = std::max(free, sent) + Duration::us(link_us);
    const Instant at = begin + free;
    const auto us = static_cast<std::uint32_t>((begin + sent).count_ns() / 1000);
    link.on_packet({.sent_us = us, .wire_bytes = 1500}, {.at = at, .waited = Duration::us(1)});
  }
}

}  // namespace

TEST_CASE("a sample counts half after its half-life, and nothing after its lifetime") {
  CHECK(freshness({}) == 1);
  CHECK(freshness(kSampleHalfLife) == Approx(0.5));
  CHECK(freshness(kSampleHalfLife * 2) == Approx(0.25));
  CHECK(freshness(kSampleLifetime) > 0);
  CHECK(freshness(kSampleLifetime + Duration::ns(1)) == 0);
}

TEST_CASE("the rate is that of trains which other traffic did not slow down") {
  struct Row {
    const char* what;
    std::vector<std::uint64_t> rates;
    std::uint64_t estimate;
    double confidence;
  };
  for (const Row& row : {
           Row{"one", {100}, 100, 1.0 / 3},
           Row{"half of them are slow", {50, 100, 50, 100, 50, 100, 50, 100}, 100, 1},
           Row{"one is an outlier", {100, 100, 100, 400, 100, 100, 100, 100}, 100, 1},
           Row{"all agree to a tenth", {91, 95, 98, 100}, 100, 1},
           Row{"two agree", {30, 95, 50, 100}, 100, 2.0 / 3},
           Row{"older ones have been replaced",
               {900, 900, 900, 100, 100, 100, 100, 100, 100, 100, 100},
               100,
               1},
       }) {
    INFO(row.what);
    const RateEstimate e = samples_of(row.rates).estimate(end_of(row.rates));
    CHECK(e.bits_per_second == row.estimate);
    CHECK(e.confidence == Approx(row.confidence).epsilon(0.03));
    CHECK(e.age == Duration{});
  }
}

TEST_CASE("the best rate of a period is its sample") {
  RateSamples samples;
  samples.add(kBegin, 50);
  samples.add(after(Duration::ms(50)), 100);
  samples.add(after(Duration::ms(99)), 70);
  const RateEstimate e = samples.estimate(after(Duration::ms(109)));
  CHECK(e.bits_per_second == 100);
  CHECK(e.confidence == Approx(1.0 / 3).epsilon(0.01));  // the three count as one sample
  CHECK(e.age == Duration::ms(10));
}

TEST_CASE("a short train counts until there is a better one") {
  RateSamples samples;
  samples.add(kBegin, 110, false);
  CHECK(samples.estimate(kBegin).bits_per_second == 110);
  samples.add(after(Duration::ms(10)), 115, false);
  CHECK(samples.estimate(after(Duration::ms(10))).bits_per_second == 115);
  samples.add(after(Duration::ms(20)), 100);
  CHECK(samples.estimate(after(Duration::ms(20))).bits_per_second == 100);
  samples.add(after(Duration::ms(30)), 120, false);
  CHECK(samples.estimate(after(Duration::ms(30))).bits_per_second == 100);
}

TEST_CASE("confidence falls with age until nothing is known") {
  const std::vector<std::uint64_t> rates{100, 100, 100};
  const RateSamples samples = samples_of(rates);
  double before = 1.1;
  for (int seconds = 0; seconds <= 60; seconds += 5) {
    const RateEstimate e = samples.estimate(end_of(rates) + Duration::seconds(seconds));
    INFO(seconds << " s");
    CHECK(e.bits_per_second == 100);
    CHECK(e.confidence < before);
    CHECK(e.age == Duration::seconds(seconds));
    before = e.confidence;
  }
  const RateEstimate none = samples.estimate(end_of(rates) + Duration::seconds(61));
  CHECK(none.bits_per_second == 0);
  CHECK(none.confidence == 0);
  CHECK(none.age == Duration::max());
  CHECK(RateSamples().estimate(kBegin).confidence == 0);
}

TEST_CASE("a link that carries more than its trains said is at least that fast") {
  LinkEstimate link;
  carry(link, kBegin, 200, 0);
  Instant now = after(Duration::seconds(1));
  CHECK_FALSE(link.rate(now).is_lower_bound);
  CHECK(link.rate(now).bits_per_second == Approx(60'000'000).epsilon(0.01));
  carry(link, now, 50, 150);
  now = now + Duration::seconds(1);
  CHECK(link.rate(now).is_lower_bound);
  CHECK(link.rate(now).bits_per_second == Approx(80'000'000).epsilon(0.04));
  // The next train measures the rate of the link, and replaces the lower bound.
  carry(link, now, 400, 0);
  now = now + Duration::seconds(1);
  CHECK_FALSE(link.rate(now).is_lower_bound);
  CHECK(link.rate(now).bits_per_second <= 60'100'000);
}

TEST_CASE("a link is slow while its newest train says so") {
  LinkEstimate link;
  CHECK_FALSE(link.is_slow(kBegin));
  carry(link, kBegin, 300, 10);  // 16 packets take more than 4 ms
  Instant end = after(Duration::us(64 * 300));
  CHECK(link.is_slow(end));
  CHECK(link.is_slow(end + kSlowLifetime / 2));
  CHECK_FALSE(link.is_slow(end + kSlowLifetime));
  carry(link, end + Duration::seconds(2), 200, 10);
  CHECK_FALSE(link.is_slow(end + Duration::seconds(3)));
}

TEST_CASE("a loss is the share of the packets, and what is old counts less") {
  LossSamples losses;
  CHECK(losses.estimate(kBegin).confidence == 0);
  losses.add(kBegin, {.sent = 2'000, .lost = 40});
  CHECK(losses.estimate(kBegin).share == Approx(0.02));
  CHECK(losses.estimate(kBegin).confidence == Approx(2'000 / kEnoughPackets));
  const Instant later = kBegin + kSampleHalfLife;
  CHECK(losses.estimate(later).confidence == Approx(1'000 / kEnoughPackets));
  CHECK(losses.estimate(later).age == kSampleHalfLife);
  losses.add(later, {.sent = 1'000, .lost = 0});
  CHECK(losses.estimate(later).share == Approx(0.01));
  CHECK(losses.estimate(later + kSampleLifetime + Duration::ms(1)).confidence == 0);
}

TEST_CASE("a round trip is the least one, and is forgotten when it is old") {
  LinkEstimate link;
  CHECK(link.round_trip(kBegin).confidence == 0);
  link.on_round_trip(kBegin, Duration::ms(30));
  link.on_round_trip(after(Duration::ms(1)), Duration::ms(20));
  link.on_round_trip(after(Duration::ms(2)), Duration::ms(50));
  const RttEstimate e = link.round_trip(after(Duration::ms(2)) + kSampleHalfLife);
  CHECK(e.rtt == Duration::ms(20));
  CHECK(e.confidence == Approx(0.5));
  CHECK(e.age == kSampleHalfLife);
  const Instant late = after(Duration::ms(3)) + kSampleLifetime;
  CHECK(link.round_trip(late).confidence == 0);
  link.on_round_trip(late, Duration::ms(80));
  CHECK(link.round_trip(late).rtt == Duration::ms(80));
}

TEST_CASE("slower samples that agree for a second replace faster ones") {
  const auto after_slow = [](Duration apart, const std::vector<std::uint64_t>& slow) {
    const std::vector<std::uint64_t> fast(5, 100);
    RateSamples samples = samples_of(fast);
    Instant now = end_of(fast);
    for (const std::uint64_t rate : slow) {
      now = now + apart;
      samples.add(now, rate);
    }
    return samples.estimate(now).bits_per_second;
  };
  CHECK(after_slow(kSlowerTime / 2, {10, 10, 10}) == 10);
  CHECK(after_slow(kSlowerTime / 2, {10, 11, 10}) <= 11);
  CHECK(after_slow(kSlowerTime / 2 - Duration::ms(1), {10, 10, 10}) == 100);  // too soon
  CHECK(after_slow(kSlowerTime, {10, 10}) == 100);                            // too few
  CHECK(after_slow(kSlowerTime / 2, {10, 20, 10}) == 100);  // the samples do not agree
  // Slower samples within the tolerance of agreement do not replace the faster ones.
  CHECK(after_slow(kSlowerTime / 2, {95, 95, 95}) == 100);
}

TEST_CASE("a receiver wants a train when none has come for some time") {
  LinkEstimate link;
  CHECK(link.wants_train(kBegin));
  carry(link, kBegin, 200, 200);  // sent at the link's rate: no train
  CHECK(link.wants_train(after(Duration::ms(100))));
  carry(link, after(Duration::ms(100)), 200, 50);
  const Instant trained = after(Duration::ms(115));
  CHECK_FALSE(link.wants_train(trained));
  CHECK_FALSE(link.wants_train(trained + kTrainPatience - Duration::ms(20)));
  CHECK(link.wants_train(trained + kTrainPatience));
}

TEST_CASE("a receiver wants another train soon while the newest and the estimate disagree") {
  LinkEstimate link;
  // Sends trains over a link whose rate becomes half.
  for (int n = 0; n < 8; ++n) carry(link, after(Duration::ms(200 * n)), 200, 50);
  const Instant settled = after(Duration::ms(1'420));
  CHECK_FALSE(link.wants_train(settled + kUnsettledPatience * 2));
  carry(link, after(Duration::ms(2'000)), 400, 50);
  const Instant odd = after(Duration::ms(2'040));
  CHECK_FALSE(link.wants_train(odd));
  CHECK(link.wants_train(odd + kUnsettledPatience + Duration::ms(1)));
  CHECK_FALSE(link.is_changing());  // one slow train may be an accident
  carry(link, after(Duration::ms(2'500)), 400, 50);
  CHECK(link.is_changing());
  carry(link, after(Duration::ms(3'000)), 200, 50);
  CHECK_FALSE(link.is_changing());
}

TEST_CASE("where a link to a node changes, it wants trains of all that send to it") {
  IncomingLinks links(3);
  const auto train = [&links](std::uint16_t node, Instant begin, std::int64_t link_us) {
    for (std::int64_t i = 0; i < 64; ++i) {
      const Instant sent = begin + Duration::us(i * 50);
      const auto us = static_cast<std::uint32_t>(sent.count_ns() / 1000);
      links.on_packet(node, {.sent_us = us, .wire_bytes = 1500},
                      {.at = begin + Duration::us((i + 1) * link_us), .waited = Duration::us(1)},
                      {});
    }
  };
  for (int n = 0; n < 5; ++n) {
    train(1, after(Duration::ms(500 * n)), 200);
    train(2, after(Duration::ms(500 * n + 100)), 200);
  }
  const Instant settled = after(Duration::ms(2'200));
  CHECK_FALSE(links.alarm(settled));
  CHECK_FALSE(links.wants_train(1, settled + kUnsettledPatience * 2));
  train(2, after(Duration::ms(2'500)), 400);
  train(2, after(Duration::ms(3'000)), 400);
  const Instant changed = after(Duration::ms(3'050));
  CHECK(links.alarm(changed));
  CHECK(links.wants_train(1, changed));
  CHECK_FALSE(links.alarm(changed + kAlarm));
  CHECK_FALSE(links.wants_train(0, changed));  // node 0 has never sent anything
}
