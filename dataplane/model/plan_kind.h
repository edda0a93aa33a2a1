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
  kStar,  // one node is the root of every block
  // Each of several nodes is the root of a share, and all other nodes are its direct children.
  kSharded,
  kManual,  // the configuration has the trees
  kFapt,    // NetStorm's trees: each site's fastest way to each of several roots
  kPacked,  // several trees that together load the network least
  kAuto,    // the one with the shortest predicted time; a plan itself is never of this kind
};
/// The names in the configuration, on the control socket and in the operator's command.
inline constexpr std::array<std::string_view, 6> kPlanKindNames = {"star", "sharded", "manual",
                                                                   "fapt", "packed",  "auto"};
inline constexpr auto kLastPlanKind = static_cast<PlanKind>(kPlanKindNames.size() - 1);
static_assert(kLastPlanKind == PlanKind::kAuto);

/// Whether a planner of this kind must know the network.
constexpr bool plan_needs_network(PlanKind kind) {
  return kind == PlanKind::kFapt || kind == PlanKind::kPacked || kind == PlanKind::kAuto;
}

constexpr std::string_view plan_kind_name(PlanKind kind) {
  return kPlanKindNames[static_cast<std::size_t>(kind)];
}

}  // namespace gradplane
