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
};
/// As the configuration, the control socket and the operator's command call them.
inline constexpr std::array<std::string_view, 3> kPlanKindNames = {"star", "sharded", "manual"};
inline constexpr auto kLastPlanKind = static_cast<PlanKind>(kPlanKindNames.size() - 1);
static_assert(kLastPlanKind == PlanKind::kManual);

constexpr std::string_view plan_kind_name(PlanKind kind) {
  return kPlanKindNames[static_cast<std::size_t>(kind)];
}

}  // namespace gradplane
