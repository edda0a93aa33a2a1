// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/plot.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "control/bounds/budget.h"
#include "control/bounds/names.h"

namespace gradplane::bounds {
namespace {

/// PLOT's d / d_max: the step of the sequence as a share of the largest step.
constexpr double kSteepness = 0.8;
constexpr double kConvolutionShare = 0.1;
constexpr double kFullyConnectedShare = 0.9;
constexpr double kResidualShare = 0.5;

/// A layer with those of its parameters that get a bound.
struct Layer {
  std::string_view name;
  std::vector<std::size_t> parameters;
  bool residual = false;
};

struct Block {
  std::string_view name;
  std::vector<Layer> layers;
};

/// What a parameter asks for, before the budget.
struct Wish {
  double weight = 0;
  std::string rule;
};

/// The thresholds of k blocks, the largest first. They sum to about 1.
std::vector<double> decreasing_sequence(std::size_t count) {
  const auto k = static_cast<double>(count);
  if (count <= 1) return std::vector<double>(count, 1.0);
  // The formula for even k has no value at 2.
  const bool odd = count % 2 == 1 || count == 2;
  const double step = kSteepness * 2 / (k * (odd ? k - 1 : k - 2));
  const double first = 1 / k + step * (odd ? k - 1 : k - 2) / 2;
  std::vector<double> thresholds;
  for (std::size_t i = 0; i < count; ++i) {
    thresholds.push_back(std::max(first - static_cast<double>(i) * step, 0.0));
  }
  return thresholds;
}

class Planner {
 public:
  explicit Planner(const Model& model) : model_(model), wishes_(model.parameters().size()) {}

  std::vector<Wish> take() {
    for (std::size_t p = 0; p < wishes_.size(); ++p) {
      if (model_.in_last_layer(p)) wishes_[p].rule = "plot: last layer";
      if (model_.in_first_layer(p)) wishes_[p].rule = "plot: first layer";
    }
    if (!model_.has_names()) {
      by_order();
    } else if (is_vgg()) {
      by_part(blocks_in("features"), kConvolutionShare, false);
      by_part(blocks_in("classifier"), kFullyConnectedShare, true);
    } else {
      by_block();
    }
    return std::move(wishes_);
  }

 private:
  const std::string& name(std::size_t p) const { return model_.parameters()[p].name; }
  bool is_end(std::size_t p) const { return model_.in_first_layer(p) || model_.in_last_layer(p); }

  bool is_vgg() const {
    const auto has = [&](std::string_view part) {
      return std::any_of(
          model_.parameters().begin(), model_.parameters().end(),
          [&](const Parameter& p) { return network_block_of(p.name).starts_with(part); });
    };
    return has("features.") && has("classifier.");
  }

  /// The blocks whose names begin with `part`, in the order of the model. The parameters of its
  /// first and last layer are left out.
  std::vector<Block> blocks_in(std::string_view part) const {
    std::vector<Block> blocks;
    std::map<std::string_view, std::size_t> known;
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> known_layers;
    for (std::size_t p = 0; p < wishes_.size(); ++p) {
      const std::string_view block_name = network_block_of(name(p));
      if (is_end(p) || !block_name.starts_with(part)) continue;
      const auto [at, fresh] = known.try_emplace(block_name, blocks.size());
      if (fresh) blocks.push_back({block_name, {}});
      std::vector<Layer>& layers = blocks[at->second].layers;
      const std::string_view layer_name = layer_of(name(p));
      const auto [layer, is_new] =
          known_layers.try_emplace({block_name, layer_name}, layers.size());
      if (is_new) layers.push_back(Layer{layer_name, {}});
      layers[layer->second].parameters.push_back(p);
    }
    for (Block& block : blocks) mark_residual(block);
    return blocks;
  }

  /// Marks the layers whose output is added to the residual connection. The last of several
  /// convolutions is one; other such layers are known by their names.
  static void mark_residual(Block& block) {
    Layer* last = nullptr;
    std::size_t convolutions = 0;
    for (Layer& layer : block.layers) {
      layer.residual = is_residual_output(layer.name);
      if (!convolution_number(layer.name)) continue;
      ++convolutions;
      const bool later =
          last == nullptr || convolution_number(layer.name) > convolution_number(last->name);
      if (later) last = &layer;
    }
    if (convolutions > 1) last->residual = true;
  }

  void by_order() {
    std::vector<std::size_t> inner;
    for (std::size_t p = 0; p < wishes_.size(); ++p) {
      if (!is_end(p)) inner.push_back(p);
    }
    const std::vector<double> thresholds = decreasing_sequence(inner.size());
    for (std::size_t i = 0; i < inner.size(); ++i) {
      wishes_[inner[i]] = {thresholds[i], "plot: " + std::to_string(i + 1) + " of " +
                                              std::to_string(inner.size()) +
                                              " by order, names are not known"};
    }
  }

  void by_block() {
    const std::vector<Block> blocks = blocks_in("");
    const std::vector<double> thresholds = decreasing_sequence(blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      double layers = 0;
      for (const Layer& layer : blocks[b].layers) {
        if (!is_norm_layer(layer)) layers += layer.residual ? kResidualShare : 1.0;
      }
      const double of_layer = thresholds[b] / std::max(layers, 1.0);
      const std::string rule =
          "plot: block " + std::to_string(b + 1) + " of " + std::to_string(blocks.size());
      for (const Layer& layer : blocks[b].layers) {
        const double weight = layer.residual ? of_layer * kResidualShare : of_layer;
        for (const std::size_t p : layer.parameters) {
          wishes_[p] = {weight, layer.residual ? rule + ", residual" : rule};
        }
      }
    }
  }

  bool is_norm_layer(const Layer& layer) const { return is_norm(name(layer.parameters.front())); }

  /// Weights for one part of a VGG: the sum of weight x elements over the part is `share`.
  void by_part(const std::vector<Block>& blocks, double share, bool increasing) {
    std::vector<double> thresholds = decreasing_sequence(blocks.size());
    if (increasing) std::reverse(thresholds.begin(), thresholds.end());
    double mass = 0;
    for_each(blocks, thresholds, [&](std::size_t p, double threshold, std::size_t) {
      mass += threshold * static_cast<double>(model_.parameters()[p].elements);
    });
    if (mass <= 0) return;
    const std::string what = increasing ? "plot: fully connected " : "plot: convolution ";
    for_each(blocks, thresholds, [&](std::size_t p, double threshold, std::size_t number) {
      wishes_[p] = {threshold * share / mass,
                    what + std::to_string(number) + " of " + std::to_string(blocks.size())};
    });
  }

  template <typename F>
  static void for_each(const std::vector<Block>& blocks, const std::vector<double>& thresholds,
                       F f) {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (const Layer& layer : blocks[b].layers) {
        for (const std::size_t p : layer.parameters) f(p, thresholds[b], b + 1);
      }
    }
  }

  const Model& model_;
  std::vector<Wish> wishes_;
};

}  // namespace

std::vector<PlotBound> plot_bounds(const Model& model, float budget) {
  const std::vector<Wish> wishes = Planner(model).take();
  std::vector<Claim> claims;
  for (std::size_t p = 0; p < wishes.size(); ++p) {
    claims.push_back({static_cast<double>(model.parameters()[p].elements), wishes[p].weight});
  }
  const std::vector<float> shares = share_out(claims, budget);
  std::vector<PlotBound> bounds;
  for (std::size_t p = 0; p < wishes.size(); ++p) {
    bounds.push_back({shares[p], wishes[p].rule.empty() ? "plot" : wishes[p].rule});
  }
  return bounds;
}

}  // namespace gradplane::bounds
