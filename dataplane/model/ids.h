// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "dataplane/base/assert.h"

namespace gradplane {

/// An identifier or index with its own type. There are no implicit conversions, so an index of one
/// table cannot be used in another. `Tag` is any type; it is never defined.
template <typename Tag, std::unsigned_integral Value = std::uint16_t>
class StrongId {
 public:
  using ValueType = Value;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Value value) : value_(value) {}
  /// Makes the identifier of a table's entry from its index.
  static constexpr StrongId from_index(std::size_t index) {
    GP_ASSERT(index <= std::numeric_limits<Value>::max());
    return StrongId(static_cast<Value>(index));
  }

  /// The number, for messages and packets.
  constexpr Value value() const { return value_; }
  /// The number, as an index into the identifier's table.
  constexpr std::size_t index() const { return value_; }

  constexpr auto operator<=>(const StrongId&) const = default;

 private:
  Value value_ = 0;
};

}  // namespace gradplane
