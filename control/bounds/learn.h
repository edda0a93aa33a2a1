// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gradplane::bounds {

/// What a root has seen of a tensor's gradients: part_energy() and sum_energy() of
/// aggregate::Bucket. They are taken from sampled blocks that were complete. Older blocks count
/// less.
struct TensorNoise {
  std::uint64_t elements = 0;
  double part_energy = 0;  // sum over ranks of |g_r|^2
  double sum_energy = 0;   // |sum over ranks of g_r|^2
};

/// The bounds of `gather.preset: auto`.
///
/// With N ranks, a tensor's mean gradient has the energy m = sum_energy / N^2, and one rank's
/// gradient differs from it by the variance v = part_energy / N - m. When one rank's block is
/// missing and the others are scaled up instead (compensation: rescale), the mean gets an error of
/// variance v / (N (N - 1)). To second order in 1/N this is the error of a mean of N - 1 samples
/// against one of N. With the bound b the error relative to the signal is e = b v / (N (N - 1) m).
/// The bounds make the largest e of all tensors as small as the budget allows: b is proportional to
/// m / v, up to kMaxBound, and the sum of elements x b is `budget` times the sum of all elements.
/// So the noisier a tensor is, the less of it may be missing.
///
/// A tensor gets 0 when nothing is known of it or its gradients are 0, and all tensors get 0 when
/// there is one rank. When all bounds are kMaxBound and budget is left, the rest stays unused.
std::vector<float> learn(std::span<const TensorNoise> tensors, std::uint32_t ranks, double budget);

}  // namespace gradplane::bounds
