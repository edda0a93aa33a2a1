// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "control/bounds/model.h"
#include "control/bounds/names.h"
#include "control/bounds/plot.h"

namespace gradplane::bounds {
namespace {

/// "12.5 %".
std::string percent_text(double share) {
  const auto tenths = static_cast<std::int64_t>(std::llround(share * 1000));
  const std::string whole = std::to_string(tenths / 10);
  return tenths % 10 == 0 ? whole + " %" : whole + "." + std::to_string(tenths % 10) + " %";
}

/// "1 tensor", "2 tensors".
std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// A tensor's bound, and the rule that gave it.
struct Verdict {
  float bound = 0;
  api::BoundReason why = api::BoundReason::kExact;
  std::string rule;
};

class Resolver {
 public:
  Resolver(const Rules& rules, const Sizes& sizes, std::span<const api::BucketBounds> tables)
      : rules_(rules), sizes_(sizes), model_(tables, sizes.round_bytes) {
    if (rules.preset == Preset::kPlot) plot_ = plot_bounds(model_, rules.budget_or_default());
  }

  api::BucketBounds resolve(const api::BucketBounds& table, std::size_t at) const {
    api::BucketBounds out = table;
    for (std::size_t t = 0; t < out.tensors.size(); ++t) {
      api::BoundedTensor& tensor = out.tensors[t];
      Verdict verdict = {0, api::BoundReason::kExact, "whole numbers"};
      if (is_floating(table.type)) verdict = decide(tensor.name, model_.parameter_of(at, t));
      fit_to_blocks(verdict, blocks_of(tensor, table.type, sizes_.block_bytes));
      tensor.bound = verdict.bound;
      tensor.why = verdict.why;
      tensor.rule = std::move(verdict.rule);
      tensor.wire =
          table.type == ElementType::kFloat32 ? wire_type_of(tensor.name) : WireType::kElements;
    }
    return out;
  }

 private:
  Verdict decide(const std::string& name, std::size_t parameter) const {
    for (const PatternBound& entry : rules_.patterns) {
      if (matches(entry.pattern, name)) {
        return {entry.bound, api::BoundReason::kPattern, entry.pattern};
      }
    }
    if (const std::optional<Verdict> kind = by_kind(name, parameter)) return *kind;
    const std::string preset(name_of(rules_.preset));
    switch (rules_.preset) {
      case Preset::kExact:
        break;
      case Preset::kLtp:
        return {kLtpBound, api::BoundReason::kPreset, preset};
      case Preset::kMlt:
        return {kMltBound, api::BoundReason::kPreset, preset};
      case Preset::kPlot:
        return {plot_[parameter].bound, api::BoundReason::kPreset, plot_[parameter].rule};
      case Preset::kAuto:
        return {0, api::BoundReason::kLearned, preset};
    }
    return {0, api::BoundReason::kExact, preset};
  }

  WireType wire_type_of(const std::string& name) const {
    const auto found =
        std::find_if(rules_.wire_types.begin(), rules_.wire_types.end(),
                     [&name](const auto& entry) { return matches(entry.pattern, name); });
    return found == rules_.wire_types.end() ? WireType::kElements : found->wire;
  }

  std::optional<Verdict> by_kind(const std::string& name, std::size_t parameter) const {
    std::optional<Verdict> least;
    for (std::size_t k = 0; k < kKinds; ++k) {
      const auto kind = static_cast<Kind>(k);
      if (!rules_.kinds[k] || !is_of(kind, name, parameter)) continue;
      if (least && least->bound <= *rules_.kinds[k]) continue;
      least = {*rules_.kinds[k], api::BoundReason::kKind, std::string(name_of(kind))};
    }
    return least;
  }

  bool is_of(Kind kind, const std::string& name, std::size_t parameter) const {
    switch (kind) {
      case Kind::kBias:
        return is_bias(name);
      case Kind::kNorm:
        return is_norm(name);
      case Kind::kEmbedding:
        return is_embedding(name);
      case Kind::kFirst:
        return model_.in_first_layer(parameter);
      case Kind::kLast:
        return model_.in_last_layer(parameter);
    }
    return false;
  }

  /// Makes the tensor exact if its bound is less than one of its blocks, because the root rounds
  /// the number of blocks that may be missing down.
  static void fit_to_blocks(Verdict& verdict, std::uint32_t blocks) {
    const bool learned = verdict.why == api::BoundReason::kLearned;
    const float wanted = learned ? kMaxBound : verdict.bound;
    if (wanted <= 0 || wanted * static_cast<float>(blocks) >= 1) return;
    verdict.rule += ": " + percent_text(wanted) + " of " + std::to_string(blocks) +
                    (blocks == 1 ? " block" : " blocks");
    verdict.why = api::BoundReason::kTooSmall;
    verdict.bound = 0;
  }

