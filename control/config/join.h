// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

namespace gradplane::config {

/// "a, b, c". Not fmt::join: with GCC 12 at -O3 it warns about fmt's own code.
template <typename Words>
std::string join(const Words& words) {
  std::string joined;
  for (const auto& word : words) {
    if (!joined.empty()) joined += ", ";
    joined += word;
  }
  return joined;
}

}  // namespace gradplane::config
