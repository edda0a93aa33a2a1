// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "control/config/draft.h"
#include "control/config/settings.h"
#include "dataplane/base/assert.h"

namespace gradplane::config {
namespace {

constexpr std::size_t kMaxHostNameBytes = 256;

/// Stores the value that the file has for an option, else the default.
void apply(const Draft& draft, const Option& option, const std::string& key, const Target& target) {
  if (const auto it = draft.found.find(key); it != draft.found.end()) {
    option.store(target, it->second.value);
    return;
  }
  if (option.default_text.empty() || !is_scalar(option)) return;
  const auto value = parse_value(option, option.default_text);
  GP_ASSERT(value.has_value());
  option.store(target, *value);
}

void apply_node(Draft& draft, std::size_t index, const PortConfig& common) {
  NodeConfig& node = draft.config.cluster.nodes[index];
  node.port = common;
  const Target target{&draft.config, &draft.references, &node.port, &node};
  for (const Option& option : options()) {
    const std::string key = node_key(index, option.path);
    if (option.scope == OptionScope::kNode) {
      apply(draft, option, key, target);
      if (option.required && !draft.mentions(key)) {
        draft.error(key, "missing; accepted: " + accepted(option));
      }
    } else if (option.scope == OptionScope::kPort && draft.has(key)) {
      apply(draft, option, key, target);
    }
  }
}

/// Stores the options of one entry of a list.
void apply_entry(Draft& draft, OptionScope scope, std::size_t index, Target target) {
  target.config = &draft.config;
  target.references = &draft.references;
  for (const Option& option : options()) {
    if (option.scope != scope) continue;
    const std::string key = entry_key(scope, index, option.path);
    apply(draft, option, key, target);
    if (option.required && !draft.mentions(key)) {
      draft.error(key, "missing; accepted: " + accepted(option));
    }
  }
}

void apply_all(Draft& draft) {
  PortConfig common;
  const Target target{&draft.config, &draft.references, &common, nullptr};
  for (const Option& option : options()) {
    if (option.scope == OptionScope::kGlobal || option.scope == OptionScope::kPort) {
      apply(draft, option, std::string(option.path), target);
    }
  }
  if (draft.node_count == 0 && !draft.failed.contains("cluster.nodes")) {
    draft.error("cluster.nodes", "missing; a list of nodes with name and address is required");
    if (!draft.mentions("port.kind")) draft.error("port.kind", "missing; it has no default");
  }
  draft.config.cluster.nodes.resize(draft.node_count);
  for (std::size_t i = 0; i < draft.node_count; ++i) apply_node(draft, i, common);
  draft.config.plan.trees.resize(draft.tree_count);
  draft.references.trees.resize(draft.tree_count);
  for (std::size_t i = 0; i < draft.tree_count; ++i) {
    apply_entry(
        draft, OptionScope::kTree, i,
        {.tree = &draft.config.plan.trees[i], .tree_references = &draft.references.trees[i]});
  }
  draft.sites.resize(draft.site_count);
  for (std::size_t i = 0; i < draft.site_count; ++i)
    apply_entry(draft, OptionScope::kSite, i, {.site = &draft.sites[i]});
  draft.references.links.resize(draft.link_count);
  for (std::size_t i = 0; i < draft.link_count; ++i)
    apply_entry(draft, OptionScope::kLink, i, {.link = &draft.references.links[i]});
}

api::NodeId find_node(const Draft& draft, const std::string& name) {
  const auto& nodes = draft.config.cluster.nodes;
  const auto it = std::find_if(nodes.begin(), nodes.end(),
                               [&](const NodeConfig& node) { return node.name == name; });
  return it == nodes.end() ? api::kNoNode : static_cast<api::NodeId>(it - nodes.begin());
}

std::string node_names(const Draft& draft) {
  constexpr std::size_t kMaxNamed = 8;
  std::string names;
  for (std::size_t i = 0; i < draft.node_count && i < kMaxNamed; ++i) {
    names += (i == 0 ? "" : ", ") + draft.config.cluster.nodes[i].name;
  }
  return draft.node_count > kMaxNamed ? names + ", ..." : names;
}

std::string local_host_name() {
  std::array<char, kMaxHostNameBytes> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

/// Decides who this host is; returns where the name came from.
std::string resolve_self(Draft& draft, const ParseOptions& options) {
  std::string origin = "--node";
  std::string name = options.node_override;
  if (name.empty() && draft.mentions("node.name")) {
    name = draft.references.self;
    origin = "node.name";
  }
  if (name.empty()) {
    name = options.host_name.empty() ? local_host_name() : options.host_name;
    origin = "host name";
  }
  draft.config.self = find_node(draft, name);
  const bool guessed = origin == "host name";
  if (draft.config.self != api::kNoNode || draft.node_count == 0 ||
      draft.failed.contains("node.name") || (guessed && options.any_node)) {
    return origin;
  }
  std::string reason = fmt::format("no such node in cluster.nodes ({})", node_names(draft));
  if (guessed) reason += "; say who this host is with --node NAME or node.name";
  if (origin == "node.name") {
    draft.error("node.name", reason);
  } else {
    draft.errors.push_back({draft.file, 0, origin, shown_value(nullptr, name), reason});
  }
  return origin;
}

void resolve_references(Draft& draft) {
  Config& config = draft.config;
  const auto resolve = [&draft](const char* key, const std::string& name, api::NodeId& id) {
    id = find_node(draft, name);
    if (id == api::kNoNode && draft.node_count > 0) {
      draft.error(key, fmt::format("no such node in cluster.nodes ({})", node_names(draft)));
    }
  };
  if (draft.has("cluster.coordinator")) {
    resolve("cluster.coordinator", draft.references.coordinator, config.cluster.coordinator);
  }
  if (draft.has("plan.root")) {
    resolve("plan.root", draft.references.root, config.plan.root);
  } else if (config.plan.kind == PlanKind::kStar) {
    const auto& nodes = config.cluster.nodes;
    const auto it = std::find_if(nodes.begin(), nodes.end(),
                                 [](const NodeConfig& node) { return node.aggregate; });
    if (it != nodes.end()) config.plan.root = static_cast<api::NodeId>(it - nodes.begin());
  }
}

/// Replaces the names of nodes in plan.trees by their ids.
void resolve_trees(Draft& draft) {
  const auto resolve = [&draft](const std::string& key, const std::string& name) {
    const api::NodeId id = find_node(draft, name);
    if (id == api::kNoNode && draft.node_count > 0) {
      draft.error(key, fmt::format("no node '{}' in cluster.nodes ({})", name, node_names(draft)));
    }
    return id;
  };
  for (std::size_t i = 0; i < draft.tree_count; ++i) {
    PlanTree& tree = draft.config.plan.trees[i];
    const NodeReferences::Tree& names = draft.references.trees[i];
    if (!names.root.empty()) tree.root = resolve(tree_key(i, "root"), names.root);
    for (const SectionEntry& line : names.parents) {
      const std::string key = tree_key(i, "parents");
      tree.parents.emplace_back(resolve(key, line.key), resolve(key, line.name));
    }
  }
}

ParsedConfig only_error(const std::string& file, std::string reason) {
  ParsedConfig parsed;
  parsed.errors.push_back({file, 0, "", std::nullopt, std::move(reason)});
  return parsed;
}

}  // namespace

std::string ConfigError::text() const {
  std::string out = file;
  if (line > 0) out += fmt::format(":{}", line);
  if (!key.empty()) out += ": " + key;
  if (value) out += fmt::format(": value '{}'", *value);
  return out + ": " + reason;
}

ParsedConfig parse_config(std::string_view text, const std::string& file_name,
                          const ParseOptions& options) {
  if (text.size() > kMaxConfigBytes) {
    return only_error(file_name, fmt::format("longer than {} bytes", kMaxConfigBytes));
  }
  ParsedConfig parsed;
  Draft draft;
  draft.file = file_name;
  const Tree document = read_tree(text, file_name, draft.errors);
  const bool readable = document.kind != Tree::Kind::kNull || draft.errors.empty();
  if (readable) {
    collect(document, draft);
    apply_all(draft);
    const std::string self_origin = resolve_self(draft, options);
    resolve_references(draft);
    resolve_trees(draft);
    resolve_network(draft);
    check_consistency(draft);
    parsed.settings = make_settings(draft, self_origin);
    draft.config.shared_sections = shared_sections(parsed.settings);
  }
  std::stable_sort(draft.errors.begin(), draft.errors.end(),
                   [](const ConfigError& a, const ConfigError& b) { return a.line < b.line; });
  parsed.errors = std::move(draft.errors);
  parsed.warnings = std::move(draft.warnings);
  if (parsed.errors.empty()) parsed.config = std::move(draft.config);
  return parsed;
}

ParsedConfig load_config(const std::string& path, const ParseOptions& options) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return only_error(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  std::string text(kMaxConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return only_error(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_config(text, path, options);
}

}  // namespace gradplane::config
