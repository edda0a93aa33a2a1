// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/plan.h"

#include "dataplane/base/assert.h"

namespace gradplane::job {

Plan::Plan(const JobConfig& config)
    : epoch_(config.epoch), hosts_(config.hosts), total_weight_(config.total_weight()) {
  GP_ASSERT(config.trees.size() <= kMaxTrees);
  trees_.reserve(config.trees.size());
  for (std::size_t t = 0; t < config.trees.size(); ++t) {
    const aggregate::TreeConfig& tree = config.trees[t];
    trees_.emplace_back(
        tree, aggregate::Tree::Limits{.epoch = config.epoch,
                                      .number = static_cast<std::uint8_t>(t),
                                      .first_round = config.first_round,
                                      .max_blocks = max_blocks_of_tree(
                                          tree.share.weight, total_weight_, config.max_blocks()),
                                      .block_bytes = config.block_bytes,
                                      .local_ranks = config.local_ranks.size(),
                                      .world_size = config.world_size,
                                      .hosts = &hosts_,
                                      .own_host = hosts_.find(config.self)});
  }
}

std::size_t Plan::edge_count() const {
  std::size_t edges = 0;
  for (const aggregate::Tree& tree : trees_) edges += tree.in().size();
  return edges;
}

BlockRange Plan::range_of(std::size_t tree, std::uint32_t round, const Geometry& geometry) const {
  const std::size_t first = round % trees_.size();
  return blocks_of_tree(trees_[tree].config().share, trees_[first].config().share.begin,
                        total_weight_, geometry.blocks);
}

void Plan::open(aggregate::Round& round) {
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    trees_[t].open(round, range_of(t, round.id, round.geometry));
  }
}

void Plan::connect(hop::PeerTable& peers) {
  for (aggregate::Tree& tree : trees_) {
    for (hop::OutEdge& edge : tree.out()) peers[edge.peer].edges.push_back(&edge);
  }
}

}  // namespace gradplane::job
