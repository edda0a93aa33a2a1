// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/run.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "control/cli/child.h"
#include "control/cli/exit_codes.h"
#include "control/cli/launcher.h"
#include "control/cli/output.h"
#include "control/config/config.h"
#include "control/telemetry/run_report.h"

namespace gradplane::cli {
namespace {

namespace fs = std::filesystem;

std::string random_run_id() {
  std::array<unsigned char, 8> bytes{};
  if (getentropy(bytes.data(), bytes.size()) != 0) return fmt::format("pid-{}", getpid());
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

Result<std::string> find_preload_library(const Environment& environment) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const auto candidates = preload_candidates(environment, program.parent_path().string());
  std::string tried;
  for (const std::string& candidate : candidates) {
    const fs::path path = fs::canonical(candidate, error);
    if (!error && access(path.c_str(), R_OK) == 0) return path.string();
    tried += (tried.empty() ? "" : ", ") + candidate;
  }
  return Error{
      fmt::format("libgradplane_preload.so is not there (looked for {}); build or install "
                  "trainer-shim, or set GRADPLANE_LIB_DIR",
                  tried)};
}

/// A private folder where every process of the run leaves its report. The destructor removes it.
class ReportFolder {
 public:
  ReportFolder() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    std::string name = ((error ? fs::path("/tmp") : parent) / "gradplane-run-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;
  ~ReportFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }

  bool ok() const { return !path_.empty(); }
  /// The value of GRADPLANE_REPORT; the shim replaces %p by the process id.
  std::string pattern() const { return path_ + "/%p.json"; }

  std::string read_all() const {
    std::string text;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(path_, error)) {
      if (!entry.is_regular_file(error) || text.size() > telemetry::kMaxRunReportBytes) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      text.append(std::istreambuf_iterator<char>(file), {});
      text += '\n';
    }
    return text;
  }

 private:
  std::string path_;
};

/// The user's own report file gets the lines too.
void append_to(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  if (!(file << text).flush()) complain(fmt::format("cannot write the report to {}", path));
}

std::string how_it_failed(const ChildEnd& end) {
  if (end.signal != 0) return fmt::format("was ended by signal {}", end.signal);
  if (end.exit_code != 0) return fmt::format("ended with exit status {}", end.exit_code);
  return {};
}

ChildEnd verify_run(const RunOptions& options, RunSettings settings, const Environment& base) {
  const std::string user_report(value_of(base, "GRADPLANE_REPORT"));
  if (user_report.find('%') != std::string::npos) {
    complain("--verify collects the reports itself: set GRADPLANE_REPORT to a path without %");
    return {.exit_code = kExitUsage, .signal = 0};
  }
  const ReportFolder folder;
  if (!folder.ok()) {
    complain(fmt::format("cannot make a temporary folder for the report: {}; set TMPDIR",
                         std::strerror(errno)));
    return {.exit_code = kExitFailure, .signal = 0};
  }
  settings.report_path = folder.pattern();
  const auto environment = run_environment(base, settings);
  if (!environment) {
    complain(environment.error().message);
    return {.exit_code = kExitFailure, .signal = 0};
  }
  ChildEnd end = run_child(options.command, environment.value());
  const std::string text = folder.read_all();
  const telemetry::RunReport report = telemetry::parse_run_report(text);
  fmt::print(stderr, "{}", telemetry::verdict_text(report, how_it_failed(end)));
  if (!user_report.empty()) append_to(user_report, text);
  if (end.signal == 0 && end.exit_code == 0 && !report.carried()) {
    end.exit_code = kExitNothingCarried;
  }
  return end;
}

/// Takes control.socket and ranks.require from the daemon's configuration. False if that is no
/// valid file; the errors have been printed.
bool heed_config(RunOptions& options) {
  const auto parsed = config::load_config(
      options.config_path, {.node_override = options.node, .host_name = {}, .any_node = true});
  for (const config::ConfigError& error : parsed.errors) complain(error.text());
  if (!parsed.ok()) return false;
  options.socket_path = parsed.config->control.socket;
  options.require = options.require || parsed.config->require;
  return true;
}

}  // namespace

ChildEnd run_command(RunOptions options) {
  if (!options.config_path.empty() && !heed_config(options)) {
    return {.exit_code = kExitFailure, .signal = 0};
  }
  Environment base = own_environment();
  if (!options.launcher.empty()) {
    const auto launched = launched_environment(base, options.launcher);
    if (!launched) {
      complain(launched.error().message);
      return {.exit_code = kExitUsage, .signal = 0};
    }
    base = launched.value();
  }
  const auto library = find_preload_library(base);
  if (!library) {
    complain(library.error().message);
    return {.exit_code = kExitFailure, .signal = 0};
  }
  const RunSettings settings{.preload_library = library.value(),
                             .socket_path = options.socket_path,
                             .run_id = random_run_id(),
                             .job = options.job,
                             .report_path = {},
                             .require = options.require,
                             .verbose = options.verbose};
  if (options.verify) return verify_run(options, settings, base);
  const auto environment = run_environment(base, settings);
  if (!environment) {
    complain(environment.error().message);
    return {.exit_code = kExitFailure, .signal = 0};
  }
  return {.exit_code = exec_command(options.command, environment.value()), .signal = 0};
}

}  // namespace gradplane::cli
