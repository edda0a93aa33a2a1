// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/build_adapter_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "control/cli/child.h"
#include "control/cli/environment.h"
#include "control/cli/exit_codes.h"
#include "control/cli/output.h"

namespace gradplane::cli {

int build_adapter(const BuildAdapterOptions& options) {
  const Environment environment = own_environment();
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string tried;
  for (const AdapterBuilder& builder :
       adapter_builder_candidates(environment, program.parent_path().string())) {
    const auto script = std::filesystem::canonical(builder.script, error);
    if (error || access(script.c_str(), R_OK) != 0) {
      tried += (tried.empty() ? "" : ", ") + builder.script;
      continue;
    }
    const std::string& folder = options.output.empty() ? builder.adapter_folder : options.output;
    std::vector<std::string> command = {options.python, script.string(), "--output", folder};
    for (const std::string& include : options.includes) {
      command.insert(command.end(), {"--include", include});
    }
    return exec_command(command, environment);
  }
  complain(
      fmt::format("the sources of adapters are not there (looked for {}); install them with "
                  "`meson install`, or run gradplane of a build in a checkout",
                  tried));
  return kExitFailure;
}

}  // namespace gradplane::cli
