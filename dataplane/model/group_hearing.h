// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

namespace gradplane {

/// Who hears the groups to which a node sends results or updates under its newest plan.
struct GroupHearing {
  std::uint32_t groups = 0;
  std::uint32_t receivers = 0;  // of all groups; a node counts in each that it is in
  std::uint32_t hear = 0;       // of them: the network copies for them
  std::uint32_t listen = 0;     // of those: too slow for the others, or lose too much, for now
};

}  // namespace gradplane
