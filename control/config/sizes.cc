// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradplane::config {
namespace {

/// The largest block for which every node's MTU has room, together with the block's coverage set,
/// which has a bit for each node.
std::size_t largest_block_bytes(const Config& config) {
  std::size_t mtu_bytes = kMaxMtuBytes;
  for (const NodeConfig& node : config.cluster.nodes) {
    mtu_bytes = std::min(mtu_bytes, node.port.mtu_bytes);
  }
  return max_block_bytes(mtu_bytes - kIpUdpHeaderBytes, config.cluster.nodes.size());
}

}  // namespace

void check_block(Draft& draft) {
  for (std::size_t i = 0; i < draft.node_count; ++i) {
    if (draft.failed.contains(port_key(draft, i, "port.mtu"))) return;
  }
  const std::size_t largest = largest_block_bytes(draft.config);
  if (draft.config.block_bytes == 0) draft.config.block_bytes = largest;
  if (draft.config.block_bytes > largest) {
    draft.error(
        "block.bytes",
        fmt::format("does not fit the smallest MTU of the nodes; at most {} B, or auto", largest));
  }
}

/// Gives memif long packets, because fewer packets cost less. A memif carries any length. But where
/// other nodes have other kinds of ports, it leads to their network, whose frames are shorter.
void choose_mtu(Config& config) {
  constexpr std::size_t kMemifMtuBytes = 9000;
  constexpr std::size_t kEthernetMtuBytes = 1500;
  static_assert(kMemifMtuBytes <= kMaxMtuBytes && kEthernetMtuBytes >= kMinMtuBytes);
  std::vector<NodeConfig>& nodes = config.cluster.nodes;
  const bool is_memory = std::ranges::all_of(
      nodes, [](const NodeConfig& node) { return node.port.kind == PortKind::kMemif; });
  for (NodeConfig& node : nodes) {
    node.port.has_default_mtu = node.port.mtu_bytes == 0;
    if (node.port.has_default_mtu)
      node.port.mtu_bytes = is_memory ? kMemifMtuBytes : kEthernetMtuBytes;
  }
}

/// Where packets go through memory, rounds are so small that the open ones stay in caches.
/// Elsewhere the open rounds have to fill paths with long round trips.
void choose_round_bytes(Config& config) {
  constexpr std::size_t kCachedRoundBytes = std::size_t{256} << 10;
  static_assert(kCachedRoundBytes <= kMaxRoundBytes);
  if (config.round_bytes != 0) return;
  const bool is_memory = std::ranges::all_of(config.cluster.nodes, [](const NodeConfig& node) {
    return node.port.kind == PortKind::kMemif || node.port.kind == PortKind::kLoopback;
  });
  config.round_bytes = is_memory ? kCachedRoundBytes : kMaxRoundBytes;
}

}  // namespace gradplane::config
