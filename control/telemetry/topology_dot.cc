// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <map>

#include "control/telemetry/links.h"
#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"
#include "control/telemetry/topology.h"

namespace gradplane::telemetry {
namespace {

/// A quoted string of one or two lines.
std::string quoted(std::string_view line, std::string_view next_line = {}) {
  std::string out = "\"";
  for (const std::string_view text : {line, next_line}) {
    if (!text.empty() && text.data() == next_line.data()) out += "\\n";
    for (const char c : printable(text)) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

/// The nodes, with those of each site in a cluster of their own.
std::string places_of(const Topology& topology) {
  std::map<std::string, std::string> sites;
  std::string text;
  for (const TopologyNode& node : topology.nodes) {
    (node.site.empty() ? text : sites[node.site]) += fmt::format("  {};\n", quoted(node.name));
  }
  std::size_t number = 0;
  for (const auto& [site, nodes] : sites) {
    text += fmt::format("  subgraph cluster_{} {{\n  label={};\n{}  }}\n", number++, quoted(site),
                        nodes);
  }
  return text;
}

}  // namespace

std::string topology_dot(const Topology& topology) {
  std::string text = "digraph topology {\n  node [shape=ellipse];\n";
  text += places_of(topology);
  for (const TopologyLink& link : topology.links) {
    text += fmt::format("  {} -> {} [color={}, label={}];\n", quoted(link.measured.node),
                        quoted(link.to), quoted(kLinkColor),
                        quoted(link_label(link.measured), link_trust_text(link.measured)));
  }
  std::size_t color = 0;
  for (const TopologyJob& job : topology.jobs) {
    for (const TopologyTree& tree : job.trees) {
      const std::string_view paint = kTreeColors[color++ % kTreeColors.size()];
      for (const TopologyEdge& edge : tree.edges) {
        text += fmt::format("  {} -> {} [color={}, fontcolor={}, penwidth=2, label={}];\n",
                            quoted(edge.from), quoted(edge.to), quoted(paint), quoted(paint),
                            quoted(percent_text(share_of(job, tree))));
      }
    }
  }
  return text + "}\n";
}

}  // namespace gradplane::telemetry
