// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Prints which share of the time ranks compute under bounded staleness, and how many receivers
// updates have, for several ways of selecting receivers.
#include <cstdint>
#include <cstdio>

#include "tests/property/staleness_figures.h"

using namespace gradplane::testing;

int main() {
  constexpr std::uint64_t kNetworks = 4;
  const auto print = [&](const char* name, Selector selector, Sharing sharing, const auto& change) {
    const Figures mean = mean_figures(
        selector, sharing,
        [&](StalenessCase& settings) {
          change(settings);
          settings.horizon_s = 300;
        },
        kNetworks);
    std::printf("%-50s utilisation %.3f, scale %.3f\n", name, mean.utilisation, mean.scale);
    std::fflush(stdout);
  };
  const auto both = [](const auto& one, const auto& other) {
    return [=](StalenessCase& settings) {
      one(settings);
      other(settings);
    };
  };
  constexpr Selector kRandom = Selector::kRandom;
  constexpr Selector kPublished = Selector::kPublished;
  constexpr Selector kOnline = Selector::kOnline;
  print("random", kRandom, Sharing::kFair, kNoFreshness);
  print("published, less time first", kPublished, Sharing::kTime, kUnchanged);
  print("published, less time first, without freshness", kPublished, Sharing::kTime, kNoFreshness);
  print("published, fair", kPublished, Sharing::kFair, kUnchanged);
  print("published, fair, without freshness", kPublished, Sharing::kFair, kNoFreshness);
  print("published, fair, drops always", kPublished, Sharing::kFair, kDropsAlways);
  print("online", kOnline, Sharing::kUrgency, kUnchanged);
  print("online, stretch 1.1", kOnline, Sharing::kUrgency, kLessStretch);
  print("online, stretch 1", kOnline, Sharing::kUrgency, kNoStretch);
  print("online, without freshness", kOnline, Sharing::kUrgency, kNoFreshness);
  print("online, drops always", kOnline, Sharing::kUrgency, kDropsAlways);
  print("random, 0.4 n receivers", kRandom, Sharing::kFair, both(kNoFreshness, kMoreReceivers));
  print("online, 0.4 n receivers", kOnline, Sharing::kUrgency, kMoreReceivers);
  print("random, a slow rank", kRandom, Sharing::kFair, both(kNoFreshness, kSlowRank));
  print("published, fair, a slow rank", kPublished, Sharing::kFair, kSlowRank);
  print("online, a slow rank", kOnline, Sharing::kUrgency, kSlowRank);
  print("online, a slow rank, no urgency", kOnline, Sharing::kFair, kSlowRank);
  print("random, copies by the sender", kRandom, Sharing::kFair, both(kNoFreshness, kSenderCopies));
  print("published, copies by the sender", kPublished, Sharing::kTime, kSenderCopies);
  print("online, copies by the sender", kOnline, Sharing::kUrgency, kSenderCopies);
  return 0;
}
