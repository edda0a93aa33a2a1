// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/exchange_schedule.h"

#include <array>
#include <cstdint>
#include <vector>

#include "tests/support/catch.h"

using namespace gradplane::shim;

namespace {

using Due = ExchangeSchedule::Due;

constexpr std::array<int, 6> kParameters{};

/// Identities of some of a model's parameters.
std::vector<const void*> parameters(std::initializer_list<std::size_t> which) {
  std::vector<const void*> out;
  for (const std::size_t i : which) out.push_back(&kParameters[i]);
  return out;
}

/// A pass with one bucket, which ends as `end` says.
void pass(ExchangeSchedule& schedule, const ExchangeSchedule::BucketEnd& end) {
  schedule.begin_bucket(parameters({0}));
  schedule.end_bucket(end);
}

constexpr ExchangeSchedule::BucketEnd exchanged(std::uint32_t average_every) {
  return {.exchanged = true, .summed = false, .average_every = average_every};
}
constexpr ExchangeSchedule::BucketEnd kSummed{.exchanged = false, .summed = true};

}  // namespace

TEST_CASE("a pass has every bucket once, in whatever order and however they are cut") {
  ExchangeSchedule schedule;
  CHECK(schedule.passes() == 0);
  CHECK(schedule.begin_bucket(parameters({4, 5})) == 0);
  CHECK(schedule.begin_bucket(parameters({2, 3})) == 0);
  CHECK(schedule.begin_bucket(parameters({0, 1})) == 0);
  // DDP has rearranged its buckets.
  CHECK(schedule.begin_bucket(parameters({0, 5, 4})) == 1);
  CHECK(schedule.begin_bucket(parameters({1, 2, 3})) == 1);
  CHECK(schedule.passes() == 2);
  // A pass that ended with an error before its last bucket.
  CHECK(schedule.begin_bucket(parameters({0, 5, 4})) == 2);
  CHECK(schedule.begin_bucket(parameters({0, 5, 4})) == 3);
  CHECK(schedule.begin_bucket(parameters({1, 2, 3})) == 3);
}

TEST_CASE("parameters are averaged when the operator wants it, and only where gradients differ") {
  ExchangeSchedule schedule;
  CHECK(schedule.take_due() == Due::kNothing);
  for (int i = 0; i < 5; ++i) pass(schedule, kSummed);
  CHECK(schedule.take_due() == Due::kNothing);
  ExchangeSchedule other;
  for (int step = 1; step <= 9; ++step) {
    CAPTURE(step);
    pass(other, exchanged(3));
    CHECK(other.take_due() == (step % 3 == 0 ? Due::kAverage : Due::kNothing));
    // A second forward pass before the next backward pass.
    CHECK(other.take_due() == Due::kNothing);
  }
}

TEST_CASE("without averages the drift is measured now and then") {
  ExchangeSchedule schedule;
  for (std::uint64_t step = 1; step <= 2 * ExchangeSchedule::kMeasureEvery; ++step) {
    CAPTURE(step);
    pass(schedule, exchanged(0));
    const bool due = step % ExchangeSchedule::kMeasureEvery == 0;
    CHECK(schedule.take_due() == (due ? Due::kMeasure : Due::kNothing));
  }
}

TEST_CASE("replicas that are apart are averaged once when gradients are summed again") {
  for (const std::uint32_t average_every : {0U, 1000U}) {
    const ExchangeSchedule::BucketEnd both{
        .exchanged = true, .summed = true, .average_every = average_every};
    // Sums begin with a pass, or in the middle of a pass, or in the middle of a bucket.
    for (const auto& buckets :
         {std::vector{kSummed}, std::vector{exchanged(average_every), kSummed},
          std::vector{both}}) {
      ExchangeSchedule schedule;
      for (int step = 0; step < 3; ++step) pass(schedule, exchanged(average_every));
      CHECK(schedule.take_due() == Due::kNothing);
      for (std::size_t i = 0; i < buckets.size(); ++i) {
        schedule.begin_bucket(parameters({i}));
        schedule.end_bucket(buckets[i]);
      }
      CHECK(schedule.take_due() == Due::kAverage);
      for (int step = 0; step < 200; ++step) {
        pass(schedule, kSummed);
        REQUIRE(schedule.take_due() == Due::kNothing);
      }
      // The daemons are back. Sums before that no longer matter.
      pass(schedule, exchanged(1000));
      CHECK(schedule.take_due() == Due::kNothing);
    }
  }
}

TEST_CASE("averages go on when gradients are summed again: optimizers remember others") {
  ExchangeSchedule schedule;
  pass(schedule, exchanged(5));
  pass(schedule, kSummed);
  CHECK(schedule.take_due() == Due::kAverage);
  for (int step = 1; step <= 10; ++step) {
    CAPTURE(step);
    pass(schedule, kSummed);
    CHECK(schedule.take_due() == (step % 5 == 0 ? Due::kAverage : Due::kNothing));
  }
}

TEST_CASE("steps count from the last average") {
  ExchangeSchedule schedule;
  pass(schedule, exchanged(4));
  CHECK(schedule.take_due() == Due::kNothing);
  pass(schedule, kSummed);
  CHECK(schedule.take_due() == Due::kAverage);
  for (int step = 1; step <= 4; ++step) {
    pass(schedule, exchanged(4));
    CHECK(schedule.take_due() == (step == 4 ? Due::kAverage : Due::kNothing));
  }
}
