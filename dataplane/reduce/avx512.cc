// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <immintrin.h>

#include "dataplane/reduce/vector_kernels.h"

namespace gradplane::reduce {
namespace {

__m512i load_vector(const std::byte* from) {
  return _mm512_loadu_si512(from);
}
void store_vector(std::byte* to, __m512i v) {
  _mm512_storeu_si512(to, v);
}
__m256i load_lower(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from));
}
void store_lower(std::byte* to, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(to), v);
}

/// Registers of fp32, which also sum two-byte types and int8.
struct Floats {
  static constexpr std::size_t kLanes = 16;
  static __m512 load(const std::byte* from) { return _mm512_castsi512_ps(load_vector(from)); }
  static void store(std::byte* to, __m512 v) { store_vector(to, _mm512_castps_si512(v)); }
  static __m512 add(__m512 a, __m512 b) {
    const __m512 sum = _mm512_add_ps(a, b);
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(sum, _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q), nan);
  }
};

struct Float32 : Floats {
  static constexpr auto kKernels = &Variant::fp32;
  static constexpr std::size_t kBytes = 4;

  static __m512 all(float value) { return _mm512_set1_ps(value); }
  static __m512 widen_int8(const std::byte* bytes, __m512 scales) {
    const auto* from = reinterpret_cast<const __m128i_u*>(bytes);
    const __m512i words = _mm512_cvtepi8_epi32(_mm_loadu_si128(from));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(words), scales);
  }
  static void narrow_int8(std::byte* bytes, __m512 v, __m512 scales) {
    const __m512i words = _mm512_cvtps_epi32(_mm512_div_ps(v, scales));
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(bytes), _mm512_cvtsepi32_epi8(words));
  }

  static __m512i no_magnitude() { return _mm512_setzero_si512(); }
  static __m512i larger(__m512i so_far, const std::byte* elements) {
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    return _mm512_max_epu32(so_far, _mm512_and_si512(load_vector(elements), magnitude));
  }
  static std::uint32_t largest(__m512i v) { return _mm512_reduce_max_epu32(v); }
};

struct Float64 {
  static constexpr auto kKernels = &Variant::fp64;
  static constexpr std::size_t kBytes = 8;
  static constexpr std::size_t kLanes = 8;
  static __m512d load(const std::byte* from) { return _mm512_castsi512_pd(load_vector(from)); }
  static void store(std::byte* to, __m512d v) { store_vector(to, _mm512_castpd_si512(v)); }
  static __m512d add(__m512d a, __m512d b) {
    const __m512d sum = _mm512_add_pd(a, b);
    const __m512d nan = _mm512_castsi512_pd(_mm512_set1_epi64(0x7ff8000000000000));
    return _mm512_mask_mov_pd(sum, _mm512_cmp_pd_mask(sum, sum, _CMP_UNORD_Q), nan);
  }
};

struct Integers {
  static __m512i load(const std::byte* from) { return load_vector(from); }
  static void store(std::byte* to, __m512i v) { store_vector(to, v); }
};

struct Signed32 : Integers {
  static constexpr auto kKernels = &Variant::int32;
  static constexpr std::size_t kBytes = 4;
  static constexpr std::size_t kLanes = 16;
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
};

struct Signed64 : Integers {
  static constexpr auto kKernels = &Variant::int64;
  static constexpr std::size_t kBytes = 8;
  static constexpr std::size_t kLanes = 8;
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi64(a, b); }
};

struct Float16 : Floats {
  static constexpr auto kKernels = &Variant::fp16;
  static __m512 widen(const std::byte* wire) { return _mm512_cvtph_ps(load_lower(wire)); }
  static void narrow(std::byte* wire, __m512 v) {
    store_lower(wire, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

/// Uses integer instructions, because those of AVX512_BF16 treat subnormal numbers as zeros.
struct Bfloat16 : Floats {
  static constexpr auto kKernels = &Variant::bf16;
  static __m512 widen(const std::byte* wire) {
    const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(load_lower(wire)), 16);
    const __m512 v = _mm512_castsi512_ps(bits);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_castsi512_ps(
        _mm512_mask_or_epi32(bits, is_nan, bits, _mm512_set1_epi32(0x00400000)));
  }
  static void narrow(std::byte* wire, __m512 v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i kept = _mm512_srli_epi32(bits, 16);
    // Half a unit less one, plus the lowest kept bit: ties go to even.
    const __m512i bias =
        _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(kept, _mm512_set1_epi32(1)));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i words = _mm512_mask_or_epi32(rounded, is_nan, kept, _mm512_set1_epi32(0x40));
    store_lower(wire, _mm512_cvtepi32_epi16(words));
  }
};

struct Avx512 {
  using Fp32 = Float32;
  using Fp64 = Float64;
  using Fp16 = Float16;
  using Bf16 = Bfloat16;
  using Int32 = Signed32;
  using Int64 = Signed64;
};

}  // namespace

constinit const Variant kAvx512 = variant_of<Avx512>("avx512");

}  // namespace gradplane::reduce
