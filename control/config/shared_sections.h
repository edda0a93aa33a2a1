// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradplane::config {

struct Setting;

/// A section of which the coordinator's values count. Any node may coordinate one day, so its
/// values should be the same on every node.
struct SharedSection {
  std::string name;  // "plan"
  /// Of all values in force. Nodes with different values mostly have different digests, which is
  /// enough for a warning.
  std::uint16_t digest = 0;
};

/// The digests of all such sections, always of the same ones in the same order.
std::vector<SharedSection> shared_sections(const std::vector<Setting>& settings);

}  // namespace gradplane::config
