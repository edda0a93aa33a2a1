// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <string_view>

namespace gradplane::config {

/// How many letters have to be inserted, deleted, replaced or swapped with a neighbour to turn one
/// word into the other. SIZE_MAX if a word is longer than 64 bytes.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace gradplane::config
