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

/// Gives a variable a value, whether it has one or not.
void set(Environment& environment, std::string_view name, std::string_view value);

/// `base` with LD_PRELOAD prepended to what is preloaded already, and GRADPLANE_* set. The dynamic
/// linker separates libraries by blanks and colons: a path that holds one is an error.
Result<Environment> run_environment(Environment base, const RunSettings& settings);

/// Where libgradplane_preload.so may be, best first: GRADPLANE_LIB_DIR alone when it is set, else
/// beside the installed or the built program.
std::vector<std::string> preload_candidates(const Environment& environment,
                                            std::string_view program_directory);

/// A program that builds adapters, and where `gradplane run` would find what it builds.
struct AdapterBuilder {
  std::string script;
  std::string adapter_folder;
};

/// Where that program may be, best first: beside the installed program, or in the checkout in whose
/// folder `build` the program was built. GRADPLANE_LIB_DIR is the folder of adapters when it is
/// set.
std::vector<AdapterBuilder> adapter_builder_candidates(const Environment& environment,
                                                       std::string_view program_directory);

}  // namespace gradplane::cli
