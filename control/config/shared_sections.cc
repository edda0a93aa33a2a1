// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/shared_sections.h"

#include <array>
#include <string_view>

#include "control/config/config.h"

namespace gradplane::config {
namespace {

/// FNV-1a.
std::uint32_t mix(std::uint32_t hash, std::string_view text) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 16777619U;
  }
  return hash;
}

/// Whether a key is in a section. Of nodes only those values count that all nodes must know; the
/// ports of other nodes matter to their owners. Other quotas are those of a node.
bool is_in(std::string_view key, std::string_view section) {
  if (section == "cluster.nodes") {
    return key.starts_with("cluster.nodes[") &&
           (key.ends_with("].name") || key.ends_with("].address") || key.ends_with("].aggregate"));
  }
  if (section == "quotas") return key == "quotas.jobs" || key == "quotas.wait";
  if (!key.starts_with(section)) return false;
  const std::string_view rest = key.substr(section.size());
  return rest.empty() || rest.front() == '.' || rest.front() == '[';
}

}  // namespace

std::vector<SharedSection> shared_sections(const std::vector<Setting>& settings) {
  constexpr std::array<std::string_view, 6> kNames = {"cluster.nodes", "plan",   "network",
                                                      "gather",        "quotas", "ranks.elastic"};
  std::vector<SharedSection> sections;
  for (const std::string_view name : kNames) {
    std::uint32_t hash = 2166136261U;
    for (const Setting& setting : settings) {
      if (!is_in(setting.key, name)) continue;
      for (const std::string_view part : {std::string_view(setting.key), std::string_view("="),
                                          std::string_view(setting.value), std::string_view("\n")})
        hash = mix(hash, part);
    }
    sections.push_back({std::string(name), static_cast<std::uint16_t>(hash ^ (hash >> 16))});
  }
  return sections;
}

}  // namespace gradplane::config
