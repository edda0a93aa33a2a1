// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

namespace gradplane::cli {

struct CheckConfigOptions {
  std::vector<std::string> files;
  std::string node;  // empty: no host in particular
  bool effective = false;
};

/// Checks every file; errors go to standard error, one a line. Returns an exit code.
int check_config(const CheckConfigOptions& options);

}  // namespace gradplane::cli
