// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

#include "control/plan/site_graph.h"

namespace gradplane::plan {

/// Trees over places with their shares of the blocks, whose sum is 1.
struct Packing {
  std::vector<PlaceTree> trees;
  std::vector<double> shares;
  double s_per_bit = 0;  // of the busiest resource
};

/// How the trees of a packing are found, one after the other.
enum class TreeSearch : std::uint8_t {
  /// Each carries as much as the others, and is cheap where they have loaded least (multiplicative
  /// weights). Better where each tree has to use slow links, too: sparse networks.
  kEvenLoads,
  /// Each takes the links that have most left, and takes away as much as its slowest link has left.
  /// Better where trees can go round slow links: meshes with more links than trees can use.
  kMostLeft,
};

/// Spanning trees of at most this height, with the shares that keep the busiest resource least
/// busy. All places of the graph are connected. `max_height` of at least the graph's radius; a tree
/// may be as high as the graph makes it. `roots`: the places that may be one; none: all.
Packing pack_trees(const SiteGraph& graph, std::uint32_t max_height, std::size_t max_trees,
                   const std::vector<PlaceId>& roots, TreeSearch search);

/// The same where every place reaches every other one and only their accesses limit: low
/// trees in which each place has as many neighbours as its access is worth.
/// `bits_per_s`: what each place both sends and receives at most. `max_trees` of at least 1.
Packing pack_accesses(const std::vector<double>& bits_per_s, std::size_t max_trees);

/// How many neighbours each place should have, as a mean over the trees: at least 1 and at most all
/// others, in sum 2 (n - 1), so that the largest of neighbours/rate is as small as can be.
std::vector<double> neighbours_by_rate(const std::vector<double>& bits_per_s);

}  // namespace gradplane::plan
