// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>

#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"

namespace gradplane::telemetry {
namespace {

using Json = nlohmann::json;

/// The value of the first name that has a whole number; 0 when none has.
std::uint64_t number(const Json& object, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto it = object.find(name);
    if (it != object.end() && it->is_number_unsigned()) return it->get<std::uint64_t>();
  }
  return 0;
}

std::string text(const Json& object, const char* name, std::size_t max_bytes = kMaxTextBytes) {
  const auto it = object.find(name);
  if (it == object.end()) return {};
  if (it->is_number_unsigned()) return fmt::to_string(it->get<std::uint64_t>());
  return it->is_string() ? printable(it->get<std::string>()).substr(0, max_bytes) : std::string();
}

ReasonCounts reasons(const Json& object, const char* name) {
  ReasonCounts counts;
  const auto it = object.find(name);
  if (it == object.end() || !it->is_object()) return counts;
  for (const auto& [reason, count] : it->items()) {
    if (counts.size() == kMaxReasons) break;
    if (count.is_number_unsigned()) counts[printable(reason)] = count.get<std::uint64_t>();
  }
  return counts;
}

std::optional<ProcessReport> parse_line(std::string_view line) {
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  ProcessReport process;
  process.pid = number(object, {"pid"});
  process.rank = text(object, "rank");
  process.carried_ops = number(object, {"carried_ops", "carried"});
  process.carried = reasons(object, "carried");
  process.carried_rounds = number(object, {"carried_rounds", "rounds"});
  process.carried_bytes = number(object, {"carried_bytes", "bytes"});
  process.partial_rounds = number(object, {"partial_rounds"});
  process.partial_blocks = number(object, {"partial_blocks"});
  process.early_rounds = number(object, {"early_rounds"});
  process.early_blocks = number(object, {"early_blocks"});
  process.last_drift_ppm = number(object, {"last_drift_ppm"});
  process.fallbacks = number(object, {"fallbacks"});
  process.fallen_back_ops = number(object, {"fallen_back_ops"});
  process.recovered_rounds = number(object, {"recovered_rounds"});
  process.averages = number(object, {"averages"});
  process.failed_ops = number(object, {"failed_ops"});
  process.passed_through = reasons(object, "passed_through");
  process.cause = text(object, "fallback_cause", kMaxCauseBytes);
  const auto attached = object.find("attached");
  process.attached = attached != object.end() && attached->is_boolean() ? attached->get<bool>()
                                                                        : process.carried_ops > 0;
  return process;
}

std::uint64_t total_passed(const ProcessReport& process) {
  std::uint64_t total = 0;
  for (const auto& [reason, count] : process.passed_through) total += count;
  return total;
}

/// "device 2, reduce_op 1".
std::string counts_text(const ReasonCounts& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

/// The additional counts of ranks that exchange updates, each after ", ".
std::string exchange_text(const ProcessReport& process) {
  constexpr double kPpmPerPercent = 1e4;
  std::string text;
  if (process.early_rounds > 0) {
    text += fmt::format(
        ", {} ended before some update of another rank, which a later one takes ({})",
        count_text(process.early_rounds, "round"), count_text(process.early_blocks, "block"));
  }
  if (process.averages > 0)
    text += fmt::format(", {} of the parameters", count_text(process.averages, "exact mean"));
  if (process.last_drift_ppm > 0) {
    text += fmt::format(", last drift {:.3g} %",
                        static_cast<double>(process.last_drift_ppm) / kPpmPerPercent);
  }
  return text;
}

std::string process_line(const ProcessReport& process) {
  std::string line = fmt::format("  pid {}", process.pid);
  if (!process.rank.empty()) line += fmt::format(", rank {}", process.rank);
  line += fmt::format(": {}; carried {} (", process.attached ? "attached" : "not attached",
                      count_text(process.carried_ops, "collective"));
  if (!process.carried.empty()) line += counts_text(process.carried) + "; ";
  line += fmt::format("{}, {}), passed through {}", count_text(process.carried_rounds, "round"),
                      bytes_text(process.carried_bytes), total_passed(process));
  if (!process.passed_through.empty()) line += " (" + counts_text(process.passed_through) + ")";
  if (process.partial_rounds > 0) {
    line += fmt::format(", {} partial in {}", count_text(process.partial_rounds, "round"),
                        count_text(process.partial_blocks, "block"));
  }
  line += exchange_text(process);
  if (process.fallbacks > 0 || process.fallen_back_ops > 0) {
    line += fmt::format(", fell back {} for {}", count_text(process.fallbacks, "time"),
                        count_text(process.fallen_back_ops, "collective"));
  }
  if (process.recovered_rounds > 0) {
    line += fmt::format(", recovered {}", count_text(process.recovered_rounds, "round"));
  }
  if (process.failed_ops > 0) line += fmt::format(", failed {}", process.failed_ops);
  if (!process.cause.empty()) line += fmt::format(": {}", process.cause);
  return line + "\n";
}

/// The collectives that were passed through, summed over all processes.
ReasonCounts all_passed(const RunReport& report) {
  ReasonCounts all;
  for (const ProcessReport& process : report.processes)
    for (const auto& [reason, count] : process.passed_through) all[reason] += count;
  return all;
}

std::string headline(const RunReport& report, const std::string& ending) {
  const std::size_t attached = static_cast<std::size_t>(
      std::count_if(report.processes.begin(), report.processes.end(),
                    [](const ProcessReport& process) { return process.attached; }));
  if (report.processes.empty() && !ending.empty())
    return fmt::format("not attached: no process reported. The command {}", ending);
  if (report.processes.empty()) {
    return "not attached: no process reported. Either none loaded a libtorch that gradplane knows, "
           "or it was killed, or it is statically linked or privileged, where LD_PRELOAD means "
           "nothing. --verbose tells more";
  }
  if (report.carried()) {
    std::string text = fmt::format("attached: {} of {} reporting processes went through gradplane",
                                   attached, report.processes.size());
    const auto fell_back =
        std::count_if(report.processes.begin(), report.processes.end(),
                      [](const ProcessReport& process) { return process.fallen_back_ops > 0; });
    if (fell_back > 0) text += fmt::format("; in {} of them some collectives fell back", fell_back);
    return text;
  }
  if (attached > 0) return "attached, but nothing was carried: no collective was suitable";
  const ReasonCounts passed = all_passed(report);
  const bool any_cause = std::any_of(report.processes.begin(), report.processes.end(),
                                     [](const ProcessReport& p) { return !p.cause.empty(); });
  if (passed.size() == 1 && passed.contains("one_rank") && !any_cause) {
    return "not attached: every process group has one rank (WORLD_SIZE), so there is nothing to "
           "send; gradplane carries groups of two ranks and more";
  }
  const bool fell_back = std::any_of(report.processes.begin(), report.processes.end(),
                                     [](const ProcessReport& p) { return p.fallen_back_ops > 0; });
  if (passed.empty() && fell_back) return "not attached: every collective fell back";
  if (passed.empty()) return "not attached: no collective was carried, and none passed through";
  return "not attached: every collective went to the original";
}

}  // namespace

bool RunReport::carried() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](const ProcessReport& process) { return process.carried_ops > 0; });
}

RunReport parse_run_report(std::string_view text) {
  RunReport report;
  if (text.size() > kMaxRunReportBytes) text = text.substr(0, kMaxRunReportBytes);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    auto process = report.processes.size() < kMaxRunProcesses ? parse_line(line) : std::nullopt;
    if (process) {
      report.processes.push_back(std::move(*process));
    } else {
      ++report.unreadable_lines;
    }
  }
  return report;
}

std::string verdict_text(const RunReport& report, const std::string& ending) {
  std::string out = fmt::format("gradplane: {}\n", headline(report, ending));
  for (const ProcessReport& process : report.processes) out += process_line(process);
  if (report.unreadable_lines > 0) {
    out += fmt::format("  {} of the report could not be read\n",
                       count_text(report.unreadable_lines, "line"));
  }
  return out;
}

}  // namespace gradplane::telemetry
