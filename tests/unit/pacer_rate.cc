// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cmath>

#include "dataplane/hop/flow.h"
#include "tests/support/catch.h"

using namespace gradplane;
using hop::Pacer;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::size_t kBytes = 1522;

/// Returns the bits that leave in one second if the loop looks every `nap`.
double bits_in_a_second(Pacer& pacer, Duration nap) {
  double bits = 0;
  for (Instant now = kStart; now < kStart + Duration::seconds(1); now = now + nap) {
    while (pacer.may_send(now)) {
      pacer.on_sent(now, kBytes);
      bits += kBytes * 8;
    }
  }
  return bits;
}

}  // namespace

TEST_CASE("a rate is kept within one percent, also by a loop that naps") {
  const std::uint64_t rate =
      GENERATE(as<std::uint64_t>{}, 10'000'000, 100'000'000, 1'000'000'000, 25'000'000'000);
  const Duration nap = GENERATE(Duration::us(1), Duration::us(50), Duration::us(900));
  const std::size_t burst = std::max<std::size_t>(rate / 8 / 1000, 4 * kBytes);
  Pacer pacer(rate, burst);
  CAPTURE(rate, nap.count_ns());
  const double paced = static_cast<double>(rate) * 0.99;
  const double allowed_bits = paced * 1.01 + static_cast<double>(burst + kBytes) * 8;
  const double bits = bits_in_a_second(pacer, nap);
  CHECK(bits <= allowed_bits);
  CHECK(bits >= paced * 0.99);
}

TEST_CASE("a pacer that rested sends one burst, not what it missed") {
  Pacer pacer(100'000'000, 10 * kBytes);
  REQUIRE(bits_in_a_second(pacer, Duration::us(10)) > 0);
  const Instant later = kStart + Duration::seconds(100);
  int sent = 0;
  while (pacer.may_send(later)) {
    pacer.on_sent(later, kBytes);
    ++sent;
  }
  CHECK(sent >= 10);
  CHECK(sent <= 11);
  CHECK(pacer.next_send() > later);
  CHECK(pacer.may_send(pacer.next_send()));
  CHECK_FALSE(pacer.may_send(pacer.next_send() - Duration::ns(1)));
}

TEST_CASE("a pacer that begins has no burst, and one that is late makes up for it") {
  Pacer pacer(100'000'000, 10 * kBytes);
  pacer.begin(kStart);
  pacer.on_sent(kStart, kBytes);
  CHECK(pacer.next_send() > kStart);
  const Instant behind = pacer.next_send();
  pacer.begin(kStart);
  CHECK(pacer.next_send() == behind);
  const Instant late = kStart + Duration::us(500);
  int sent = 0;
  for (; pacer.may_send(late); ++sent) pacer.on_sent(late, kBytes);
  CHECK(sent >= 3);  // 4.06 blocks are due in 0.5 ms
  CHECK(sent <= 4);
}

TEST_CASE("the time in which a flow has nothing to send gives it no burst") {
  hop::Flow flow({.rate_bits_per_second = 100'000'000, .block_wire_bytes = kBytes});
  const auto send_all = [&flow](Instant now) {
    int sent = 0;
    for (; flow.may_send(now); ++sent) flow.on_sent(now, kBytes, false);
    return sent;
  };
  CHECK(send_all(kStart) == 1);
  // Blocks waited, so the flow makes up for the time in which nobody looked.
  const Instant late = kStart + Duration::us(500);
  CHECK(send_all(late) >= 3);
  flow.on_acked(late, flow.in_flight());
  flow.note_app_limited();
  CHECK(send_all(late + Duration::seconds(1)) == 1);
}

TEST_CASE("without a rate a pacer never waits") {
  Pacer pacer(0, 1);
  for (int n = 0; n < 1000; ++n) {
    REQUIRE(pacer.may_send(kStart));
    REQUIRE(pacer.next_send() <= kStart);
    pacer.on_sent(kStart, 1'000'000);
  }
}

TEST_CASE("a meter tells what was sent in the last second, and that nothing is any more") {
  hop::RateMeter meter;
  CHECK(meter.bits_per_second(kStart) == 0);
  Instant now = kStart;
  for (int n = 0; n < 2500; ++n, now = now + Duration::ms(1)) meter.on_sent(now, 1000);
  CHECK(static_cast<double>(meter.bits_per_second(now)) == Approx(8e6).epsilon(0.01));
  // The rate doubles. After a second only the new rate counts.
  for (int n = 0; n < 2500; ++n, now = now + Duration::ms(1)) meter.on_sent(now, 2000);
  CHECK(static_cast<double>(meter.bits_per_second(now)) == Approx(16e6).epsilon(0.01));
  // Half a second later, half of the bytes are more than a second old.
  CHECK(static_cast<double>(meter.bits_per_second(now + Duration::ms(500))) ==
        Approx(8e6).epsilon(0.1));
  CHECK(meter.bits_per_second(now + Duration::seconds(2)) == 0);
  CHECK(meter.bits_per_second(now + Duration::seconds(1000)) == 0);
}

TEST_CASE("a pause is no part of the rate before it or after it") {
  hop::RateMeter meter;
  Instant now = kStart;
  for (int n = 0; n < 2000; ++n, now = now + Duration::ms(1)) meter.on_sent(now, 1000);
  now = now + Duration::seconds(60);
  CHECK(meter.bits_per_second(now) == 0);
  meter.on_sent(now, 1000);
  CHECK(meter.bits_per_second(now) == 8000);
  for (int n = 0; n < 3000; ++n, now = now + Duration::ms(1)) {
    meter.on_sent(now, 1000);
    REQUIRE(meter.bits_per_second(now) < 8'100'000);
  }
  CHECK(static_cast<double>(meter.bits_per_second(now)) == Approx(8e6).epsilon(0.01));
}
