// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <immintrin.h>

#include "dataplane/reduce/vector_kernels.h"

namespace gradplane::reduce {
namespace {

__m256i load_vector(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from));
}
void store_vector(std::byte* to, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(to), v);
}
__m128i load_lower(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from));
}
void store_lower(std::byte* to, __m128i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to), v);
}

/// Registers of fp32, which also sum two-byte types and int8.
struct Floats {
  static constexpr std::size_t kLanes = 8;
  static __m256 load(const std::byte* from) { return _mm256_castsi256_ps(load_vector(from)); }
  static void store(std::byte* to, __m256 v) { store_vector(to, _mm256_castps_si256(v)); }
  static __m256 add(__m256 a, __m256 b) {
    const __m256 sum = _mm256_add_ps(a, b);
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(sum, nan, _mm256_cmp_ps(sum, sum, _CMP_UNORD_Q));
  }
};

struct Float32 : Floats {
  static constexpr auto kKernels = &Variant::fp32;
  static constexpr std::size_t kBytes = 4;

  static __m256 all(float value) { return _mm256_set1_ps(value); }
  static __m256 widen_int8(const std::byte* bytes, __m256 scales) {
    const __m256i words = _mm256_cvtepi8_epi32(_mm_loadu_si64(bytes));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(words), scales);
  }
  static void narrow_int8(std::byte* bytes, __m256 v, __m256 scales) {
    const __m256i words = _mm256_cvtps_epi32(_mm256_div_ps(v, scales));
    const __m128i halves =
        _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si64(bytes, _mm_packs_epi16(halves, halves));
  }

  static __m256i no_magnitude() { return _mm256_setzero_si256(); }
  static __m256i larger(__m256i so_far, const std::byte* elements) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    return _mm256_max_epu32(so_far, _mm256_and_si256(load_vector(elements), magnitude));
  }
  static std::uint32_t largest(__m256i v) {
    __m128i half = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
  }
};

struct Float64 {
  static constexpr auto kKernels = &Variant::fp64;
  static constexpr std::size_t kBytes = 8;
  static constexpr std::size_t kLanes = 4;
  static __m256d load(const std::byte* from) { return _mm256_castsi256_pd(load_vector(from)); }
  static void store(std::byte* to, __m256d v) { store_vector(to, _mm256_castpd_si256(v)); }
  static __m256d add(__m256d a, __m256d b) {
    const __m256d sum = _mm256_add_pd(a, b);
    const __m256d nan = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff8000000000000));
    return _mm256_blendv_pd(sum, nan, _mm256_cmp_pd(sum, sum, _CMP_UNORD_Q));
  }
};

struct Integers {
  static __m256i load(const std::byte* from) { return load_vector(from); }
  static void store(std::byte* to, __m256i v) { store_vector(to, v); }
};

struct Signed32 : Integers {
  static constexpr auto kKernels = &Variant::int32;
  static constexpr std::size_t kBytes = 4;
  static constexpr std::size_t kLanes = 8;
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
};

struct Signed64 : Integers {
  static constexpr auto kKernels = &Variant::int64;
  static constexpr std::size_t kBytes = 8;
  static constexpr std::size_t kLanes = 4;
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi64(a, b); }
};

struct Float16 : Floats {
  static constexpr auto kKernels = &Variant::fp16;
  static __m256 widen(const std::byte* wire) { return _mm256_cvtph_ps(load_lower(wire)); }
  static void narrow(std::byte* wire, __m256 v) {
    store_lower(wire, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct Bfloat16 : Floats {
  static constexpr auto kKernels = &Variant::bf16;
  static __m256 widen(const std::byte* wire) {
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_lower(wire)), 16);
    const __m256 v = _mm256_castsi256_ps(bits);
    const __m256 quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x00400000));
    return _mm256_or_ps(v, _mm256_and_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q), quiet));
  }
  static void narrow(std::byte* wire, __m256 v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i kept = _mm256_srli_epi32(bits, 16);
    // Half a unit less one, plus the lowest kept bit: ties go to even.
    const __m256i bias =
        _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(kept, _mm256_set1_epi32(1)));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i nan = _mm256_or_si256(kept, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i words = _mm256_blendv_epi8(rounded, nan, is_nan);
    store_lower(
        wire, _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
};

struct Avx2 {
  using Fp32 = Float32;
  using Fp64 = Float64;
  using Fp16 = Float16;
  using Bf16 = Bfloat16;
  using Int32 = Signed32;
  using Int64 = Signed64;
};

}  // namespace

constinit const Variant kAvx2 = variant_of<Avx2>("avx2");

}  // namespace gradplane::reduce
