// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/units.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <numeric>

namespace gradplane::config {
namespace {

constexpr std::array kSizeUnits = {Unit{"B", 1}, Unit{"KiB", std::int64_t{1} << 10},
                                   Unit{"MiB", std::int64_t{1} << 20},
                                   Unit{"GiB", std::int64_t{1} << 30}};
constexpr std::array kRateUnits = {Unit{"bit/s", 1}, Unit{"kbit/s", 1000}, Unit{"Mbit/s", 1000000},
                                   Unit{"Gbit/s", 1000000000}};
constexpr std::array kTimeUnits = {Unit{"ns", 1}, Unit{"us", 1000}, Unit{"ms", 1000000},
                                   Unit{"s", 1000000000}, Unit{"min", 60000000000}};
constexpr std::array kShareUnits = {Unit{"%", 10000}, Unit{"", 1000000}};
constexpr std::array kNumberUnits = {Unit{"", 1000000}};

// At least as many fractional digits as any unit can use.
constexpr std::size_t kMaxFractionDigits = 12;

std::string_view take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

std::optional<std::int64_t> find_unit(std::string_view name, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.base;
  }
  return std::nullopt;
}

/// The digits after a decimal point, in base units; nothing when that is no whole number.
std::optional<std::int64_t> scale_fraction(std::string_view digits, std::int64_t base) {
  if (digits.size() > kMaxFractionDigits) return std::nullopt;
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  for (const char digit : digits) {
    numerator = numerator * 10 + (digit - '0');
    denominator *= 10;
  }
  const std::int64_t common = std::gcd(numerator, denominator);
  if (base % (denominator / common) != 0) return std::nullopt;
  return base / (denominator / common) * (numerator / common);
}

}  // namespace

std::span<const Unit> size_units() {
  return kSizeUnits;
}
std::span<const Unit> rate_units() {
  return kRateUnits;
}
std::span<const Unit> time_units() {
  return kTimeUnits;
}
std::span<const Unit> share_units() {
  return kShareUnits;
}
std::span<const Unit> number_units() {
  return kNumberUnits;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0') || text[0] == '-') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  const auto whole = parse_integer(take_digits(text));
  if (!whole) return std::nullopt;
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take_digits(text);
    if (fraction.empty()) return std::nullopt;
  }
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto base = find_unit(text, units);
  if (!base) return std::nullopt;
  const auto part = scale_fraction(fraction, *base);
  std::int64_t value = 0;
  if (!part || __builtin_mul_overflow(*whole, *base, &value) ||
      __builtin_add_overflow(value, *part, &value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace gradplane::config
