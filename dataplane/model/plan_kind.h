// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradplane {

/// How a plan was made.
enum class PlanKind : std::uint8_t {
  kStar,     // one node is the root of every block
  kSharded,  // several nodes are each the root of a share, every other node its direct child
  kManual,   // the trees are written down in the configuration
  kFapt,     // NetStorm's trees: each site's fastest way to each of several roots
  kPacked,   // several trees that together load the network least
  kAuto,     // whichever is predicted to be fastest; a plan itself is never of this kind
};
/// As the configuration, the control socket and the operator's command call them.
inline constexpr std::array<std::string_view, 6> kPlanKindNames = {"star", "sharded", "manual",
                                                                   "fapt", "packed",  "auto"};
inline constexpr auto kLastPlanKind = static_cast<PlanKind>(kPlanKindNames.size() - 1);
static_assert(kLastPlanKind == PlanKind::kAuto);

/// Whether a planner of this kind has to know the network.
constexpr bool plan_needs_network(PlanKind kind) {
  return kind == PlanKind::kFapt || kind == PlanKind::kPacked || kind == PlanKind::kAuto;
}

constexpr std::string_view plan_kind_name(PlanKind kind) {
  return kPlanKindNames[static_cast<std::size_t>(kind)];
}

}  // namespace gradplane
