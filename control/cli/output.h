// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string_view>

namespace gradplane::cli {

/// Writes all of the text to standard output. Returns an exit code. It is no failure, and says
/// nothing, when the reader has gone away; a full disk is a failure.
int print(std::string_view text);

/// One line on standard error, with "gradplane: " in front.
void complain(std::string_view text);

bool stdout_is_terminal();

/// Waits for so many milliseconds; returns false as soon as the reader of standard output has gone.
bool wait_for_turn(int milliseconds);

}  // namespace gradplane::cli
