// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

namespace gradplane::shim {

/// From this size on a tensor does not stay in the processor's caches until the program reads it.
inline constexpr std::size_t kStreamedTensorBytes = std::size_t{16} << 20;

/// Copies `bytes` between areas that do not overlap, past the caches where the processor can. An
/// ordinary copy first reads each line that it is about to overwrite, which takes nearly as long
/// again where the lines are in memory.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace gradplane::shim
