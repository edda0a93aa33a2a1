// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/shared_sections.h"

#include <array>
#include <span>
#include <string_view>

#include "control/config/config.h"
#include "dataplane/base/siphash.h"

namespace gradplane::config {
namespace {

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
    std::string values;
    for (const Setting& setting : settings) {
      if (is_in(setting.key, name)) values += setting.key + "=" + setting.value + "\n";
    }
    const std::uint64_t hash = siphash24({}, std::as_bytes(std::span(values)));
    sections.push_back({std::string(name), static_cast<std::uint16_t>(hash)});
  }
  return sections;
}

}  // namespace gradplane::config
