// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/environment.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradplane::cli {
namespace {

constexpr std::string_view kLibrary = "libgradplane_preload.so";

bool defines(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

}  // namespace

void set(Environment& environment, std::string_view name, std::string_view value) {
  std::erase_if(environment, [name](const std::string& entry) { return defines(entry, name); });
  environment.push_back(fmt::format("{}={}", name, value));
}

std::string_view value_of(const Environment& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (defines(entry, name)) return std::string_view(entry).substr(name.size() + 1);
  }
  return {};
}

Result<Environment> run_environment(Environment base, const RunSettings& settings) {
  if (settings.preload_library.find_first_of(" :") != std::string::npos) {
    return Error{
        fmt::format("{}: LD_PRELOAD takes no path with a blank or a colon; install "
                    "gradplane elsewhere",
                    settings.preload_library)};
  }
  std::string preload = settings.preload_library;
  const std::string_view others = value_of(base, "LD_PRELOAD");
  if (!others.empty()) preload += fmt::format(":{}", others);
  set(base, "LD_PRELOAD", preload);
  set(base, "GRADPLANE_SOCKET", settings.socket_path);
  if (value_of(base, "GRADPLANE_RUN_ID").empty()) set(base, "GRADPLANE_RUN_ID", settings.run_id);
  if (!settings.job.empty()) set(base, "GRADPLANE_JOB", settings.job);
  if (!settings.report_path.empty()) set(base, "GRADPLANE_REPORT", settings.report_path);
  if (settings.require) set(base, "GRADPLANE_REQUIRE", "1");
  if (settings.verbose) set(base, "GRADPLANE_VERBOSE", "1");
  return base;
}

std::vector<std::string> preload_candidates(const Environment& environment,
                                            std::string_view program_directory) {
  const std::string_view chosen = value_of(environment, "GRADPLANE_LIB_DIR");
  if (!chosen.empty()) return {fmt::format("{}/{}", chosen, kLibrary)};
  return {fmt::format("{}/../lib/gradplane/{}", program_directory, kLibrary),
          fmt::format("{}/../../trainer-shim/preload/{}", program_directory, kLibrary)};
}

std::vector<AdapterBuilder> adapter_builder_candidates(const Environment& environment,
                                                       std::string_view program_directory) {
  constexpr std::string_view kBuilder = "trainer-shim/dist/build_adapter.py";
  std::vector<AdapterBuilder> candidates = {
      {fmt::format("{}/../share/gradplane/source/{}", program_directory, kBuilder),
       fmt::format("{}/../lib/gradplane", program_directory)},
      {fmt::format("{}/../../../{}", program_directory, kBuilder),
       fmt::format("{}/../../trainer-shim/torch", program_directory)}};
  const std::string_view chosen = value_of(environment, "GRADPLANE_LIB_DIR");
  if (!chosen.empty()) {
    for (AdapterBuilder& candidate : candidates) candidate.adapter_folder = chosen;
  }
  return candidates;
}

}  // namespace gradplane::cli
