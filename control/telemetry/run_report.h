// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/telemetry/status.h"

/// The reports that the shim writes at the end of each process of a run: one JSON object a line, in
/// the file that GRADPLANE_REPORT names.
namespace gradplane::telemetry {

/// The most processes of one run that are read; others are counted as unreadable.
inline constexpr std::size_t kMaxRunProcesses = 4096;
/// The longest text of why a process fell back that the shim keeps, with the rank that said so.
inline constexpr std::size_t kMaxCauseBytes = 1100;
inline constexpr std::size_t kMaxRunReportBytes = std::size_t{16} << 20;

struct ProcessReport {
  std::uint64_t pid = 0;
  std::string rank;  // as the launcher named it; may be empty
  bool attached = false;
  std::uint64_t carried_ops = 0;
  ReasonCounts carried;  // carried_ops by operation
  std::uint64_t carried_rounds = 0;
  std::uint64_t carried_bytes = 0;
  std::uint64_t partial_rounds = 0;  // those of carried_rounds that have partial blocks
  std::uint64_t partial_blocks = 0;  // blocks that lack some rank's contribution
  std::uint64_t early_rounds = 0;    // ended, under bounded staleness, without some update
  std::uint64_t early_blocks = 0;
  std::uint64_t averages = 0;        // exact means of the parameters, where ranks exchange updates
  std::uint64_t last_drift_ppm = 0;  // from the last mean; 0: not measured, or below 1 ppm
  std::uint64_t fallbacks = 0;
  std::uint64_t fallen_back_ops = 0;
  std::uint64_t recovered_rounds = 0;
  std::uint64_t failed_ops = 0;
  ReasonCounts passed_through;
  std::string cause;  // why it fell back or did not attach; may be empty
};

struct RunReport {
  std::vector<ProcessReport> processes;
  std::size_t unreadable_lines = 0;

  bool carried() const;
};

/// Parses the reports of a run. It never fails: a line that is no report is only counted.
RunReport parse_run_report(std::string_view text);

/// Text for a person: whether gradplane carried anything, and what each process did. `ending` says
/// how the command failed, "ended with exit status 2"; empty if it did not.
std::string verdict_text(const RunReport& report, const std::string& ending = "");

}  // namespace gradplane::telemetry
