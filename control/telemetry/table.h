// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gradplane::telemetry {

enum class Align : std::uint8_t { kLeft, kRight };

struct Column {
  std::string heading;
  Align align = Align::kLeft;
};

/// Rows of cells in columns as wide as their widest cell.
class Table {
 public:
  explicit Table(std::vector<Column> heads) : heads_(std::move(heads)) {}

  /// One cell for each column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// Headings and rows, each line indented; no blanks at the end of a line.
  std::string text(std::size_t indent) const;

 private:
  std::vector<Column> heads_;
  std::vector<std::vector<std::string>> rows_;
};

/// `head` followed by `text`, which is broken at blanks so that no line is longer than `width`.
/// Further lines are indented below the text.
std::string wrapped(std::string_view head, std::string_view text, std::size_t width);

}  // namespace gradplane::telemetry