  const Rules& rules_;
  const Sizes& sizes_;
  Model model_;
  std::vector<PlotBound> plot_;
};

/// How many tensors go in which wire type; empty when all go in their own type.
std::string narrowed_text(std::span<const api::BucketBounds> tables) {
  std::array<std::size_t, kWireTypes.size()> tensors{};
  for (const api::BucketBounds& table : tables) {
    for (const auto& tensor : table.tensors) ++tensors[static_cast<std::size_t>(tensor.wire)];
  }
  std::string text;
  for (const WireType wire : kWireTypes) {
    const std::size_t count = tensors[static_cast<std::size_t>(wire)];
    if (wire == WireType::kElements || count == 0) continue;
    text += "; " + std::to_string(count) + " go as " + std::string(wire_type_name(wire));
  }
  return text;
}

bool fits_any(const std::string& pattern, std::span<const api::BucketBounds> tables) {
  return std::any_of(tables.begin(), tables.end(), [&](const api::BucketBounds& table) {
    return std::any_of(table.tensors.begin(), table.tensors.end(),
                       [&](const auto& tensor) { return matches(pattern, tensor.name); });
  });
}

/// " 0.weight, 0.bias", or " none". A tensor that has parts in several buckets is named once.
std::string first_names(std::span<const api::BucketBounds> tables) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> names;
  for (const api::BucketBounds& table : tables) {
    for (const api::BoundedTensor& tensor : table.tensors) {
      const bool is_new = std::find(names.begin(), names.end(), tensor.name) == names.end();
      if (is_new && names.size() < kNamed) names.push_back(tensor.name);
    }
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? " " : ", ") + name;
  return text.empty() ? " none" : text;
}

}  // namespace

std::uint32_t blocks_of(const api::BoundedTensor& tensor, ElementType type,
                        std::size_t block_bytes) {
  if (tensor.elements == 0) return 0;
  const auto block_elements = static_cast<std::uint32_t>(block_bytes / element_bytes(type));
  const std::uint32_t last = tensor.offset_elements + tensor.elements - 1;
  return last / block_elements - tensor.offset_elements / block_elements + 1;
}

std::vector<api::BucketBounds> resolve(const Rules& rules, const Sizes& sizes,
                                       std::span<const api::BucketBounds> tables) {
  const Resolver resolver(rules, sizes, tables);
  std::vector<api::BucketBounds> resolved;
  for (std::size_t at = 0; at < tables.size(); ++at) {
    resolved.push_back(resolver.resolve(tables[at], at));
  }
  return resolved;
}

std::string summary(const Rules& rules, std::span<const api::BucketBounds> tables) {
  std::size_t tensors = 0;
  std::size_t exact = 0;
  double elements = 0;
  double missing = 0;
  for (const api::BucketBounds& table : tables) {
    for (const api::BoundedTensor& tensor : table.tensors) {
      ++tensors;
      const bool learned = tensor.why == api::BoundReason::kLearned;
      exact += tensor.bound <= 0 && !learned ? 1 : 0;
      elements += tensor.elements;
      missing += static_cast<double>(tensor.bound) * tensor.elements;
    }
  }
  const double share = elements > 0 ? missing / elements : 0;
  std::string text(name_of(rules.preset));
  text += ": " + counted(tensors, "tensor") + " in " + counted(tables.size(), "bucket") + ", " +
          std::to_string(exact) + " exact, " + percent_text(share) +
          " of all elements may be missing";
  if (rules.preset == Preset::kAuto) {
    text += ", and as much as is learned, up to " + percent_text(rules.budget_or_default());
  }
  return text + narrowed_text(tables);
}

std::string unused_patterns(const Rules& rules, std::span<const api::BucketBounds> tables) {
  std::string idle;
  const auto note_idle = [&](const std::string& pattern) {
    if (!fits_any(pattern, tables)) idle += (idle.empty() ? " " : ", ") + pattern;
  };
  for (const PatternBound& entry : rules.patterns) note_idle(entry.pattern);
  for (const PatternWireType& entry : rules.wire_types) note_idle(entry.pattern);
  if (idle.empty()) return {};
  return "no tensor's name so far fits" + idle + "; the first names are" + first_names(tables) +
         "; DDP tells names only under TORCH_DISTRIBUTED_DEBUG=INFO, else they are param.N";
}

}  // namespace gradplane::bounds
