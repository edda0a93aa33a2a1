// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <algorithm>

#include "control/config/draft.h"
#include "control/config/join.h"
#include "control/config/nearest.h"

namespace gradplane::config {
namespace {

constexpr std::size_t kMaxShownBytes = 80;
/// Entries of network.links; each gives the network two links, one for each direction.
constexpr std::size_t kMaxLinkEntries = plan::kMaxLinks / 2;

constexpr EntryList kLists[] = {
    {OptionScope::kNode, "cluster.nodes", kMaxNodes, "nodes, each with name and address",
     &Draft::node_count},
    {OptionScope::kTree, "plan.trees", kMaxTrees, "trees, each with root and parents",
     &Draft::tree_count},
    {OptionScope::kSite, "network.sites", plan::kMaxSites, "sites, each with a name",
     &Draft::site_count},
    {OptionScope::kLink, "network.links", kMaxLinkEntries, "links, each with from, to and rate",
     &Draft::link_count},
};

/// A place in the file where keys stand: the top level, or one entry of a list.
struct Place {
  OptionScope scope = OptionScope::kGlobal;
  std::string prefix;  // "" or "cluster.nodes[2]."

  bool at_top() const { return scope == OptionScope::kGlobal; }
  bool knows(const Option& option) const {
    const bool may_have_port = at_top() || scope == OptionScope::kNode;
    return option.scope == scope || (option.scope == OptionScope::kPort && may_have_port);
  }
};

const EntryList* find_list(std::string_view path) {
  const auto found = std::find_if(std::begin(kLists), std::end(kLists),
                                  [path](const EntryList& list) { return list.key == path; });
  return found == std::end(kLists) ? nullptr : found;
}

const Option* find_option(const Place& place, std::string_view path) {
  for (const Option& option : options()) {
    if (place.knows(option) && option.path == path) return &option;
  }
  return nullptr;
}

/// Every key and section that is allowed at a place, as paths below its prefix.
std::vector<std::string> known_paths(const Place& place) {
  std::vector<std::string> paths;
  const auto add = [&paths](std::string_view path) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.emplace_back(path);
  };
  for (const Option& option : options()) {
    if (!place.knows(option)) continue;
    for (std::size_t dot = option.path.find('.'); dot != std::string_view::npos;
         dot = option.path.find('.', dot + 1)) {
      add(option.path.substr(0, dot));
    }
    add(option.path);
  }
  if (place.at_top()) {
    for (const EntryList& list : kLists) add(list.key);
  }
  return paths;
}

bool is_section(const Place& place, const std::string& path) {
  const std::string start = path + ".";
  return std::any_of(options().begin(), options().end(), [&](const Option& option) {
    return place.knows(option) && option.path.starts_with(start);
  });
}

std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

std::string_view leaf_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string unknown_key_reason(const Place& place, const std::string& path) {
  const std::string_view leaf = leaf_of(path);
  std::size_t best = 2 + leaf.size() / 4;
  std::string nearest;
  std::string here;
  for (const std::string& known : known_paths(place)) {
    const bool sibling = parent_of(known) == parent_of(path);
    if (sibling) here += (here.empty() ? "" : ", ") + std::string(leaf_of(known));
    const std::size_t distance = edit_distance(leaf, leaf_of(known));
    if (distance >= best || distance + (sibling ? 0 : 1) >= best) continue;
    best = distance + (sibling ? 0 : 1);
    nearest = known;
  }
  if (nearest.empty()) return fmt::format("unknown key; accepted here: {}", here);
  return fmt::format("unknown key; did you mean {}{}?", place.prefix, nearest);
}

std::string describe(const Tree& tree) {
  switch (tree.kind) {
    case Tree::Kind::kNull:
      return "nothing";
    case Tree::Kind::kScalar:
      return fmt::format("'{}'", shown_value(nullptr, tree.scalar));
    case Tree::Kind::kList:
      return "a list";
    case Tree::Kind::kMap:
      return "a section";
  }
  return {};
}

class Collector {
 public:
  explicit Collector(Draft& draft) : draft_(draft) {}

  void walk_section(const Tree& tree, const Place& place, const std::string& path) {
    const std::string key = place.prefix + path;
    draft_.section_lines[path.empty() && !place.at_top() ? key.substr(0, key.size() - 1) : key] =
        tree.line;
    if (tree.kind == Tree::Kind::kNull) return;
    if (tree.kind != Tree::Kind::kMap) {
      fail(tree.line, key,
           fmt::format("a section of 'key: value' lines is accepted, not {}", describe(tree)));
      return;
    }
    for (const TreeEntry& entry : tree.entries) {
      const std::string name = shown_value(nullptr, entry.key);
      walk_entry(entry, place, path.empty() ? name : path + "." + name);
    }
  }

 private:
  void walk_entry(const TreeEntry& entry, const Place& place, const std::string& path) {
    if (entry.key.find('.') != std::string::npos) {
      fail(entry.line, place.prefix + path,
           "a key with a dot is not accepted; nest it: one section for each word");
    } else if (const Option* option = find_option(place, path)) {
      take(*option, entry, place.prefix + path);
    } else if (const EntryList* list = place.at_top() ? find_list(path) : nullptr) {
      walk_list(entry, *list);
    } else if (is_section(place, path)) {
      walk_section(entry.value, place, path);
    } else {
      fail(entry.line, place.prefix + path, unknown_key_reason(place, path));
    }
  }

