// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

namespace gradplane {

/// How many receivers hear the groups to which a node sends results or updates under its newest
/// plan.
struct GroupHearing {
  std::uint32_t groups = 0;
  std::uint32_t receivers = 0;  // receivers of all groups; a node counts once in each of its groups
  std::uint32_t hear = 0;       // of these, receivers that hear the group
  std::uint32_t listen = 0;     // of these, listeners, which are too slow or lose too much for now
};

}  // namespace gradplane
