// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::testing {

/// Prints how fast every kernel of each variant is beside a plain loop with the same arithmetic, in
/// the nearest cache and in memory. False when a plain loop gives other bits, which makes it none
/// to compare with.
bool print_kernel_rates();

}  // namespace gradplane::testing
