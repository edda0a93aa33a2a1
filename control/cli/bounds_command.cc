// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/bounds_command.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "control/cli/daemon_client.h"
#include "control/cli/exit_codes.h"
#include "control/cli/output.h"
#include "control/telemetry/bounds.h"

namespace gradplane::cli {
namespace {

std::optional<std::uint32_t> parse_job(const std::string& text) {
  constexpr int kHexadecimal = 16;
  std::uint32_t job = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), job, kHexadecimal);
  if (error != std::errc{} || end != text.data() + text.size() || job == 0) return std::nullopt;
  return job;
}

}  // namespace

int show_bounds(const BoundsOptions& options) {
  std::uint32_t job = 0;
  if (!options.job.empty()) {
    const auto parsed = parse_job(options.job);
    if (!parsed) {
      complain(fmt::format("--job: '{}' is no job; give its 8 hex digits, as gradplane status does",
                           options.job));
      return kExitUsage;
    }
    job = *parsed;
  }
  const auto bounds = fetch_bounds(options.socket_path, job);
  if (!bounds) {
    complain(bounds.error().message);
    return kExitFailure;
  }
  return print(options.json ? telemetry::bounds_json(bounds.value())
                            : telemetry::bounds_text(bounds.value()));
}

}  // namespace gradplane::cli
