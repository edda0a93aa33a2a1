// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::testing {

/// Prints what one and two poll cores receive of a job that they share. Each core is a thread with
/// both ends of its part: an engine of one node and one of the other. Nothing is shared but memory,
/// so two should do twice as much as one. False: sums were wrong, or there is no second processor.
bool print_core_rates();

}  // namespace gradplane::testing
