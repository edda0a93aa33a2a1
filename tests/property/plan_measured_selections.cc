// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Selections that follow the measurements of their own exchanges. On a constant network they become
// stable, close to the best choice, and no link stays slow for ever.
#include <random>
#include <vector>

#include "tests/property/exchange_lab.h"
#include "tests/property/seeds.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::plan;
using gradplane::testing::ExchangeLab;

namespace {

constexpr std::uint64_t kMbit = 1'000'000;
/// The relative error of measurements.
constexpr double kNoise = 0.08;
/// Selections are stable after at most so many redraws.
constexpr int kMostRedraws = 8;
/// They then stay for so many cycles.
constexpr int kCalmCycles = 30;

std::uint64_t drawn_rate(std::mt19937_64& random, std::uint64_t spread) {
  return 1000 * kMbit / (1 + random() % spread);
}

ExchangeLab drawn_lab(std::mt19937_64& random) {
  ExchangeLab::Accesses accesses(4 + random() % 29);
  const std::uint64_t spread = 1 + random() % 10;
  for (RankCapacity& access : accesses)
    access = {drawn_rate(random, spread), drawn_rate(random, spread)};
  const auto freshness = static_cast<std::uint32_t>(1 + random() % 7);
  return {accesses, static_cast<std::uint32_t>(1 + random() % 500'000), freshness};
}

/// The number of redraws in so many cycles.
int redraws_in(ExchangeLab& lab, std::mt19937_64& random, int cycles) {
  int redraws = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    lab.exchange(random, kNoise);
    if (lab.redraw()) ++redraws;
  }
  return redraws;
}

/// The time with stable selections, relative to the best selections.
double settled(ExchangeLab& lab, std::mt19937_64& random) {
  const int first = redraws_in(lab, random, 2 * kMostRedraws);
  INFO(first << " redraws before");
  CHECK(first <= kMostRedraws);
  CHECK(redraws_in(lab, random, kCalmCycles) == 0);
  return lab.seconds() / lab.best_seconds();
}

struct Over {
  double sum = 0;
  double worst = 0;
  int count = 0;
  void add(double one) {
    sum += one;
    worst = std::max(worst, one);
    ++count;
  }
  double mean() const { return sum / count; }
};

}  // namespace

TEST_CASE("selections come to rest near the best ones, whatever the accesses are like") {
  Over begun;
  Over over;
  testing::Seeds(60).each("plan_measured_selections", [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    ExchangeLab lab = drawn_lab(random);
    lab.begin();
    begun.add(lab.seconds() / lab.best_seconds());
    over.add(settled(lab, random));
  });
  INFO("at first " << begun.mean() << ", at rest " << over.mean() << ", worst " << over.worst);
  CHECK(over.mean() < 1.1);
  CHECK(over.mean() < begun.mean());
  SUCCEED();
}

/// A slow access is avoided only as a downlink, because every uplink needs the least number of
/// receivers.
TEST_CASE("an access that becomes slow is spared, and one that recovers is used again") {
  Over slow;
  Over again;
  Over left;
  testing::Seeds(60).each("plan_measured_selections", [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    ExchangeLab lab = drawn_lab(random);
    lab.begin();
    settled(lab, random);
    const std::size_t node = random() % lab.request().members.size();
    lab.set_access(node, {1000 * kMbit, 30 * kMbit});
    left.add(lab.seconds() / lab.best_seconds());
    slow.add(settled(lab, random));
    lab.set_access(node, {1000 * kMbit, 1000 * kMbit});
    again.add(settled(lab, random));
  });
  INFO("left alone " << left.mean() << "; when slow " << slow.mean() << ", worst " << slow.worst
                     << "; recovered " << again.mean() << ", worst " << again.worst);
  CHECK(slow.mean() < 1.1);
  CHECK(again.mean() < 1.15);
  CHECK(left.mean() > 1.2);  // otherwise this test would show nothing
}
