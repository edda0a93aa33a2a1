// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "control/config/config.h"

namespace gradplane::config {
namespace {

constexpr std::size_t kOriginColumn = 44;

std::vector<std::string_view> split(std::string_view key) {
  std::vector<std::string_view> parts;
  for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
    parts.push_back(key.substr(0, dot));
    key.remove_prefix(dot + 1);
  }
  parts.push_back(key);
  return parts;
}

bool is_item(std::string_view part) {
  return part.ends_with(']');
}
std::string_view bare(std::string_view part) {
  return part.substr(0, part.find('['));
}

/// Writes settings as nested YAML. The settings of a section must come together.
class YamlWriter {
 public:
  void add(const Setting& setting) {
    const auto parts = split(setting.key);
    const std::string indent = open_sections(parts);
    std::string line = fmt::format("{}{}: {}", indent, parts.back(), setting.value);
    // A key without a value becomes a comment: it stays unset, but the reader sees that it exists.
    if (setting.value.empty()) line = fmt::format("{}# {}:", indent, parts.back());
    out_ += fmt::format("{:<{}} # {}\n", line, kOriginColumn, setting.origin);
    previous_ = parts;
  }

  std::string take() { return std::move(out_); }

 private:
  std::string open_sections(const std::vector<std::string_view>& parts) {
    std::size_t common = 0;
    while (common + 1 < parts.size() && common + 1 < previous_.size() &&
           parts[common] == previous_[common]) {
      ++common;
    }
    std::string indent;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const bool next_item = i < previous_.size() && bare(previous_[i]) == bare(parts[i]);
      const bool known = i < common || (i == common && is_item(parts[i]) && next_item);
      if (!known) out_ += fmt::format("{}{}:\n", indent, bare(parts[i]));
      indent += "  ";
      if (!is_item(parts[i])) continue;
      indent += i < common ? "  " : "- ";
    }
    return indent;
  }

  std::string out_;
  std::vector<std::string_view> previous_;
};

}  // namespace

std::string effective_yaml(const ParsedConfig& parsed) {
  YamlWriter writer;
  for (const Setting& setting : parsed.settings) writer.add(setting);
  return writer.take();
}

}  // namespace gradplane::config
