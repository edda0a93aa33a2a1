// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradplane {

/// How the contributions of the ranks become one result. The numbers are on the wire and in shared
/// memory: never change one. Only a sum may lack contributions within bounds, be sent in another
/// type, or be a mean. All other reductions are exact.
enum class Reduction : std::uint8_t {
  kSum = 0,
  kMax = 1,
  kMin = 2,
  kProduct = 3,
};
inline constexpr std::array kReductions = {Reduction::kSum, Reduction::kMax, Reduction::kMin,
                                           Reduction::kProduct};

constexpr bool is_reduction(std::uint8_t raw) {
  return raw < kReductions.size();
}

constexpr std::string_view reduction_name(Reduction r) {
  constexpr std::array<std::string_view, kReductions.size()> kNames = {"sum", "max", "min",
                                                                       "product"};
  return kNames[static_cast<std::size_t>(r)];
}

}  // namespace gradplane
