// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/wire_type.h"

/// The operator's rules: how much of which tensors a round may miss, and in which type they go on
/// the network. A bound is a share, from 0 (exact) to kMaxBound, of each rank's blocks of a tensor.
namespace gradplane::bounds {

/// Where the bound comes from of a tensor that no pattern and no kind names.
enum class Preset : std::uint8_t {
  kExact,  // none of them may miss anything
  kLtp,    // LTP (IWQoS 2023): one bound for all
  kMlt,    // MLT (NSDI 2024): one small bound for all, which costs no rounds
  kPlot,   // PLOT (TNSM 2024): by the place in the network, under a budget
  kAuto,   // learned while training, under a budget
};
inline constexpr std::size_t kPresets = 5;
std::string_view name_of(Preset preset);

enum class Kind : std::uint8_t { kBias, kNorm, kEmbedding, kFirst, kLast };
inline constexpr std::size_t kKinds = 5;
std::string_view name_of(Kind kind);

/// LTP closes a round when 80 % of its blocks have arrived.
inline constexpr float kLtpBound = 0.20F;
/// In the middle of the 0.7 % to 3.3 % that MLT found to cost neither rounds nor accuracy.
inline constexpr float kMltBound = 0.02F;
/// Shares of all elements. The first is PLOT's total.
inline constexpr float kPlotBudget = 0.20F;
inline constexpr float kAutoBudget = 0.01F;

inline constexpr std::size_t kMaxPatterns = 256;
inline constexpr std::size_t kMaxPatternBytes = 256;

struct PatternBound {
  std::string pattern;  // see matches() in names.h
  float bound = 0;
};

struct PatternWireType {
  std::string pattern;
  WireType wire = WireType::kElements;
};

struct Rules {
  Preset preset = Preset::kExact;
  /// The first pattern that matches a tensor's name decides.
  std::vector<PatternBound> patterns;
  /// By Kind. A tensor of several kinds gets the smallest of their bounds.
  std::array<std::optional<float>, kKinds> kinds{};
  /// With kPlot and kAuto: the share of all elements that may be missing. Without a value, the
  /// preset's default holds.
  std::optional<float> budget;
  /// Wire types of fp32 tensors. The first pattern that matches decides; other tensors go as fp32.
  std::vector<PatternWireType> wire_types;

  float budget_or_default() const {
    return budget.value_or(preset == Preset::kPlot ? kPlotBudget : kAutoBudget);
  }
};

}  // namespace gradplane::bounds
