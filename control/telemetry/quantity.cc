// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/quantity.h"

#include <fmt/format.h>

#include <array>

namespace gradplane::telemetry {

std::string duration_text(std::uint64_t ns) {
  const double value = static_cast<double>(ns);
  if (ns < 1000000) return fmt::format("{:.1f} us", value / 1e3);
  if (ns < 1000000000) return fmt::format("{:.1f} ms", value / 1e6);
  const std::uint64_t seconds = ns / 1000000000;
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds / 3600 % 24);
}

std::string rate_text(std::uint64_t bits_per_second) {
  constexpr std::array kUnits = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  double value = static_cast<double>(bits_per_second);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bit/s", bits_per_second)
                   : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string count_text(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string percent_text(double share) {
  return fmt::format("{:.4g} %", share * 100);
}

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return percent_text(static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace gradplane::telemetry
