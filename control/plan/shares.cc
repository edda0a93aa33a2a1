// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/shares.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gradplane::plan {
namespace {

constexpr double kEpsilon = 1e-9;
/// A bound for the number of pivots. A tree usually enters the basis once or twice. When the bound
/// is reached, the shares so far are valid, if not the best.
constexpr std::size_t kMaxPivotsPerTree = 50;

/// Maximises sum x subject to A x <= 1, x >= 0 by the simplex method. The condensed tableau has a
/// row for each basic variable and a column for each other one. At first the slacks are basic.
class Simplex {
 public:
  Simplex(std::size_t rows, std::size_t columns)
      : columns_(columns), width_(columns + 1), cells_((rows + 1) * width_, 0.0) {
    for (std::size_t r = 0; r < rows; ++r) {
      cell(r, columns) = 1;
      basic_.push_back(columns + r);
    }
    for (std::size_t c = 0; c < columns; ++c) {
      cell(rows, c) = -1;
      other_.push_back(c);
    }
  }

  double& cell(std::size_t row, std::size_t column) { return cells_[row * width_ + column]; }

  /// Sets the coefficient of a variable in the objective. It is 1 by default.
  void set_worth(std::size_t column, double worth) { cell(basic_.size(), column) = -worth; }

  void solve() {
    const std::size_t max_pivots = kMaxPivotsPerTree * (columns_ + 1);
    for (std::size_t i = 0; i < max_pivots; ++i) {
      const double* objective = &cell(basic_.size(), 0);
      const auto column =
          static_cast<std::size_t>(std::min_element(objective, objective + columns_) - objective);
      if (objective[column] >= -kEpsilon) return;
      const std::size_t row = leaving_row(column);
      if (row == basic_.size()) return;
      pivot(row, column);
    }
  }

  /// The values of the variables, by column of A.
  std::vector<double> values() {
    std::vector<double> values(columns_, 0.0);
    for (std::size_t r = 0; r < basic_.size(); ++r)
      if (basic_[r] < columns_) values[basic_[r]] = std::max(0.0, cell(r, columns_));
    return values;
  }

 private:
  std::size_t leaving_row(std::size_t column) {
    std::size_t best = basic_.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r < basic_.size(); ++r) {
      const double by = cell(r, column);
      if (by <= kEpsilon) continue;
      const double ratio = cell(r, columns_) / by;
      // Of equal ratios the variable with the lowest number leaves, so that there is no cycling.
      const bool better =
          ratio < least - kEpsilon ||
          (best != basic_.size() && ratio <= least + kEpsilon && basic_[r] < basic_[best]);
      if (!better) continue;
      least = std::min(ratio, least);
      best = r;
    }
    return best;
  }

  void pivot(std::size_t row, std::size_t column) {
    double* const pivot_row = &cell(row, 0);
    const double by = pivot_row[column];
    pivot_row[column] = 1;
    for (std::size_t c = 0; c < width_; ++c) pivot_row[c] /= by;
    for (std::size_t r = 0; r <= basic_.size(); ++r) {
      if (r == row) continue;
      double* const to = &cell(r, 0);
      const double factor = to[column];
      if (factor == 0) continue;
      to[column] = 0;
      for (std::size_t c = 0; c < width_; ++c) to[c] -= factor * pivot_row[c];
    }
    std::swap(basic_[row], other_[column]);
  }

  std::size_t columns_;
  std::size_t width_;
  std::vector<double> cells_;
  std::vector<std::size_t> basic_;  // by row; the variables of trees come first, then the slacks
  std::vector<std::size_t> other_;  // by column
};

/// The resources that some tree uses. If the same trees use two of them, as the two directions of a
/// link, and one is never loaded less than the other, only that one is kept.
struct Rows {
  std::vector<std::uint32_t> resource;                            // by row
  std::vector<std::vector<std::pair<std::size_t, double>>> uses;  // by row: tree and load
};

Rows rows_of(const std::vector<std::vector<Load>>& trees, std::size_t resources) {
  std::vector<std::vector<std::pair<std::size_t, double>>> uses(resources);
  for (std::size_t t = 0; t < trees.size(); ++t) {
    for (const Load& load : trees[t]) {
      auto& of = uses[load.resource];
      if (!of.empty() && of.back().first == t)
        of.back().second += load.s_per_bit;
      else
        of.emplace_back(t, load.s_per_bit);
    }
  }
  // Whether `a` has the same trees as `b`, and each of them loads it at least as much.
  const auto covers = [](const auto& a, const auto& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
             return x.first == y.first && x.second >= y.second;
           });
  };
  std::vector<std::uint32_t> order;
  for (std::uint32_t r = 0; r < resources; ++r)
    if (!uses[r].empty()) order.push_back(r);
  const auto same_trees_first = [&uses](std::uint32_t a, std::uint32_t b) {
    const auto less = [](const auto& x, const auto& y) { return x.first < y.first; };
    const bool before = std::lexicographical_compare(uses[a].begin(), uses[a].end(),
                                                     uses[b].begin(), uses[b].end(), less);
    const bool after = std::lexicographical_compare(uses[b].begin(), uses[b].end(), uses[a].begin(),
                                                    uses[a].end(), less);
    if (before != after) return before;
    if (uses[a].front().second != uses[b].front().second)
      return uses[a].front().second > uses[b].front().second;
    return a < b;
  };
  std::sort(order.begin(), order.end(), same_trees_first);
  Rows rows;
  for (const std::uint32_t r : order) {
    if (!rows.uses.empty() && covers(rows.uses.back(), uses[r])) continue;
    rows.resource.push_back(r);
    rows.uses.push_back(std::move(uses[r]));
  }
  return rows;
}

}  // namespace

Shares min_max_shares(const std::vector<std::vector<Load>>& trees, std::size_t resources) {
  Rows rows = rows_of(trees, resources);
  std::vector<double> largest(trees.size(), 0.0);  // by tree: its largest load
  for (const auto& row : rows.uses)
    for (const auto& [tree, load] : row) largest[tree] = std::max(largest[tree], load);
  const double least = *std::min_element(largest.begin(), largest.end());
  Shares shares;
  shares.of_tree.assign(trees.size(), 1.0 / static_cast<double>(trees.size()));
  if (least == 0) return shares;  // some tree has no limit
  Simplex simplex(rows.uses.size(), trees.size());
  for (std::size_t r = 0; r < rows.uses.size(); ++r)
    for (const auto& [tree, load] : rows.uses[r]) simplex.cell(r, tree) = load / largest[tree];
  // Each column has a scale of its own, so that a very slow tree does not hide the others.
  for (std::size_t t = 0; t < trees.size(); ++t) simplex.set_worth(t, least / largest[t]);
  simplex.solve();
  std::vector<double> rates = simplex.values();
  for (std::size_t t = 0; t < trees.size(); ++t) rates[t] *= least / largest[t];
  double total = 0;
  for (const double rate : rates) total += rate;
  if (total <= 0) return shares;
  for (std::size_t t = 0; t < trees.size(); ++t) shares.of_tree[t] = rates[t] / total;
  shares.s_per_bit = least / total;
  return shares;
}

}  // namespace gradplane::plan
