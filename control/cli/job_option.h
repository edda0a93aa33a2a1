// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradplane::cli {

/// A job's id in hex digits, as `gradplane status` prints it; `what` names the argument. Nothing,
/// after a complaint, when it is no job.
std::optional<std::uint32_t> parse_job(const std::string& text, const char* what);

/// What --job says: a job's id in hex digits, as `gradplane status` prints it. 0 when it is not
/// given; nothing, after a complaint, when it is no job.
std::optional<std::uint32_t> parse_job_option(const std::string& text);

}  // namespace gradplane::cli
