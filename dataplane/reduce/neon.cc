// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <arm_neon.h>

#include "dataplane/reduce/vector_kernels.h"

namespace gradplane::reduce {
namespace {

uint8x16_t load_vector(const std::byte* from) {
  return vld1q_u8(reinterpret_cast<const std::uint8_t*>(from));
}
void store_vector(std::byte* to, uint8x16_t v) {
  vst1q_u8(reinterpret_cast<std::uint8_t*>(to), v);
}
uint8x8_t load_lower(const std::byte* from) {
  return vld1_u8(reinterpret_cast<const std::uint8_t*>(from));
}
void store_lower(std::byte* to, uint8x8_t v) {
  vst1_u8(reinterpret_cast<std::uint8_t*>(to), v);
}

/// Registers of fp32, which also sum two-byte types and int8.
struct Floats {
  static constexpr std::size_t kLanes = 4;
  static float32x4_t load(const std::byte* from) { return vreinterpretq_f32_u8(load_vector(from)); }
  static void store(std::byte* to, float32x4_t v) { store_vector(to, vreinterpretq_u8_f32(v)); }
  static float32x4_t add(float32x4_t a, float32x4_t b) {
    const float32x4_t sum = vaddq_f32(a, b);
    const float32x4_t nan = vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000));
    return vbslq_f32(vceqq_f32(sum, sum), sum, nan);
  }
};

struct Float32 : Floats {
  static constexpr auto kKernels = &Variant::fp32;
  static constexpr std::size_t kBytes = 4;

  static float32x4_t all(float value) { return vdupq_n_f32(value); }
  static float32x4_t widen_int8(const std::byte* bytes, float32x4_t scales) {
    std::uint32_t four;
    __builtin_memcpy(&four, bytes, sizeof four);
    const int16x8_t halves = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)));
    return vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves))), scales);
  }
  static void narrow_int8(std::byte* bytes, float32x4_t v, float32x4_t scales) {
    const int16x4_t halves = vqmovn_s32(vcvtnq_s32_f32(vdivq_f32(v, scales)));
    const int8x8_t twice = vqmovn_s16(vcombine_s16(halves, halves));
    const std::uint32_t four = vget_lane_u32(vreinterpret_u32_s8(twice), 0);
    __builtin_memcpy(bytes, &four, sizeof four);
  }

  static uint32x4_t no_magnitude() { return vdupq_n_u32(0); }
  static uint32x4_t larger(uint32x4_t so_far, const std::byte* elements) {
    const uint32x4_t bits = vreinterpretq_u32_u8(load_vector(elements));
    return vmaxq_u32(so_far, vandq_u32(bits, vdupq_n_u32(0x7fffffff)));
  }
  static std::uint32_t largest(uint32x4_t v) { return vmaxvq_u32(v); }
};

struct Float64 {
  static constexpr auto kKernels = &Variant::fp64;
  static constexpr std::size_t kBytes = 8;
  static constexpr std::size_t kLanes = 2;
  static float64x2_t load(const std::byte* from) { return vreinterpretq_f64_u8(load_vector(from)); }
  static void store(std::byte* to, float64x2_t v) { store_vector(to, vreinterpretq_u8_f64(v)); }
  static float64x2_t add(float64x2_t a, float64x2_t b) {
    const float64x2_t sum = vaddq_f64(a, b);
    const float64x2_t nan = vreinterpretq_f64_u64(vdupq_n_u64(0x7ff8000000000000));
    return vbslq_f64(vceqq_f64(sum, sum), sum, nan);
  }
};

struct Signed32 {
  static constexpr auto kKernels = &Variant::int32;
  static constexpr std::size_t kBytes = 4;
  static constexpr std::size_t kLanes = 4;
  static uint32x4_t load(const std::byte* from) { return vreinterpretq_u32_u8(load_vector(from)); }
  static void store(std::byte* to, uint32x4_t v) { store_vector(to, vreinterpretq_u8_u32(v)); }
  static uint32x4_t add(uint32x4_t a, uint32x4_t b) { return vaddq_u32(a, b); }
};

struct Signed64 {
  static constexpr auto kKernels = &Variant::int64;
  static constexpr std::size_t kBytes = 8;
  static constexpr std::size_t kLanes = 2;
  static uint64x2_t load(const std::byte* from) { return vreinterpretq_u64_u8(load_vector(from)); }
  static void store(std::byte* to, uint64x2_t v) { store_vector(to, vreinterpretq_u8_u64(v)); }
  static uint64x2_t add(uint64x2_t a, uint64x2_t b) { return vaddq_u64(a, b); }
};

struct Float16 : Floats {
  static constexpr auto kKernels = &Variant::fp16;
  static float32x4_t widen(const std::byte* wire) {
    return vcvt_f32_f16(vreinterpret_f16_u8(load_lower(wire)));
  }
  static void narrow(std::byte* wire, float32x4_t v) {
    store_lower(wire, vreinterpret_u8_f16(vcvt_f16_f32(v)));
  }
};

/// Uses integer instructions, because not every processor has BFCVTN, and it changes the bits of a
/// NaN.
struct Bfloat16 : Floats {
  static constexpr auto kKernels = &Variant::bf16;
  static float32x4_t widen(const std::byte* wire) {
    const uint32x4_t bits = vshll_n_u16(vreinterpret_u16_u8(load_lower(wire)), 16);
    const float32x4_t v = vreinterpretq_f32_u32(bits);
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x00400000));
    return vreinterpretq_f32_u32(vbslq_u32(vceqq_f32(v, v), bits, quiet));
  }
  static void narrow(std::byte* wire, float32x4_t v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t kept = vshrq_n_u32(bits, 16);
    // Half a unit less one, plus the lowest kept bit: ties go to even.
    const uint32x4_t bias = vaddq_u32(vdupq_n_u32(0x7fff), vandq_u32(kept, vdupq_n_u32(1)));
    const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(bits, bias), 16);
    const uint32x4_t nan = vorrq_u32(kept, vdupq_n_u32(0x40));
    const uint32x4_t words = vbslq_u32(vceqq_f32(v, v), rounded, nan);
    store_lower(wire, vreinterpret_u8_u16(vmovn_u32(words)));
  }
};

struct Neon {
  using Fp32 = Float32;
  using Fp64 = Float64;
  using Fp16 = Float16;
  using Bf16 = Bfloat16;
  using Int32 = Signed32;
  using Int64 = Signed64;
};

}  // namespace

constinit const Variant kNeon = variant_of<Neon>("neon");

}  // namespace gradplane::reduce
