// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Measuring links does not allocate: a million packets of 64 senders arrive in trains, paced, late
// and with gaps, while every allocation of this process is counted. Prints the time per packet.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "dataplane/awareness/link_estimate.h"
#include "dataplane/awareness/sounding_policy.h"
#include "tests/perf/forbidden_calls.h"

namespace {

using gradplane::Duration;
using gradplane::Instant;
using namespace gradplane::awareness;

constexpr std::size_t kSenders = 64;
constexpr std::uint32_t kPackets = 1'000'000;
constexpr std::uint32_t kWireBytes = 1522;

struct Receiver {
  std::array<LinkEstimate, kSenders> links;
  std::array<LossMeter, kSenders> losses;
  SoundingPolicy soundings;
  std::array<Sounding, kSenders> soundings_of;
  Instant now = Instant::from_ns(1'000'000'000);
  std::uint64_t number = 0;
  double confidence = 0;

  void take(std::uint32_t packets) {
    for (std::uint32_t n = 0; n < packets; ++n) {
      const std::size_t s = n / 128 % kSenders;  // 128 packets from each sender in turn
      ++number;
      now = now + Duration::us(n % 128 == 0 ? 20'000 : 100);
      if (n % 101 == 0) continue;
      const auto came_us = static_cast<std::uint32_t>(now.count_ns() / 1000);
      const std::uint32_t waited_us = s % 2 == 0 ? n % 128 * 50 : 0;
      links[s].on_packet({.sent_us = came_us - waited_us, .wire_bytes = kWireBytes},
                         {.at = now, .waited = Duration::us(1), .took_all = n % 97 != 0});
      links[s].on_loss(now, losses[s].on_packet(number));
      links[s].on_round_trip(now, Duration::us(20'000 + n % 1000));
      const RateEstimate rate = links[s].rate(now);
      confidence += rate.confidence + links[s].loss(now).confidence;
      if (links[s].wants_train(now) && soundings.may_begin(now, soundings_of[s], {})) {
        soundings.begin(now, soundings_of[s]);
      }
      soundings.on_sent(soundings_of[s]);
    }
  }
};

}  // namespace

int main() {
  static Receiver receiver;
  receiver.take(10'000);
  gradplane::testing::count_forbidden_calls();
  const auto begin = std::chrono::steady_clock::now();
  receiver.take(kPackets);
  const auto end = std::chrono::steady_clock::now();
  const bool none = gradplane::testing::no_forbidden_calls();

  std::printf("%u packets, %.0f ns for a packet and a look at its link, %zu bytes for a sender\n",
              kPackets, std::chrono::duration<double, std::nano>(end - begin).count() / kPackets,
              sizeof(LinkEstimate));
  return none && receiver.confidence > 0 ? 0 : 1;
}
