// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/base/endpoint.h"

namespace gradplane {

/// The range of group addresses: all addresses that begin with the first `prefix_length` bits of
/// `first`.
struct GroupRange {
  Ipv4 first{0xef470000};  // 239.71.0.0
  std::uint8_t prefix_length = 16;
  constexpr bool operator==(const GroupRange&) const = default;
};

inline constexpr std::uint8_t kMinGroupPrefixLength = 10;
inline constexpr std::uint8_t kMaxGroupPrefixLength = 24;

/// How many addresses the range has, for the lengths above.
constexpr std::uint32_t address_count(const GroupRange& range) {
  return std::uint32_t{1} << (32 - range.prefix_length);
}

/// Whether groups may have all addresses of the range. They must be multicast addresses. None may
/// look to a switch like one of 224.0.0.0/24, which it floods: a switch sees only the last 23 bits
/// of an address (RFC 1112, section 6.4; RFC 4541, section 2.1.2). They must not be in 232.0.0.0/8,
/// where a receiver has to name the sender (RFC 4607).
constexpr bool is_valid(const GroupRange& range) {
  if (range.prefix_length < kMinGroupPrefixLength || range.prefix_length > kMaxGroupPrefixLength)
    return false;
  const std::uint32_t first = range.first.value;
  const bool is_aligned = (first & (address_count(range) - 1)) == 0;
  const bool is_flooded = (first & 0x007fff00) == 0;
  return is_aligned && first >> 28 == 0xe && first >> 24 != 232 && !is_flooded;
}
static_assert(is_valid(GroupRange{}));

}  // namespace gradplane
