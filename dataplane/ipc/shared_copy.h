// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Values in memory that another process writes at the same time. A plain copy is not enough: a
/// compiler may read the original again after the check.
namespace gradplane::ipc {

template <typename T>
using SharedWords = std::array<std::uint64_t, sizeof(T) / sizeof(std::uint64_t)>;

template <typename T>
concept SharedValue = std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint64_t) == 0;

/// Returns a copy, for which every word was read exactly once. `shared` must be aligned to 8 bytes.
template <SharedValue T>
T load_shared(const T& shared) noexcept {
  const auto* from = reinterpret_cast<const std::uint64_t*>(&shared);
  SharedWords<T> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
  }
  return std::bit_cast<T>(words);
}

template <SharedValue T>
void store_shared(T& shared, const T& value) noexcept {
  auto* to = reinterpret_cast<std::uint64_t*>(&shared);
  const auto words = std::bit_cast<SharedWords<T>>(value);
  for (std::size_t i = 0; i < words.size(); ++i) {
    __atomic_store_n(to + i, words[i], __ATOMIC_RELAXED);
  }
}

}  // namespace gradplane::ipc
