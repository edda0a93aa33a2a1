// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <string_view>

namespace gradplane::config {

/// Letters to insert, delete, replace or swap with a neighbour to turn one word into the other.
/// Words longer than 64 bytes are infinitely far apart.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace gradplane::config
