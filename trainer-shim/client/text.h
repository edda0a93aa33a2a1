// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace gradplane::client {

/// A trainer's text (null: none), cut so that it has at most `max_bytes` when it is encoded. There
/// a byte that is no UTF-8 becomes a character of three bytes.
inline std::string text_within(const char* text, std::size_t max_bytes) {
  if (text == nullptr) return {};
  const std::string_view all(text);
  const bool ascii = std::all_of(all.begin(), all.end(), [](char c) { return c > 0; });
  return std::string(all.substr(0, ascii ? max_bytes : max_bytes / 3));
}

}  // namespace gradplane::client