  void walk_list(const TreeEntry& entry, const EntryList& list) {
    const std::string key(list.key);
    draft_.section_lines[key] = entry.line;
    if (entry.value.kind != Tree::Kind::kList || entry.value.items.empty() ||
        entry.value.items.size() > list.max_count) {
      const auto comma = list.items.find(',');
      fail(entry.line, key,
           fmt::format("a list of 1 to {} {} is accepted{}", list.max_count,
                       list.items.substr(0, comma), list.items.substr(comma)));
      return;
    }
    draft_.*list.count = entry.value.items.size();
    for (std::size_t i = 0; i < draft_.*list.count; ++i)
      walk_section(entry.value.items[i], {list.scope, entry_key(list.scope, i, "")}, "");
  }

  void take(const Option& option, const TreeEntry& entry, const std::string& key) {
    if (is_section(option) && entry.value.kind == Tree::Kind::kMap) {
      take_lines(option, entry, key);
      return;
    }
    std::optional<Value> value;
    std::optional<std::string> shown;
    if (option.type == OptionType::kIntegerList && entry.value.kind == Tree::Kind::kList) {
      std::vector<std::string> items;
      for (const Tree& item : entry.value.items) items.push_back(item.scalar);
      value = parse_list(option, items);
      shown = shown_value(&option, fmt::format("[{}]", join(items)));
    } else if (entry.value.kind == Tree::Kind::kScalar) {
      value = parse_value(option, entry.value.scalar);
      shown = shown_value(&option, entry.value.scalar);
    }
    if (value) {
      draft_.found[key] = {&option, std::move(*value), entry.line};
      return;
    }
    std::string reason = "accepted: " + accepted(option);
    if (!shown) reason = fmt::format("has {}; {}", describe(entry.value), reason);
    draft_.failed.insert(key);
    draft_.errors.push_back({draft_.file, entry.line, key, std::move(shown), std::move(reason)});
  }

  /// Takes a section whose keys the operator chooses. Each bad line is an error of its own.
  void take_lines(const Option& option, const TreeEntry& section, const std::string& key) {
    Value value;
    for (const TreeEntry& line : section.value.entries) {
      const bool scalar = line.value.kind == Tree::Kind::kScalar;
      auto entry =
          parse_section_entry(option, line.key, scalar ? line.value.scalar : std::string());
      if (entry && value.entries.size() < max_entries(option)) {
        value.text += fmt::format("{}\"{}\": {}", value.text.empty() ? "" : ", ", line.key,
                                  line.value.scalar);
        value.entries.push_back(std::move(*entry));
        continue;
      }
      std::optional<std::string> shown;
      if (scalar) shown = shown_value(nullptr, line.value.scalar);
      std::string reason = "accepted: " + accepted(option);
      if (!scalar) reason = fmt::format("has {}; {}", describe(line.value), reason);
      draft_.errors.push_back(
          {draft_.file, line.line, line_key(key, line.key), std::move(shown), std::move(reason)});
    }
    value.text = fmt::format("{{{}}}", value.text);
    draft_.found[key] = {&option, std::move(value), section.line};
  }

  static std::string line_key(const std::string& section, std::string_view key) {
    return fmt::format("{}: {}", section, shown_value(nullptr, key));
  }

  void fail(std::size_t line, const std::string& key, std::string reason) {
    draft_.failed.insert(key);
    draft_.errors.push_back({draft_.file, line, key, std::nullopt, std::move(reason)});
  }

  Draft& draft_;
};

}  // namespace

std::string shown_value(const Option* option, std::string_view text) {
  if (option != nullptr && option->type == OptionType::kSecret) return "<hidden>";
  std::string shown;
  for (const char c : text.substr(0, kMaxShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return text.size() > kMaxShownBytes ? shown + "..." : shown;
}

std::span<const EntryList> entry_lists() {
  return kLists;
}

const EntryList* list_of(OptionScope scope) {
  const auto found = std::find_if(std::begin(kLists), std::end(kLists),
                                  [scope](const EntryList& list) { return list.scope == scope; });
  return found == std::end(kLists) ? nullptr : found;
}

std::string entry_key(OptionScope scope, std::size_t index, std::string_view path) {
  return fmt::format("{}[{}].{}", list_of(scope)->key, index, path);
}

std::string node_section(std::size_t index) {
  return fmt::format("{}[{}]", list_of(OptionScope::kNode)->key, index);
}

std::string node_key(std::size_t index, std::string_view path) {
  return entry_key(OptionScope::kNode, index, path);
}

std::string tree_key(std::size_t index, std::string_view path) {
  return entry_key(OptionScope::kTree, index, path);
}

std::string port_key(const Draft& draft, std::size_t index, std::string_view path) {
  std::string own = node_key(index, path);
  return draft.mentions(own) ? own : std::string(path);
}

ConfigError Draft::about(const std::string& key, std::string reason) const {
  ConfigError entry{file, 0, key, std::nullopt, std::move(reason)};
  if (const auto it = found.find(key); it != found.end()) {
    entry.line = it->second.line;
    entry.value = shown_value(it->second.option, it->second.value.text);
  } else {
    for (std::string_view section = key; !section.empty() && entry.line == 0;
         section = parent_of(section)) {
      const auto line = section_lines.find(std::string(section));
      if (line != section_lines.end()) entry.line = line->second;
    }
  }
  return entry;
}

bool is_set(const Draft& draft, const std::string& key) {
  const auto it = draft.found.find(key);
  return it != draft.found.end() && it->second.value.text != it->second.option->default_text;
}

void Draft::error(const std::string& key, std::string reason) {
  ConfigError entry = about(key, std::move(reason));
  // One common value may be wrong for several nodes.
  if (std::find(errors.begin(), errors.end(), entry) == errors.end()) {
    errors.push_back(std::move(entry));
  }
}

void Draft::warn(const std::string& key, const std::string& reason) {
  warnings.push_back(about(key, "warning: " + reason));
}

void collect(const Tree& document, Draft& draft) {
  Collector(draft).walk_section(document, Place{}, "");
}

}  // namespace gradplane::config
