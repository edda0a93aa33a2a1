// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradplane::testing {

/// The epoch of a redraw, where a line of a coordinator's log says that one begins.
inline std::optional<std::uint32_t> redraw_in(const std::string& line) {
  static const std::string words = "the network has changed, preparing epoch ";
  const std::size_t at = line.find(words);
  if (at == std::string::npos) return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(line.substr(at + words.size())));
}

}  // namespace gradplane::testing
