// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Warnings about the drift that ranks report.
#include "control/daemon/drift.h"

#include <limits>

#include "control/daemon/ranks.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::daemon;

namespace {

struct Bench {
  Bench() {
    training.mode = config::TrainingMode::kSelectiveBsp;
    training.drift_limit_ppm = 100'000;
    rank.attach.rank = 3;
    rank.attach.label = "train.py";
    rank.told_ready = true;
  }
  std::string say(double distance, double norm, std::uint64_t step = 100) {
    const auto warning = take_drift(training, &rank, {step, distance, norm});
    REQUIRE(warning.ok());
    return warning.value();
  }
  config::TrainingConfig training;
  Rank rank;
};

}  // namespace

TEST_CASE("a drift over the limit is warned of once, and again when it has been below") {
  Bench bench;
  CHECK(bench.say(1, 10).empty());  // at the limit
  CHECK(bench.say(1.5, 10, 200) ==
        "job train.py: the parameters of rank 3 were 15 % away from the mean at step 200 (distance "
        "1.5, norm of the mean 10), and training.drift_limit is 10 %; take the mean more often "
        "(training.average_every), raise training.receivers, or lower the learning rate");
  CHECK(bench.say(2, 10).empty());
  CHECK(bench.say(3, 10).empty());
  CHECK(bench.say(0.5, 10).empty());
  CHECK_FALSE(bench.say(1.1, 10).empty());
  CHECK(bench.rank.drift.averages() == 6);
  CHECK(bench.rank.drift.last().distance == 1.1);
  CHECK(bench.rank.drift.last().norm == 10);
}

TEST_CASE("a drift that goes to and fro writes few lines") {
  Bench bench;
  int lines = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!bench.say(2, 10).empty()) ++lines;
    CHECK(bench.say(0.5, 10).empty());
  }
  CHECK(lines == 10);
}

TEST_CASE("a drift that comes back soon and stays over the limit is warned of later") {
  Bench bench;
  CHECK_FALSE(bench.say(2, 10).empty());  // the first mean
  CHECK(bench.say(0.5, 10).empty());
  CHECK_FALSE(bench.say(2, 10).empty());  // the third mean: no warning before the sixth
  CHECK(bench.say(0.5, 10).empty());
  CHECK(bench.say(2, 10).empty());
  CHECK_FALSE(bench.say(2, 10).empty());
  CHECK(bench.say(2, 10).empty());
}

TEST_CASE("a relative drift is a finite number, whatever a rank says") {
  constexpr double kMost = std::numeric_limits<double>::max();
  CHECK(relative_drift({0, 1, 4}) == 0.25);
  CHECK(relative_drift({0, 0, 0}) == 0);
  CHECK(relative_drift({0, 1, 0}) == kMost);
  CHECK(relative_drift({0, kMost, std::numeric_limits<double>::denorm_min()}) == kMost);
  CHECK(relative_drift({0, 0, kMost}) == 0);
  Bench bench;
  CHECK_FALSE(bench.say(kMost, 0).empty());
}

TEST_CASE("a drift that no correct client tells of is refused, and not kept") {
  Bench bench;
  const protocol::Drift drift{1, 5, 10};
  CHECK(take_drift(bench.training, nullptr, drift).error().message == "drift before attach");
  bench.rank.told_ready = false;
  CHECK(take_drift(bench.training, &bench.rank, drift).error().message ==
        "drift before the job was ready");
  bench.rank.told_ready = true;
  bench.training.mode = config::TrainingMode::kExact;
  CHECK(take_drift(bench.training, &bench.rank, drift).error().message ==
        "drift, but training.mode is exact here: all ranks have the same parameters");
  CHECK(bench.rank.drift.averages() == 0);
}
