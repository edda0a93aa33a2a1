// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// Numbers with units. They are exact: a text that is no whole number of the base unit is refused,
/// not rounded.
namespace gradplane::config {

struct Unit {
  std::string_view name;
  std::int64_t base;  // its size in base units
};

std::span<const Unit> size_units();  // base: byte
std::span<const Unit> rate_units();  // base: bit per second
std::span<const Unit> time_units();  // base: nanosecond
/// Base: millionth of the whole. A share without a unit is a fraction: 0.05 is 5 %.
std::span<const Unit> share_units();
/// Base: millionth of 1. A number has no unit.
std::span<const Unit> number_units();

/// Reads "4 MiB", "1.5 s", "200Mbit/s". Returns nothing for any other text: an unknown unit (or
/// none, where the units have no empty name), a sign, a fraction of the base unit, or more than
/// 2^63 - 1 base units.
std::optional<std::int64_t> parse_with_unit(std::string_view text, std::span<const Unit> units);

/// A decimal integer without sign, blanks or leading zeros. Empty for everything else.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace gradplane::config
