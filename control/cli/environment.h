// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.h"

/// The environment that `gradplane run` gives to its command. Pure.
namespace gradplane::cli {

/// "NAME=value", as in environ.
using Environment = std::vector<std::string>;

struct RunSettings {
  std::string preload_library;
  std::string socket_path;
  /// Kept when the environment has one already, so that the hosts of a job can share it.
  std::string run_id;
  std::string job;          // its name; empty: leave GRADPLANE_JOB as it is
  std::string report_path;  // empty: leave GRADPLANE_REPORT as it is
  bool require = false;
  bool verbose = false;
};

/// The value of a variable; empty when it is not set.
std::string_view value_of(const Environment& environment, std::string_view name);

/// Sets a variable, and replaces its value if it has one.
void set(Environment& environment, std::string_view name, std::string_view value);

/// `base` with GRADPLANE_* set and our library in front of those that LD_PRELOAD has already. A
/// path with a blank or a colon is an error, because the dynamic linker would split it there.
Result<Environment> run_environment(Environment base, const RunSettings& settings);

/// Where libgradplane_preload.so may be, best first: only GRADPLANE_LIB_DIR when it is set, else
/// folders beside the installed or the built program.
std::vector<std::string> preload_candidates(const Environment& environment,
                                            std::string_view program_directory);

/// A program that builds adapters, and the folder where `gradplane run` looks for adapters.
struct AdapterBuilder {
  std::string script;
  std::string adapter_folder;
};

/// Where the builder may be, best first: beside the installed program, or in the checkout whose
/// folder `build` has this program. GRADPLANE_LIB_DIR, when it is set, is the folder of adapters.
std::vector<AdapterBuilder> adapter_builder_candidates(const Environment& environment,
                                                       std::string_view program_directory);

}  // namespace gradplane::cli
