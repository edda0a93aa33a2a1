// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

namespace gradplane::testing {

/// From now on every allocation of this process is counted, by whatever way it is made.
void count_allocations();
/// How many there were; ends the counting. One of our own is checked to have been seen: false if
/// the counter does not work.
[[nodiscard]] bool end_allocation_count(std::uint64_t& allocations);

}  // namespace gradplane::testing
