// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradplane::cli {

/// Parses a job's id in hex digits, as `gradplane status` prints it. If `text` is none, complains
/// on standard error, where `what` names the argument, and returns nothing.
std::optional<std::uint32_t> parse_job(const std::string& text, const char* what);

/// The same for the option --job: 0 when it is not given.
std::optional<std::uint32_t> parse_job_option(const std::string& text);

}  // namespace gradplane::cli
