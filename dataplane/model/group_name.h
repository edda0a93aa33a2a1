// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <compare>
#include <cstdint>

namespace gradplane {

/// The children of one node in one tree of one plan. Where the network copies packets for a group
/// of receivers, the node sends each result to all of them at once.
struct GroupName {
  std::uint32_t job = 0;  // the id on the wire
  std::uint32_t epoch = 0;
  std::uint16_t sender = 0;  // the parent's id
  std::uint8_t tree = 0;
  constexpr auto operator<=>(const GroupName&) const = default;
};

}  // namespace gradplane
