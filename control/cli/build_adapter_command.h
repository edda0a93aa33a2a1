// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

namespace gradplane::cli {

struct BuildAdapterOptions {
  std::string python = "python3";     // the interpreter whose PyTorch gets an adapter
  std::string output;                 // a folder; empty: where `gradplane run` finds adapters
  std::vector<std::string> includes;  // folders with headers that are missing elsewhere
};

/// Replaces this process by the program that builds an adapter. Returns only when that fails, with
/// the exit code to use.
int build_adapter(const BuildAdapterOptions& options);

}  // namespace gradplane::cli
