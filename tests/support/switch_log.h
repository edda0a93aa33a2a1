// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What a coordinator's log says of the plans that it prepares for jobs that run.
namespace gradplane::testing {

inline std::optional<std::uint32_t> number_after(const std::string& line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string::npos) return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(line.substr(at + words.size())));
}

/// The epoch of a further plan, where the line says that it is being prepared.
inline std::optional<std::uint32_t> change_in(const std::string& line) {
  return number_after(line, "preparing epoch ");
}

/// The same of plans that are made because the network has changed.
inline std::optional<std::uint32_t> redraw_in(const std::string& line) {
  return number_after(line, "the network has changed, preparing epoch ");
}

}  // namespace gradplane::testing
