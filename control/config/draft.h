// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/config/config.h"
#include "control/config/option_table.h"
#include "control/config/tree.h"

namespace gradplane::config {

/// An option that the file sets.
struct Found {
  const Option* option = nullptr;
  Value value;
  std::size_t line = 0;
};

/// A file on its way from text to Config: what it sets, by full key ("cluster.nodes[2].port.mtu"),
/// and the errors found so far.
struct Draft {
  std::string file;
  std::map<std::string, Found> found;
  std::map<std::string, std::size_t> section_lines;
  /// Keys whose values were refused; there is no second complaint about them.
  std::set<std::string> failed;
  std::size_t node_count = 0;
  std::size_t tree_count = 0;
  std::size_t site_count = 0;
  std::size_t link_count = 0;

  Config config;
  std::vector<plan::Site> sites;  // network.sites
  NodeReferences references;
  std::vector<ConfigError> errors;
  std::vector<ConfigError> warnings;

  bool has(const std::string& key) const { return found.contains(key); }
  bool mentions(const std::string& key) const { return has(key) || failed.contains(key); }
  /// Complains about a key, with its line and value. A missing key has the line of its section.
  void error(const std::string& key, std::string reason);
  /// The same for a setting that is accepted, but probably not meant.
  void warn(const std::string& key, const std::string& reason);
  ConfigError about(const std::string& key, std::string reason) const;
};

/// A section that is a list whose entries have options of their own.
struct EntryList {
  OptionScope scope = OptionScope::kNode;
  std::string_view key;
  std::size_t max_count = 0;
  std::string_view items;  // "nodes, each with name and address"
  std::size_t Draft::*count = nullptr;
};
std::span<const EntryList> entry_lists();
/// The list whose entries have the options of this scope, or null.
const EntryList* list_of(OptionScope scope);
/// "plan.trees[2].root": the full key of an option in an entry of the list of that scope.
std::string entry_key(OptionScope scope, std::size_t index, std::string_view path);
std::string tree_key(std::size_t index, std::string_view path);
/// "cluster.nodes[2]".
std::string node_section(std::size_t index);
/// The full key of an option of scope kNode, or of a node's override of one of scope kPort.
std::string node_key(std::size_t index, std::string_view path);
/// The key that decides a port option of a node: its override when the file has one.
std::string port_key(const Draft& draft, std::size_t index, std::string_view path);

/// Fills draft.found from the document; unknown keys and unacceptable values become errors.
void collect(const Tree& document, Draft& draft);

/// Fills config.network from the options and the nodes.
void resolve_network(Draft& draft);

/// Whether the file sets a key to something else than its default. A default that is written out
/// is accepted everywhere.
bool is_set(const Draft& draft, const std::string& key);

/// Parts of check_consistency(), each in the file with the options that it checks.
void check_trees(Draft& draft);
void check_grants(Draft& draft);
void check_multicast(Draft& draft);
void check_training(Draft& draft);

/// Checks options against each other. draft.config is complete.
void check_consistency(Draft& draft);

/// A value as errors show it: bounded in length, printable, and hidden if it is a secret.
std::string shown_value(const Option* option, std::string_view text);

}  // namespace gradplane::config
