// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string_view>

namespace gradplane::cli {

/// Writes all of it to standard output. Returns an exit code: a reader that has gone away is no
/// failure and makes no noise; a full disk is one.
int print(std::string_view text);

/// One line on standard error, with "gradplane: " in front.
void complain(std::string_view text);

bool stdout_is_terminal();

/// Waits for so many milliseconds; false when the reader of standard output has gone.
bool wait_for_turn(int milliseconds);

}  // namespace gradplane::cli
