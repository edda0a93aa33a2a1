// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Reads from a coordinator's log which plans it prepares for running jobs.
namespace gradplane::testing {

inline std::optional<std::uint32_t> number_after(const std::string& line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string::npos) return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(line.substr(at + words.size())));
}

/// The epoch of the further plan, if the line says that one is being prepared.
inline std::optional<std::uint32_t> change_in(const std::string& line) {
  return number_after(line, "preparing epoch ");
}

/// The epoch of a redraw, if the line says that one is being prepared.
inline std::optional<std::uint32_t> redraw_in(const std::string& line) {
  return number_after(line, "the network has changed, preparing epoch ");
}

}  // namespace gradplane::testing
