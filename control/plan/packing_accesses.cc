// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cmath>
#include <numeric>

#include "control/plan/packing.h"

namespace gradplane::plan {
namespace {

/// Steps of the bisection. A double has 52 bits of mantissa.
constexpr int kHalvings = 64;

/// Replaces infinite rates by one that is as good: n times the fastest finite one.
std::vector<double> finite(std::vector<double> rates) {
  double fastest = 0;
  for (const double rate : rates)
    if (std::isfinite(rate)) fastest = std::max(fastest, rate);
  if (fastest == 0) fastest = 1;
  for (double& rate : rates)
    if (!std::isfinite(rate)) rate = fastest * static_cast<double>(rates.size());
  return rates;
}

/// A tree in which place `order[i]` has 1 + `extra[i]` neighbours. The first in the order has the
/// most neighbours, and is the root.
PlaceTree tree_of(const std::vector<PlaceId>& order, const std::vector<std::size_t>& extra) {
  PlaceTree tree{order[0], std::vector<PlaceId>(order.size(), kNoPlace)};
  std::size_t next = 1;
  for (std::size_t i = 0; i < order.size() && next < order.size(); ++i) {
    for (std::size_t child = 0; child < extra[i] + (i == 0 ? 1 : 0); ++child)
      tree.parent[order[next++]] = order[i];
  }
  return tree;
}

/// Distributes over trees the neighbours that places have beyond one. Each place has a piece whose
/// length is the number of these. The pieces form a line, which is cut into equal parts, one for
/// each tree. So most places are inner nodes of only one tree, in which they have many neighbours,
/// and trees are low.
class Dealer {
 public:
  Dealer(const std::vector<double>& neighbours, std::size_t trees) : count_(neighbours.size()) {
    std::vector<PlaceId> order(count_);
    std::iota(order.begin(), order.end(), PlaceId{0});
    std::stable_sort(order.begin(), order.end(),
                     [&neighbours](PlaceId a, PlaceId b) { return neighbours[a] > neighbours[b]; });
    double line = 0;
    std::size_t end = 0;
    for (const PlaceId place : order) {
      line += (neighbours[place] - 1) * static_cast<double>(trees);
      const auto to = std::min(static_cast<std::size_t>(std::llround(line)), trees * (count_ - 2));
      pieces_.push_back({place, end, std::max(end, to)});
      end = pieces_.back().end;
    }
    if (end < trees * (count_ - 2)) pieces_.back().end = trees * (count_ - 2);
  }

  PlaceTree tree(std::size_t index) const {
    const std::size_t begin = index * (count_ - 2);
    const std::size_t end = begin + count_ - 2;
    std::vector<std::size_t> extra_of(count_, 0);
    for (const Piece& piece : pieces_) {
      const std::size_t from = std::max(begin, piece.begin);
      const std::size_t to = std::min(end, piece.end);
      if (from < to) extra_of[piece.place] = to - from;
    }
    std::vector<PlaceId> order(count_);
    std::iota(order.begin(), order.end(), PlaceId{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](PlaceId a, PlaceId b) { return extra_of[a] > extra_of[b]; });
    std::vector<std::size_t> extra;
    for (const PlaceId place : order) extra.push_back(extra_of[place]);
    return tree_of(order, extra);
  }

 private:
  struct Piece {
    PlaceId place = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::size_t count_;
  std::vector<Piece> pieces_;
};

/// The load of a tree on each place. Both directions of an access have the same load.
std::vector<Load> loads_of(const PlaceTree& tree, const std::vector<double>& rates) {
  std::vector<Load> loads;
  for (PlaceId p = 0; p < tree.parent.size(); ++p) {
    if (tree.parent[p] == kNoPlace) continue;
    loads.push_back({p, 1 / rates[p]});
    loads.push_back({tree.parent[p], 1 / rates[tree.parent[p]]});
  }
  return loads;
}

}  // namespace

std::vector<double> neighbours_by_rate(const std::vector<double>& bits_per_s) {
  const std::vector<double> rates = finite(bits_per_s);
  const double others = static_cast<double>(rates.size()) - 1;
  const auto neighbours = [&](double time) {
    std::vector<double> of_place;
    for (const double rate : rates)
      of_place.push_back(std::clamp(time * rate, std::min(1.0, others), others));
    return of_place;
  };
  double shortest = 0;
  double longest = others / *std::min_element(rates.begin(), rates.end());
  for (int i = 0; i < kHalvings; ++i) {
    const double time = (shortest + longest) / 2;
    const std::vector<double> of_place = neighbours(time);
    const double sum = std::accumulate(of_place.begin(), of_place.end(), 0.0);
    (sum < 2 * others ? shortest : longest) = time;
  }
  return neighbours(longest);
}

Packing pack_accesses(const std::vector<double>& bits_per_s, std::size_t max_trees) {
  const std::size_t count = bits_per_s.size();
  const std::vector<double> rates = finite(bits_per_s);
  Packing packing;
  if (count <= 2) {
    packing.trees = {
        {0, count == 1 ? std::vector<PlaceId>{kNoPlace} : std::vector<PlaceId>{kNoPlace, 0}}};
    packing.shares = {1.0};
    return packing;
  }
  const std::size_t trees = std::min(max_trees, count);
  const Dealer dealer(neighbours_by_rate(rates), trees);
  std::vector<std::vector<Load>> loads;
  for (std::size_t t = 0; t < trees; ++t) {
    PlaceTree tree = dealer.tree(t);
    // A place whose piece spans several parts is the centre of the same star in each of them.
    if (!packing.trees.empty() && packing.trees.back().parent == tree.parent) continue;
    loads.push_back(loads_of(tree, rates));
    packing.trees.push_back(std::move(tree));
  }
  const Shares shares = min_max_shares(loads, count);
  packing.shares = shares.of_tree;
  packing.s_per_bit = shares.s_per_bit;
  return packing;
}

}  // namespace gradplane::plan
