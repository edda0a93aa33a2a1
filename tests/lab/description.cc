// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/description.h"

#include <algorithm>

#include "control/config/units.h"
#include "tests/lab/routes.h"

namespace gradplane::lab {
namespace {

using config::Tree;
using config::TreeEntry;

const Tree* find(const Tree& map, std::string_view key) {
  for (const TreeEntry& entry : map.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string indexed(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

class Parser {
 public:
  Parser(const std::string& file, std::vector<config::ConfigError>& errors)
      : reader_(file, errors), errors_(errors) {}

  Description parse(const Tree& document) {
    if (!reader_.is_map(document, "")) return {};
    for (const TreeEntry& entry : document.entries) {
      if (entry.key != "defaults" && entry.key != "hosts" && entry.key != "sites" &&
          entry.key != "site_links" && entry.key != "schedule" && entry.key != "seed") {
        reader_.error(entry.value, entry.key,
                      "unknown; accepted: defaults, hosts, sites, site_links, schedule, seed");
      }
    }
    // Reads sections in this order, whatever their order in the file, because each needs those
    // before.
    if (const Tree* tree = find(document, "seed")) read_seed(*tree);
    if (const Tree* tree = find(document, "defaults")) read_defaults(*tree);
    read_sites(find(document, "sites"));
    const Tree* hosts = find(document, "hosts");
    read_list(hosts, "hosts", kMaxHosts, [this](const Tree& t, auto& key) { read_host(t, key); });
    if (result_.hosts.empty()) reader_.error(document, "hosts", "at least one host is needed");
    read_list(find(document, "site_links"), "site_links", kMaxSites * kMaxSites,
              [this](const Tree& t, auto& key) { read_site_link(t, key); });
    if (errors_.empty()) check_connected(document);
    read_list(find(document, "schedule"), "schedule", 10000,
              [this](const Tree& t, auto& key) { read_change(t, key); });
    std::ranges::stable_sort(result_.schedule, {}, &ScheduledChange::at);
    return std::move(result_);
  }

 private:
  template <typename F>
  void read_list(const Tree* tree, const std::string& key, std::size_t most, F read_item) {
    if (tree == nullptr) return;
    if (tree->kind != Tree::Kind::kList || tree->items.size() > most) {
      reader_.error(*tree, key, "accepted: a list of at most " + std::to_string(most));
      return;
    }
    for (std::size_t i = 0; i < tree->items.size(); ++i) {
      const std::string item_key = indexed(key, i);
      read_item(tree->items[i], item_key);
    }
  }

  void read_seed(const Tree& tree) {
    if (const auto seed = config::parse_integer(tree.scalar)) {
      result_.seed = static_cast<std::uint64_t>(*seed);
    } else {
      reader_.error(tree, "seed", "accepted: a whole number from 0");
    }
  }

  void read_defaults(const Tree& tree) {
    if (!reader_.is_map(tree, "defaults")) return;
    for (const TreeEntry& entry : tree.entries) {
      const std::string key = "defaults." + entry.key;
      if (entry.key == "up") {
        reader_.settings(entry.value, key).apply_to(default_up_);
      } else if (entry.key == "down") {
        reader_.settings(entry.value, key).apply_to(default_down_);
      } else {
        reader_.error(entry.value, key, "unknown; accepted: up, down");
      }
    }
  }

  void read_sites(const Tree* tree) {
    read_list(tree, "sites", kMaxSites, [this](const Tree& item, const std::string& key) {
      const auto name = reader_.name(item, key);
      if (name && std::ranges::count(result_.sites, *name) > 0) {
        reader_.error(item, key, "this site is there already");
      } else if (name) {
        result_.sites.push_back(*name);
      }
    });
    if (result_.sites.empty()) result_.sites.emplace_back("site");
  }

  std::size_t site_index(const Tree& tree, const std::string& key) {
    const auto found = std::ranges::find(result_.sites, tree.scalar);
    if (found != result_.sites.end()) {
      return static_cast<std::size_t>(found - result_.sites.begin());
    }
    std::string known;
    for (const std::string& site : result_.sites) known += (known.empty() ? "" : ", ") + site;
    reader_.error(tree, key, "no such site; accepted: " + known);
    return 0;
  }

  /// Host links and site links share one name space, because commands may name either kind.
  std::string link_name(const Tree& tree, const std::string& key) {
    const std::string name = reader_.name(tree, key).value_or("");
    const auto same = [&name](const auto& known) { return known.name == name; };
    if (!name.empty() && (std::ranges::any_of(result_.hosts, same) ||
                          std::ranges::any_of(result_.site_links, same))) {
      reader_.error(tree, key, "another host or site link has this name");
    }
    return name;
  }

  void read_host(const Tree& tree, const std::string& key) {
    HostDescription host{{}, 0, default_up_, default_down_};
    if (tree.kind == Tree::Kind::kScalar) {
      host.name = link_name(tree, key);
    } else if (!reader_.is_map(tree, key)) {
      return;
    }
    for (const TreeEntry& entry : tree.entries) {
      const std::string path = key + "." + entry.key;
      if (entry.key == "name") {
        host.name = link_name(entry.value, path);
      } else if (entry.key == "site") {
        host.site_index = site_index(entry.value, path);
      } else if (entry.key == "up") {
        reader_.settings(entry.value, path).apply_to(host.up);
      } else if (entry.key == "down") {
        reader_.settings(entry.value, path).apply_to(host.down);
      } else {
        reader_.error(entry.value, path, "unknown; accepted: name, site, up, down");
      }
    }
    if (tree.kind == Tree::Kind::kMap && find(tree, "name") == nullptr) {
      reader_.error(tree, key + ".name", "missing");
    }
    result_.hosts.push_back(std::move(host));
  }

  void read_site_link(const Tree& tree, const std::string& key) {
    if (!reader_.is_map(tree, key)) return;
    SiteLinkDescription link;
    SettingsChange both, forward, backward;
    bool has_ends = false;
    for (const TreeEntry& entry : tree.entries) {
      const std::string path = key + "." + entry.key;
      if (entry.key == "name") {
        link.name = link_name(entry.value, path);
      } else if (entry.key == "between") {
        has_ends = read_ends(entry.value, path, link);
      } else if (entry.key == "forward") {
        forward = reader_.settings(entry.value, path);
      } else if (entry.key == "backward") {
        backward = reader_.settings(entry.value, path);
      } else if (!reader_.settings_entry(entry, key, both)) {
        reader_.error(entry.value, path,
                      "unknown; accepted: name, between, forward, backward, and what a link has");
      }
    }
    if (!has_ends || find(tree, "name") == nullptr) {
      reader_.error(tree, key, "accepted: a map with name and between: [SITE, SITE]");
    }
    both.apply_to(link.forward);
    both.apply_to(link.backward);
    forward.apply_to(link.forward);
    backward.apply_to(link.backward);
    result_.site_links.push_back(std::move(link));
  }

  bool read_ends(const Tree& tree, const std::string& key, SiteLinkDescription& link) {
    if (tree.items.size() != 2) return false;
    for (std::size_t end = 0; end < 2; ++end) {
      link.ends[end] = site_index(tree.items[end], indexed(key, end));
    }
    return link.ends[0] != link.ends[1];
  }

  void check_connected(const Tree& document) {
    const Routes routes(result_);
    for (const HostDescription& from : result_.hosts) {
      for (const HostDescription& to : result_.hosts) {
        if (routes.connected(from.site_index, to.site_index)) continue;
        reader_.error(document, "site_links",
                      "no way from " + from.name + " to " + to.name + "; add a site link");
        return;
      }
    }
  }

  void read_change(const Tree& tree, const std::string& key) {
    if (!reader_.is_map(tree, key)) return;
    ScheduledChange change;
    bool has_link = false;
    bool is_host_link = false;
    for (const TreeEntry& entry : tree.entries) {
      const std::string path = key + "." + entry.key;
      if (entry.key == "at") {
        change.at = reader_.time(entry.value, path).value_or(Duration{});
      } else if (entry.key == "link") {
        change.link = entry.value.scalar;
        const auto same = [&change](const auto& known) { return known.name == change.link; };
        is_host_link = std::ranges::any_of(result_.hosts, same);
        has_link = is_host_link || std::ranges::any_of(result_.site_links, same);
        if (!has_link) reader_.error(entry.value, path, "no such host or site link");
      } else if (entry.key == "set") {
        change.change = reader_.settings(entry.value, path);
      } else if (entry.key != "direction") {
        reader_.error(entry.value, path, "unknown; accepted: at, link, direction, set");
      }
    }
    if (find(tree, "at") == nullptr || find(tree, "link") == nullptr ||
        find(tree, "set") == nullptr) {
      reader_.error(tree, key, "accepted: a map with at, link, set and, if wanted, direction");
    }
    if (const Tree* direction = find(tree, "direction"); direction != nullptr && has_link) {
      const auto parsed = parse_direction(direction->scalar, is_host_link);
      const char* accepted =
          is_host_link ? "accepted: up, down, both" : "accepted: forward, backward, both";
      if (!parsed) reader_.error(*direction, key + ".direction", accepted);
      change.direction = parsed.value_or(Direction::kBoth);
    }
    result_.schedule.push_back(std::move(change));
  }

  Reader reader_;
  std::vector<config::ConfigError>& errors_;
  LinkSettings default_up_;
  LinkSettings default_down_;
  Description result_;
};

}  // namespace

std::optional<Direction> parse_direction(std::string_view text, bool is_host_link) {
  if (text.empty() || text == "both") return Direction::kBoth;
  if (text == (is_host_link ? "up" : "forward")) return Direction::kFirst;
  if (text == (is_host_link ? "down" : "backward")) return Direction::kSecond;
  return std::nullopt;
}

ParsedDescription parse_description(std::string_view yaml, const std::string& file_name) {
  ParsedDescription parsed;
  const Tree document = config::read_tree(yaml, file_name, parsed.errors);
  if (!parsed.errors.empty()) return parsed;
  Description description = Parser(file_name, parsed.errors).parse(document);
  if (parsed.errors.empty()) parsed.description = std::move(description);
  return parsed;
}

}  // namespace gradplane::lab
