// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/nearest.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace gradplane::config {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  constexpr std::size_t kMaxWordBytes = 64;
  if (a.size() > kMaxWordBytes || b.size() > kMaxWordBytes) return SIZE_MAX;
  // Rows i - 2, i - 1 and i of the table of distances; row i is rows[i % 3].
  std::array<std::array<std::size_t, kMaxWordBytes + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i - 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace gradplane::config
