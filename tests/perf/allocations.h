// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

namespace gradplane::testing {

/// Begins to count all allocations of this process, by whatever function they are made.
void count_allocations();
/// Ends the count, and gives the number of allocations. It makes one allocation itself, and returns
/// false if the counter has not seen that one.
[[nodiscard]] bool end_allocation_count(std::uint64_t& allocations);

}  // namespace gradplane::testing
