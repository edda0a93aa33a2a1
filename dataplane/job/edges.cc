// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/edges.h"

namespace gradplane::job {
namespace {

struct Builder {
  const JobConfig& config;
  Edges& edges;

  void add_out(std::size_t tree, std::uint16_t peer, wire::PacketType type) {
    OutEdge edge;
    edge.peer = peer;
    edge.tree = static_cast<std::uint8_t>(tree);
    edge.type = type;
    edge.senders.assign(kRoundSlots, hop::BlockSender(capacity(tree)));
    const auto index = static_cast<std::uint16_t>(edges.out.size());
    edges.out_of_peer[peer].push_back(index);
    if (type == wire::PacketType::kResult) edges.results_out_of_tree[tree].push_back(index);
    if (type == wire::PacketType::kPush) edges.push_out_of_tree[tree] = index;
    edges.out.push_back(std::move(edge));
  }

  void add_in(std::size_t tree, std::uint16_t peer, wire::PacketType type, std::uint16_t ranks,
              std::size_t source = 0) {
    InEdge edge;
    edge.source = static_cast<std::uint16_t>(source);
    edge.peer = peer;
    edge.tree = static_cast<std::uint8_t>(tree);
    edge.type = type;
    edge.ranks = ranks;
    edge.receivers.assign(kRoundSlots, hop::BlockReceiver(capacity(tree)));
    edges.in_of_peer[peer].push_back(static_cast<std::uint16_t>(edges.in.size()));
    edges.in.push_back(std::move(edge));
  }

  std::size_t capacity(std::size_t tree) const {
    return max_blocks_of_tree(config.trees[tree].share.weight, config.total_weight(),
                              config.max_blocks());
  }
};

}  // namespace

Edges::Edges(const JobConfig& config)
    : out_of_peer(config.peers.size()),
      in_of_peer(config.peers.size()),
      results_out_of_tree(config.trees.size()),
      push_out_of_tree(config.trees.size(), kNoPeer) {
  Builder build{config, *this};
  for (std::size_t t = 0; t < config.trees.size(); ++t) {
    const TreeConfig& tree = config.trees[t];
    if (!tree.member) continue;
    if (tree.parent != kNoPeer) {
      build.add_out(t, tree.parent, wire::PacketType::kPush);
      build.add_in(t, tree.parent, wire::PacketType::kResult, config.world_size);
    }
    for (std::size_t c = 0; c < tree.children.size(); ++c) {
      const ChildConfig& child = tree.children[c];
      build.add_in(t, child.peer, wire::PacketType::kPush, child.ranks, c);
      in.back().results = static_cast<std::uint16_t>(out.size());
      build.add_out(t, child.peer, wire::PacketType::kResult);
    }
  }
}

std::size_t Edges::find_out(wire::PacketType type, std::uint8_t tree, std::uint16_t peer) const {
  for (const std::uint16_t i : out_of_peer[peer]) {
    if (out[i].type == type && out[i].tree == tree) return i;
  }
  return kNoEdge;
}

std::size_t Edges::find_in(wire::PacketType type, std::uint8_t tree, std::uint16_t peer) const {
  for (const std::uint16_t i : in_of_peer[peer]) {
    if (in[i].type == type && in[i].tree == tree) return i;
  }
  return kNoEdge;
}

}  // namespace gradplane::job
