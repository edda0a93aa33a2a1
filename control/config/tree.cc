// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/tree.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace gradplane::config {
namespace {

// Deeper than any key of ours. It bounds the recursion when an anchor contains itself.
constexpr std::size_t kMaxDepth = 16;
// Enough for kMaxNodes entries that override every option. It bounds the expansion of anchors.
constexpr std::size_t kMaxValues = kMaxNodes * 64;

std::size_t line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 0 : static_cast<std::size_t>(mark.line) + 1;
}

class TreeBuilder {
 public:
  TreeBuilder(const std::string& file_name, std::vector<ConfigError>& errors)
      : file_name_(file_name), errors_(errors) {}

  Tree build(const YAML::Node& node, const std::string& path, std::size_t depth) {
    Tree tree;
    tree.line = line_of(node.Mark());
    if (depth > kMaxDepth || ++values_count_ > kMaxValues) {
      if (!too_large_) error(tree.line, path, "deeper or larger than any configuration");
      too_large_ = true;
      return tree;
    }
    if (node.IsScalar()) {
      tree.kind = Tree::Kind::kScalar;
      tree.scalar = node.Scalar();
    } else if (node.IsSequence()) {
      tree.kind = Tree::Kind::kList;
      add_items(node, path, depth, tree);
    } else if (node.IsMap()) {
      tree.kind = Tree::Kind::kMap;
      add_entries(node, path, depth, tree);
    }
    return tree;
  }

 private:
  void error(std::size_t line, const std::string& key, std::string reason) {
    errors_.push_back({file_name_, line, key, std::nullopt, std::move(reason)});
  }

  void add_items(const YAML::Node& node, const std::string& path, std::size_t depth, Tree& tree) {
    for (const YAML::Node& item : node) {
      if (too_large_) return;
      tree.items.push_back(build(item, fmt::format("{}[{}]", path, tree.items.size()), depth + 1));
    }
  }

  void add_entries(const YAML::Node& node, const std::string& path, std::size_t depth, Tree& tree) {
    for (const auto& pair : node) {
      if (too_large_) return;
      const std::size_t line = line_of(pair.first.Mark());
      if (!pair.first.IsScalar()) {
        error(line, path, "a key must be a plain word");
        continue;
      }
      const std::string key = pair.first.Scalar();
      const std::string key_path = path.empty() ? key : path + "." + key;
      if (const TreeEntry* first = find(tree, key)) {
        error(line, key_path, fmt::format("given twice; the first is in line {}", first->line));
        continue;
      }
      tree.entries.push_back({key, line, build(pair.second, key_path, depth + 1)});
    }
  }

  static const TreeEntry* find(const Tree& tree, const std::string& key) {
    for (const TreeEntry& entry : tree.entries) {
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }

  const std::string& file_name_;
  std::vector<ConfigError>& errors_;
  std::size_t values_count_ = 0;
  bool too_large_ = false;
};

}  // namespace

Tree read_tree(std::string_view text, const std::string& file_name,
               std::vector<ConfigError>& errors) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      errors.push_back({file_name, line_of(documents[1].Mark()), "", std::nullopt,
                        "one document is accepted; a second one begins here"});
    }
    if (documents.empty()) return {};
    return TreeBuilder(file_name, errors).build(documents.front(), "", 0);
  } catch (const YAML::Exception& e) {
    errors.push_back({file_name, line_of(e.mark), "", std::nullopt, "not YAML: " + e.msg});
  }
  return {};
}

}  // namespace gradplane::config
