// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/bounds/model.h"

namespace gradplane::bounds {

struct PlotBound {
  float bound = 0;
  std::string rule;  // for people: "plot: block 3 of 16, residual"
};

/// A bound for each parameter of a model, by the structure of the network (PLOT, TNSM 2024,
/// doi 10.1109/TNSM.2024.3461875):
///
/// - the first and the last layer are exact;
/// - the k blocks of a network have thresholds in a decreasing arithmetic sequence: with
///   d = 0.8 d_max, d_max = 2/(k(k-1)) for odd k and 2/(k(k-2)) for even k, the first is
///   1/k + d (k-1)/2 for odd k and 1/k + d (k-2)/2 for even k, and none is below 0;
/// - the layers of a block share its threshold; a layer whose output is added to the residual
///   connection has half of what each other layer has;
/// - in a VGG ("features", "classifier") the convolutions share 10 %, in a decreasing sequence, and
///   the fully connected layers 90 %, in an increasing one.
///
/// PLOT's thresholds have a fixed sum, whatever size the layers have. Bounds here are proportional
/// to PLOT's, and `budget` (0..kMaxBound) is the share of all elements that may be missing. So a
/// budget costs the same in all networks and under all presets.
///
/// Where names are not known, every parameter counts as a block, in the model's order.
std::vector<PlotBound> plot_bounds(const Model& model, float budget);

}  // namespace gradplane::bounds
