// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "control/config/config.h"

namespace gradplane::config {

struct TreeEntry;

/// A YAML document as plain values with line numbers, without types of the YAML library.
struct Tree {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::size_t line = 0;  // from 1
  std::string scalar;
  std::vector<Tree> items;
  std::vector<TreeEntry> entries;  // in file order, no key twice
};

struct TreeEntry {
  std::string key;
  std::size_t line = 0;  // from 1
  Tree value;
};

/// Reads one document. Adds an error if the text is no YAML, has a key twice, or is deeper or
/// larger than any configuration, and still returns the rest.
Tree read_tree(std::string_view text, const std::string& file_name,
               std::vector<ConfigError>& errors);

}  // namespace gradplane::config
