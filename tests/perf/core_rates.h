// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

namespace gradplane::testing {

/// Prints how many datagrams one and two poll cores receive in a job that they share. Each core is
/// a thread with both ends of its part: an engine of one node and one of the other. They share only
/// memory, so two should receive twice as much as one. Returns false if sums were wrong or there is
/// no second processor.
bool print_core_rates();

}  // namespace gradplane::testing
