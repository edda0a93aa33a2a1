// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

namespace gradplane::shim {

/// Tensors of this size or more do not stay in the caches until the program reads them.
inline constexpr std::size_t kStreamedTensorBytes = std::size_t{16} << 20;

/// Copies `bytes` between areas that do not overlap, and bypasses the caches where the CPU can. An
/// ordinary copy first reads each cache line that it overwrites. If these are not in the caches,
/// that takes nearly as long again.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace gradplane::shim
