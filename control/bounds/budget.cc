// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/budget.h"

#include <algorithm>
#include <cstddef>

#include "dataplane/model/loss_bounds.h"

namespace gradplane::bounds {

std::vector<float> share_out(std::span<const Claim> claims, double budget) {
  std::vector<float> bounds(claims.size(), 0.0F);
  std::vector<std::size_t> order;  // who claims something, the greediest first
  double all = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    all += claims[i].elements;
    if (claims[i].weight <= 0 || claims[i].elements <= 0) continue;
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return claims[a].weight > claims[b].weight;
  });
  // By place in the order: elements x weight from there on. Summed from the small ones up, so that
  // what is left after the greedy ones is no difference of large numbers.
  std::vector<double> claimed(order.size() + 1);
  for (std::size_t at = order.size(); at-- > 0;) {
    claimed[at] = claimed[at + 1] + claims[order[at]].elements * claims[order[at]].weight;
  }
  double left = budget * all;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Claim& claim = claims[order[at]];
    const double factor = left / claimed[at];
    if (factor * claim.weight < kMaxBound) {
      // Nobody after this one claims more: the factor is final.
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
