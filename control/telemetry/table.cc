// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/table.h"

#include <algorithm>

#include "control/telemetry/printable.h"

namespace gradplane::telemetry {
namespace {

constexpr std::size_t kGap = 2;

void strip_right(std::string& line) {
  const std::size_t last = line.find_last_not_of(' ');
  line.resize(last == std::string::npos ? 0 : last + 1);
}

}  // namespace

std::string Table::text(std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    std::size_t width = columns(heads_[i].heading);
    for (const auto& row : rows_) width = std::max(width, columns(row[i]));
    widths.push_back(width);
  }
  std::string out;
  const auto add_line = [&](const auto& cell_of) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string padding(widths[i] - columns(cell), ' ');
      if (i > 0) line.append(kGap, ' ');
      line += heads_[i].align == Align::kRight ? padding + cell : cell + padding;
    }
    strip_right(line);
    out += line + "\n";
  };
  add_line([&](std::size_t i) -> const std::string& { return heads_[i].heading; });
  for (const auto& row : rows_) {
    add_line([&](std::size_t i) -> const std::string& { return row[i]; });
  }
  return out;
}

std::string wrapped(std::string_view head, std::string_view text, std::size_t width) {
  const std::string indent(columns(head), ' ');
  std::string out(head);
  std::size_t used = columns(head);
  bool first = true;
  while (!text.empty()) {
    const std::size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    if (!first && used + 1 + columns(word) > width) {
      out += "\n" + indent;
      used = indent.size();
      first = true;
    }
    if (!first) out += ' ';
    out += word;
    used += columns(word) + (first ? 0 : 1);
    first = false;
  }
  return out + "\n";
}

}  // namespace gradplane::telemetry
