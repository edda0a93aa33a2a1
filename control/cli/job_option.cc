// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/job_option.h"

#include <fmt/format.h>

#include <charconv>

#include "control/cli/output.h"

namespace gradplane::cli {

std::optional<std::uint32_t> parse_job(const std::string& text, const char* what) {
  constexpr int kHexadecimal = 16;
  std::uint32_t job = 0;
  const char* text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, job, kHexadecimal);
  if (error == std::errc{} && end == text_end && job != 0) return job;
  complain(fmt::format("{}: '{}' is no job; give its 8 hex digits, as gradplane status does", what,
                       text));
  return std::nullopt;
}

std::optional<std::uint32_t> parse_job_option(const std::string& text) {
  if (text.empty()) return 0;
  return parse_job(text, "--job");
}

}  // namespace gradplane::cli
