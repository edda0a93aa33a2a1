// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "control/config/config.h"

namespace gradplane::daemon {

/// Writes lines to stderr: "<level> gradplaned[node]: text". They have no time, because systemd's
/// journal adds it. Control thread.
class Log {
 public:
  Log(config::LogLevel level, std::string node) : level_(level), node_(std::move(node)) {}

  template <typename... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) const {
    line(config::LogLevel::kError, fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) const {
    line(config::LogLevel::kInfo, fmt::format(text, std::forward<Args>(args)...));
  }
  bool shows(config::LogLevel level) const { return level <= level_; }
  void line(config::LogLevel level, std::string_view text) const {
    if (!shows(level)) return;
    fmt::print(stderr, "{} gradplaned[{}]: {}\n", config::name_of(level), node_, text);
  }

 private:
  config::LogLevel level_;
  std::string node_;
};

}  // namespace gradplane::daemon
