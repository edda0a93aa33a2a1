// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/learn.h"

#include <cmath>
#include <limits>
#include <vector>

#include "dataplane/model/loss_bounds.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::bounds;

namespace {

constexpr std::uint32_t kRanks = 4;

/// A tensor whose mean gradient has the energy 1. Each rank's gradient deviates with this variance.
TensorNoise noise(std::uint64_t elements, double variance) {
  return {elements, (1 + variance) * kRanks, 1.0 * kRanks * kRanks};
}

double used(const std::vector<TensorNoise>& tensors, const std::vector<float>& bounds) {
  double sum = 0;
  double all = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    sum += static_cast<double>(tensors[i].elements) * bounds[i];
    all += static_cast<double>(tensors[i].elements);
  }
  return sum / all;
}

}  // namespace

TEST_CASE("the budget is kept, whatever the sizes and the noise") {
  for (const double budget : {0.001, 0.01, 0.2, 0.4}) {
    const std::vector<TensorNoise> tensors = {noise(1000000, 10), noise(10, 0.001), noise(5000, 1),
                                              noise(300000, 300), noise(70000, 0)};
    const std::vector<float> bounds = learn(tensors, kRanks, budget);
    CHECK(used(tensors, bounds) == Approx(budget).epsilon(1e-4));
    for (const float bound : bounds) CHECK((bound >= 0 && bound <= kMaxBound));
  }
}

TEST_CASE("the noisier a tensor is, the less of it may be missing") {
  std::vector<TensorNoise> tensors;
  for (int i = 0; i < 20; ++i) tensors.push_back(noise(1000, std::pow(1.7, i - 5)));
  const std::vector<float> bounds = learn(tensors, kRanks, 0.05);
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    INFO("tensor " << i);
    CHECK(bounds[i] <= bounds[i - 1]);
    CHECK(bounds[i] > 0);
  }
  // Below the cap, all tensors have the same error relative to their signal: bound x variance.
  CHECK(bounds[19] * std::pow(1.7, 14) == Approx(bounds[18] * std::pow(1.7, 13)).epsilon(1e-3));
}

TEST_CASE("the size of the gradients alone changes nothing") {
  std::vector<TensorNoise> tensors = {noise(1000, 2), noise(1000, 4)};
  const std::vector<float> before = learn(tensors, kRanks, 0.1);
  tensors[0].part_energy *= 1e6;
  tensors[0].sum_energy *= 1e6;
  CHECK(learn(tensors, kRanks, 0.1)[0] == Approx(before[0]));
  CHECK(before[0] == Approx(2 * before[1]));
}

TEST_CASE("what is not known, zero or not finite stays exact and spoils nothing") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  // In the last tensor the ranks' gradients cancel out, so there is no signal.
  const std::vector<TensorNoise> tensors = {noise(1000, 1), {1000, 0, 0},   {1000, nan, 1},
                                            {1000, inf, 1}, {1000, 1, nan}, {0, 1, 1},
                                            {1000, 4, 0}};
  const std::vector<float> bounds = learn(tensors, kRanks, 0.01);
  CHECK(bounds[0] > 0);
  for (std::size_t i = 1; i < bounds.size(); ++i) CHECK(bounds[i] == 0);
  CHECK(learn({}, kRanks, 0.01).empty());
  CHECK(learn(std::vector<TensorNoise>{noise(1000, 1)}, 1, 0.01)[0] == 0);
  CHECK(learn(std::vector<TensorNoise>{noise(1000, 1)}, 0, 0.01)[0] == 0);
  CHECK(learn(std::vector<TensorNoise>{noise(1000, 1)}, kRanks, 0)[0] == 0);
}

TEST_CASE("ranks that all agree, up to rounding, may miss most") {
  const std::vector<TensorNoise> tensors = {{1000, 3.9999, 16}, noise(1000, 1)};
  const std::vector<float> bounds = learn(tensors, kRanks, 0.1);
  CHECK(bounds[0] > 1000 * bounds[1]);
  CHECK(used(tensors, bounds) == Approx(0.1).epsilon(1e-4));
}

TEST_CASE("a budget that nobody can use up stays unused") {
  const std::vector<TensorNoise> tensors = {noise(10, 1), {1000, 0, 0}};
  const std::vector<float> bounds = learn(tensors, kRanks, 0.4);
  CHECK(bounds[0] == kMaxBound);
  CHECK(bounds[1] == 0);
}
