// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::testing {

/// Prints the rate of every kernel in each variant, next to a plain loop with the same arithmetic,
/// with data in the nearest cache and in memory. Returns false if a plain loop gives other bits, so
/// that the comparison would mean nothing.
bool print_kernel_rates();

}  // namespace gradplane::testing
