// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

namespace gradplane {

/// What a round computes. The numbers are on the wire: never change one.
enum class Operation : std::uint8_t {
  kAllReduce = 1,
};

constexpr bool is_operation(std::uint8_t raw) {
  return raw == static_cast<std::uint8_t>(Operation::kAllReduce);
}

}  // namespace gradplane
