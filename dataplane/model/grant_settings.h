// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/model/congestion_settings.h"

namespace gradplane {

/// What a configuration says of grants for jobs. kAuto: the coordinator decides for each job.
enum class GrantChoice : std::uint8_t { kAuto, kTrue, kFalse };
inline constexpr std::array<std::string_view, 3> kGrantChoiceNames = {"auto", "true", "false"};
static_assert(kGrantChoiceNames.size() == static_cast<std::size_t>(GrantChoice::kFalse) + 1);

/// How jobs share a node's downlink while several want it.
enum class GrantPolicy : std::uint8_t {
  kFair,
  kMltcp,     // by weight times MLTCP's F(progress)
  kStrict,    // only the job with the most progress
  kWeighted,  // by weight
};
inline constexpr std::array<std::string_view, 4> kGrantPolicyNames = {"fair", "mltcp", "strict",
                                                                      "weighted"};
/// Whether a job's weight counts.
constexpr bool goes_by_weight(GrantPolicy policy) {
  return policy == GrantPolicy::kWeighted || policy == GrantPolicy::kMltcp;
}
static_assert(kGrantPolicyNames.size() == static_cast<std::size_t>(GrantPolicy::kWeighted) + 1);

/// The largest weight of a job; another job's may be as small as its inverse.
inline constexpr double kMaxJobWeight = 1024;

/// How one node grants its downlink. Nodes may differ, because this concerns only the receiver.
struct GrantSettings {
  GrantPolicy policy = GrantPolicy::kFair;
  MltcpFunction mltcp = {};
};

}  // namespace gradplane
