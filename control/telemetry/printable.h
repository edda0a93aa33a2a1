// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradplane::telemetry {

/// `text` with '?' for every control character: a label that a trainer chose must not drive an
/// operator's terminal.
std::string printable(std::string_view text);

/// Columns that a UTF-8 text takes, counting one for each character.
std::size_t columns(std::string_view text);

/// At most `max` columns, the last one "~" when something was cut.
std::string clipped(std::string_view text, std::size_t max);

}  // namespace gradplane::telemetry
