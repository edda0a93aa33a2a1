// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/budget.h"

#include <algorithm>
#include <cstddef>

#include "dataplane/model/loss_bounds.h"

namespace gradplane::bounds {

std::vector<float> share_out(std::span<const Claim> claims, double budget) {
  std::vector<float> bounds(claims.size(), 0.0F);
  std::vector<std::size_t> order;  // indexes of claims that are not 0, by falling weight
  double all = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    all += claims[i].elements;
    if (claims[i].weight <= 0 || claims[i].elements <= 0) continue;
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return claims[a].weight > claims[b].weight;
  });
  // claimed[at] is the sum of elements x weight from `at` to the end of the order. The loop adds
  // from the small weights up, because a difference of large numbers would lose digits.
  std::vector<double> claimed(order.size() + 1);
  for (std::size_t at = order.size(); at-- > 0;) {
    claimed[at] = claimed[at + 1] + claims[order[at]].elements * claims[order[at]].weight;
  }
  double left = budget * all;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Claim& claim = claims[order[at]];
    const double factor = left / claimed[at];
    if (factor * claim.weight < kMaxBound) {
      // No later claim has a larger weight, so the factor is final.
      for (; at < order.size(); ++at) {
        bounds[order[at]] = static_cast<float>(factor * claims[order[at]].weight);
      }
      break;
    }
    bounds[order[at]] = kMaxBound;
    left = std::max(left - kMaxBound * claim.elements, 0.0);
  }
  return bounds;
}

}  // namespace gradplane::bounds
