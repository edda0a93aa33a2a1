// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What else the file must say for grants.
#include <fmt/format.h>

#include "control/config/draft.h"

namespace gradplane::config {
namespace {

// Over faster links, and with deeper buffers, grants have lost to even shares (decision 0047).
constexpr std::uint64_t kMaxAutoBitsPerSecond = 1'000'000'000;
constexpr std::size_t kMaxAutoBufferBytes = std::size_t{256} << 10;

/// The nodes whose link's rate is not known. A loopback has no link.
std::vector<const NodeConfig*> nodes_of_unknown_rate(const Config& config) {
  std::vector<const NodeConfig*> nodes;
  for (const NodeConfig& node : config.cluster.nodes) {
    const bool known = node.port.link_rate_bits_per_s || node.port.kind == PortKind::kLoopback;
    if (!known) nodes.push_back(&node);
  }
  return nodes;
}

/// "node a has no port.link_rate", "node a and 2 more have no port.link_rate".
std::string unknown_text(const std::vector<const NodeConfig*>& nodes) {
  const std::string who =
      nodes.size() == 1 ? "node " + nodes[0]->name + " has"
                        : fmt::format("node {} and {} more have", nodes[0]->name, nodes.size() - 1);
  return who + " no port.link_rate";
}

/// A receiver grants the capacity of its own link. If it does not know the rate, it finds it out
/// only by losses.
void warn_of_unknown_rates(Draft& draft) {
  for (std::size_t i = 0; i < draft.node_count; ++i)
    if (draft.failed.contains(port_key(draft, i, "port.link_rate"))) return;
  const auto unknown = nodes_of_unknown_rate(draft.config);
  if (unknown.empty()) return;
  draft.warn("grants.enabled",
             unknown_text(unknown) +
                 ", so how much to grant is guessed from what gets lost; set port.link_rate to the "
                 "rate of each node's link");
}

}  // namespace

std::string why_no_auto_grants(const Config& config) {
  // An exchange has other senders in each step, and a packet to a group would need the credit of
  // all its receivers.
  if (config.training.is_selective()) return "training.mode is selective";
  if (config.multicast.enabled) return "multicast.enabled is true";
  // With grants a packet has one block, so these would save less.
  if (!config.gather.rules.wire_types.empty()) return "gather.wire_types has lines";
  // Only one core may grant. All cores together carry more than grants gain.
  if (config.poll.cores.size() > 1) return "poll.cores has several CPUs";
  const auto unknown = nodes_of_unknown_rate(config);
  if (!unknown.empty()) return unknown_text(unknown);
  for (const NodeConfig& node : config.cluster.nodes) {
    if (node.port.link_rate_bits_per_s.value_or(0) > kMaxAutoBitsPerSecond)
      return "port.link_rate of node " + node.name + " is above 1 Gbit/s";
    if (node.port.buffer_bytes.value_or(0) > kMaxAutoBufferBytes)
      return "port.buffer of node " + node.name + " is above 256 KiB";
  }
  return {};
}

void check_grants(Draft& draft) {
  if (draft.failed.contains("grants.enabled") || draft.failed.contains("grants.policy")) return;
  const GrantsConfig& grants = draft.config.grants;
  if (grants.enabled == GrantChoice::kFalse && is_set(draft, "grants.policy")) {
    draft.error("grants.policy", "means nothing with grants.enabled: false; remove one of them");
  } else if (!goes_by_weight(grants.policy) && !grants.weights.empty()) {
    draft.error("grants.weights",
                "means nothing without grants.policy: weighted or mltcp; remove it");
  }
  if (grants.enabled == GrantChoice::kTrue) warn_of_unknown_rates(draft);
}

}  // namespace gradplane::config
