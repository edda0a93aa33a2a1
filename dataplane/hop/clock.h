// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/base/time.h"

namespace gradplane::hop {

/// Whether a 32-bit microsecond clock says that `a` is before `b`.
inline bool before_us(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

inline std::uint32_t clock_us(Instant now) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(now.count_ns()) / 1000);
}

}  // namespace gradplane::hop
