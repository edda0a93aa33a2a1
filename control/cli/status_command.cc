// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/status_command.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "control/cli/daemon_client.h"
#include "control/cli/exit_codes.h"
#include "control/cli/output.h"
#include "control/telemetry/flows.h"
#include "control/telemetry/status.h"

namespace gradplane::cli {
namespace {

constexpr int kWatchPeriodMs = 1000;
constexpr std::size_t kMinWidth = 60;
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

telemetry::TextOptions text_options(const telemetry::StatusReport* before) {
  telemetry::TextOptions options;
  options.before = before;
  if (!stdout_is_terminal()) return options;
  const char* no_color = std::getenv("NO_COLOR");
  options.color = no_color == nullptr || *no_color == '\0';
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.width = std::clamp<std::size_t>(size.ws_col, kMinWidth, options.width);
  }
  return options;
}

/// The report that was shown last, or none.
using LastReport = std::optional<telemetry::StatusReport>;

Result<std::string> render(const StatusOptions& options, LastReport& last) {
  const auto json = fetch_status(options.socket_path);
  if (!json) return json.error();
  // The text is parsed and written anew, so that only checked values are printed.
  const auto report = telemetry::from_json(json.value());
  if (!report) {
    return Error{fmt::format("the daemon on {} sent a status that this version cannot read: {}",
                             options.socket_path, report.error().message)};
  }
  switch (options.format) {
    case StatusFormat::kJson:
      return telemetry::to_json(report.value()) + "\n";
    case StatusFormat::kOpenMetrics:
      return telemetry::to_openmetrics(report.value());
    case StatusFormat::kFlows:
      return telemetry::flows_text(report.value());
    case StatusFormat::kFlowsJson:
      return telemetry::flows_json(report.value());
    case StatusFormat::kText:
      break;
  }
  std::string text = telemetry::to_text(report.value(), text_options(last ? &*last : nullptr));
  last = report.value();
  return text;
}

int show_once(const StatusOptions& options, const char* begin, LastReport& last) {
  const auto text = render(options, last);
  if (!text) {
    complain(text.error().message);
    return kExitFailure;
  }
  return print(begin + text.value());
}

}  // namespace

int show_status(const StatusOptions& options) {
  LastReport last;
  if (!options.watch) return show_once(options, "", last);
  const bool is_text =
      options.format == StatusFormat::kText || options.format == StatusFormat::kFlows;
  const bool repaint = stdout_is_terminal() && is_text;
  do {
    // A person at a terminal can wait until a daemon has restarted; a script needs the error.
    const int code = show_once(options, repaint ? kClearScreen : "", last);
    if (code != kExitOk && !repaint) return code;
  } while (wait_for_turn(kWatchPeriodMs));
  return kExitOk;
}

}  // namespace gradplane::cli
