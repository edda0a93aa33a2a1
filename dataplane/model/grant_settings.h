// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dataplane/model/congestion_settings.h"

namespace gradplane {

/// How jobs share a node's downlink while several want it.
enum class GrantPolicy : std::uint8_t {
  kFair,
  kMltcp,     // by weight times F(progress), of MLTCP
  kStrict,    // the one with the most progress alone
  kWeighted,  // by weight
};
inline constexpr std::array<std::string_view, 4> kGrantPolicyNames = {"fair", "mltcp", "strict",
                                                                      "weighted"};
/// Whether a job's weight counts.
constexpr bool goes_by_weight(GrantPolicy policy) {
  return policy == GrantPolicy::kWeighted || policy == GrantPolicy::kMltcp;
}
static_assert(kGrantPolicyNames.size() == static_cast<std::size_t>(GrantPolicy::kWeighted) + 1);

/// Of a job, beside which another's counts.
inline constexpr double kMaxJobWeight = 1024;

/// How one node grants its downlink: the receiver's own matter.
struct GrantSettings {
  GrantPolicy policy = GrantPolicy::kFair;
  MltcpFunction mltcp = {};
};

}  // namespace gradplane
