// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

#include "control/plan/site_graph.h"

namespace gradplane::plan {

/// Trees over places, and their shares of the blocks. The shares add up to 1.
struct Packing {
  std::vector<PlaceTree> trees;
  std::vector<double> shares;
  double s_per_bit = 0;  // of the resource that takes longest
};

/// How the trees of a packing are found, one after the other.
enum class TreeSearch : std::uint8_t {
  /// All trees carry equally much. Each is the cheapest at prices that grow with the load of the
  /// trees before (multiplicative weights). Better in sparse networks, where each tree must use
  /// slow links, too.
  kEvenLoads,
  /// Each tree uses the links with the most unused capacity, and carries as much as its slowest
  /// link has left. Better in meshes, where trees can avoid slow links.
  kMostLeft,
};

/// Spanning trees, with the shares that make the busiest resource least busy. All places of the
/// graph must be connected. Trees have at most `max_height` before their roots are chosen, or are
/// as low as the graph allows; `max_height` is at least the graph's radius. `roots` are the places
/// that may be roots; empty: all.
Packing pack_trees(const SiteGraph& graph, std::uint32_t max_height, std::size_t max_trees,
                   const std::vector<PlaceId>& roots, TreeSearch search);

/// The same where every place reaches every other one and only their accesses limit. The trees are
/// low, and each place has neighbours in proportion to the rate of its access. `bits_per_s` is the
/// rate at which each place can send and, at the same time, receive. `max_trees` is at least 1.
Packing pack_accesses(const std::vector<double>& bits_per_s, std::size_t max_trees);

/// How many neighbours each of n places should have, as a mean over the trees, so that the largest
/// neighbours/rate is as small as possible. Each place has at least 1 and at most n - 1; the sum is
/// 2 (n - 1).
std::vector<double> neighbours_by_rate(const std::vector<double>& bits_per_s);

}  // namespace gradplane::plan
