// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <bit>
#include <cstdint>

/// fp16 and bf16 as bit patterns, to and from fp32. A NaN stays a NaN. It becomes quiet and keeps
/// the upper part of its payload, as with F16C, so that all variants agree.
namespace gradplane::reduce {

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in fp32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 0x1f) {
    const std::uint32_t quiet = mantissa == 0 ? 0 : 0x00400000u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

/// `value` without its lowest `bits` bits, rounded to nearest, ties to even.
inline std::uint32_t shift_right_to_nearest_even(std::uint32_t value, std::uint32_t bits) {
  const std::uint32_t kept = value >> bits;
  const std::uint32_t cut = value & ((1u << bits) - 1);
  const std::uint32_t half_way = 1u << (bits - 1);
  const bool up = cut > half_way || (cut == half_way && (kept & 1u) != 0);
  return kept + (up ? 1u : 0u);
}

inline std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  // 65520 is half way between the largest half and the next power of two. From there on the result
  // is infinity.
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {  // 2^-14: a normal half; a carry out of the mantissa is right
    const std::uint32_t rebiased = magnitude - (112u << 23);
    return static_cast<std::uint16_t>(sign | shift_right_to_nearest_even(rebiased, 13));
  }
  if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);  // below 2^-25: zero
  const std::uint32_t exponent = magnitude >> 23;                        // 102 to 112
  const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t subnormal = shift_right_to_nearest_even(mantissa, 126 - exponent);
  return static_cast<std::uint16_t>(sign | subnormal);
}

inline float bfloat_to_float(std::uint16_t bfloat) {
  const std::uint32_t bits = static_cast<std::uint32_t>(bfloat) << 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return std::bit_cast<float>(is_nan ? bits | 0x00400000u : bits);
}

inline std::uint16_t float_to_bfloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>(shift_right_to_nearest_even(bits, 16));
}

}  // namespace gradplane::reduce
