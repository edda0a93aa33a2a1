// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/topology.h"

#include <algorithm>
#include <map>
#include <utility>

#include "control/telemetry/json_archive.h"

namespace gradplane::telemetry {
namespace {

/// How many trees, links and nodes a shortened topology has.
struct Shares {
  std::size_t trees = kMaxTrees;
  std::size_t links = kMaxTopologyLinks;
  std::size_t nodes = kMaxNodes;

  /// Halves the numbers of trees and links, or of nodes when none of these is left. False: nothing
  /// is left.
  bool halve() {
    if (trees + links == 0) nodes /= 2;
    trees /= 2;
    links /= 2;
    return nodes > 0;
  }
};

Topology shortened(const Topology& topology, const Shares& shares) {
  Topology shorter = topology;
  shorten(shorter.nodes, shares.nodes, shorter.nodes_omitted);
  shorten(shorter.links, shares.links, shorter.links_omitted);
  shorten(shorter.uses, shares.links, shorter.uses_omitted);
  for (TopologyJob& job : shorter.jobs) shorten(job.trees, shares.trees, job.trees_omitted);
  return shorter;
}

}  // namespace

std::string to_json(const Topology& topology, std::size_t max_bytes) {
  std::string text = JsonWriter::text(topology);
  Shares shares;
  while (max_bytes > 0 && text.size() > max_bytes && shares.halve())
    text = JsonWriter::text(shortened(topology, shares));
  return text;
}

Result<Topology> topology_from_json(std::string_view text) {
  if (text.size() > kMaxStatusBytes) return Error{"topology: longer than any daemon's"};
  return JsonReader::parse<Topology>(text, "topology");
}

Topology by_sites(const Topology& topology) {
  Topology out = topology;
  std::map<std::string, std::string> place_of;
  out.nodes.clear();
  for (const TopologyNode& node : topology.nodes) {
    place_of[node.name] = node.place();
    const bool known = std::any_of(out.nodes.begin(), out.nodes.end(),
                                   [&](const auto& n) { return n.name == node.place(); });
    if (!known) out.nodes.push_back({.name = node.place(), .site = {}});
  }
  const auto place = [&](const std::string& name) {
    const auto at = place_of.find(name);
    return at == place_of.end() ? name : at->second;
  };
  std::map<std::pair<std::string, std::string>, TopologyLink> fastest;
  for (TopologyLink link : topology.links) {
    link.measured.node = place(link.measured.node);
    link.to = place(link.to);
    if (link.measured.node == link.to) continue;
    const auto [at, is_new] = fastest.try_emplace({link.measured.node, link.to}, link);
    if (!is_new && at->second.measured.rate_bits_per_second < link.measured.rate_bits_per_second)
      at->second = link;
  }
  out.links.clear();
  for (auto& [ends, link] : fastest) out.links.push_back(std::move(link));
  for (TopologyJob& job : out.jobs) {
    for (TopologyTree& tree : job.trees) {
      tree.root = place(tree.root);
      for (TopologyEdge& edge : tree.edges) edge = {place(edge.from), place(edge.to)};
      std::erase_if(tree.edges, [](const TopologyEdge& edge) { return edge.from == edge.to; });
    }
  }
  return out;
}

}  // namespace gradplane::telemetry
