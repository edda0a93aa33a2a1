// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Numbers for a person, with three or four digits and a unit.
namespace gradplane::telemetry {

/// "1 job", "3 jobs".
std::string count_text(std::uint64_t count, std::string_view noun);

/// "1.5 GiB".
std::string bytes_text(std::uint64_t bytes);

/// "187.5 Mbit/s".
std::string rate_text(std::uint64_t bits_per_second);

/// "250.0 us", "3 h 12 min".
std::string duration_text(std::uint64_t ns);

/// "1.25 %"; "-" if `whole` is 0.
std::string percent_text(double share);
std::string percent_text(std::uint64_t part, std::uint64_t whole);

}  // namespace gradplane::telemetry
