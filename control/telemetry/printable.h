// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradplane::telemetry {

/// `text` with '?' for every control character, because a label that a trainer has chosen must not
/// control an operator's terminal.
std::string printable(std::string_view text);

/// How many columns a UTF-8 text takes, at one for each character.
std::size_t columns(std::string_view text);

/// `text` cut to at most `max` columns. The last one is "~" when something was cut.
std::string clipped(std::string_view text, std::size_t max);

}  // namespace gradplane::telemetry
