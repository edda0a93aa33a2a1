// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/settings.h"

#include <fmt/format.h>

#include <set>

namespace gradplane::config {
namespace {

std::string as_yaml(const Option& option, std::string_view text) {
  switch (option.type) {
    case OptionType::kSecret:
      return "\"<hidden>\"";
    case OptionType::kNodeName:
    case OptionType::kPath:
    case OptionType::kInterface:
    case OptionType::kGroup:
      return fmt::format("\"{}\"", text);
    default:
      return std::string(text);
  }
}

std::string place_of(const Draft& draft, const Found& found) {
  return fmt::format("{}:{}", draft.file, found.line);
}

Setting setting_of(const Draft& draft, const Option& option, const std::string& key) {
  if (const auto it = draft.found.find(key); it != draft.found.end()) {
    return {key, as_yaml(option, it->second.value.text), place_of(draft, it->second)};
  }
  if (option.default_text.empty()) return {key, "", std::string(option.default_note)};
  return {key, as_yaml(option, option.default_text), "default"};
}

/// Fills in the node that a default has chosen, for options whose default is a node.
void fill_node_name(const Draft& draft, api::NodeId id, Setting& setting) {
  if (!setting.value.empty() || id >= draft.node_count) return;
  setting.value = fmt::format("\"{}\"", draft.config.cluster.nodes[id].name);
  setting.origin = "default: " + setting.origin;
}

/// Fills in defaults that depend on other values.
void refine(const Draft& draft, const std::string& self_origin, Setting& setting) {
  const Config& config = draft.config;
  if (setting.key == "node.name" && config.self < draft.node_count) {
    setting.value = fmt::format("\"{}\"", config.cluster.nodes[config.self].name);
    if (self_origin != "node.name") setting.origin = self_origin;
  } else if (setting.key == "cluster.coordinator") {
    fill_node_name(draft, config.cluster.coordinator, setting);
  } else if (setting.key == "plan.root") {
    fill_node_name(draft, config.plan.root, setting);
  } else if (setting.key == "gather.slack" && setting.origin == "default" && config.gather.slack) {
    setting.origin += fmt::format("; with gather.preset ltp {} ms",
                                  config.gather.slack->count_ns() / Duration::ms(1).count_ns());
  } else if (setting.key == "block.bytes" && setting.value == "auto") {
    setting.origin += fmt::format("; here {} B", config.block_bytes);
  } else if (setting.key == "port.mtu" && setting.value == "auto" &&
             config.self < draft.node_count &&
             !draft.found.contains(node_key(config.self, setting.key))) {
    setting.origin += fmt::format("; here {}", config.port().mtu_bytes);
  } else if (setting.key == "rounds.bytes" && setting.value == "auto") {
    setting.origin += fmt::format("; here {} KiB", config.round_bytes >> 10);
  }
}

/// Adds to a common port setting that the entry of this host's node overrides it.
void note_override(const Draft& draft, Setting& setting) {
  if (draft.config.self >= draft.node_count) return;
  const auto it = draft.found.find(node_key(draft.config.self, setting.key));
  if (it == draft.found.end()) return;
  setting.origin +=
      fmt::format("; this node: {} ({})", it->second.value.text, place_of(draft, it->second));
}

void add_nodes(const Draft& draft, std::vector<Setting>& settings) {
  for (std::size_t i = 0; i < draft.node_count; ++i) {
    for (const Option& option : options()) {
      const std::string key = node_key(i, option.path);
      if (option.scope == OptionScope::kNode) settings.push_back(setting_of(draft, option, key));
    }
    for (const Option& option : options()) {
      const std::string key = node_key(i, option.path);
      if (option.scope == OptionScope::kPort && draft.has(key)) {
        settings.push_back(setting_of(draft, option, key));
      }
    }
  }
}

void add_entries(const Draft& draft, const EntryList& list, std::vector<Setting>& settings) {
  for (std::size_t i = 0; i < draft.*list.count; ++i) {
    for (const Option& option : options()) {
      if (option.scope != list.scope) continue;
      settings.push_back(setting_of(draft, option, entry_key(list.scope, i, option.path)));
    }
  }
}

}  // namespace

std::vector<Setting> make_settings(const Draft& draft, const std::string& self_origin) {
  std::vector<Setting> settings;
  std::set<OptionScope> added;
  for (const Option& option : options()) {
    if (const EntryList* list = list_of(option.scope)) {
      // All entries of a list come where the table has the first of their options.
      if (!added.insert(option.scope).second) continue;
      if (option.scope == OptionScope::kNode)
        add_nodes(draft, settings);
      else
        add_entries(draft, *list, settings);
      continue;
    }
    Setting setting = setting_of(draft, option, std::string(option.path));
    refine(draft, self_origin, setting);
    if (option.scope == OptionScope::kPort) note_override(draft, setting);
    settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace gradplane::config
