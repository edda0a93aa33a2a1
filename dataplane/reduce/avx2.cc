// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <immintrin.h>

#include "dataplane/reduce/variants.h"

/// This file is compiled with flags of its own, so nothing in it may end up as a symbol that the
/// linker could pick for the rest of the program: everything but the one entry is in an anonymous
/// namespace, and no inline function of the C++ library is called.
namespace gradplane::reduce {
namespace {

constexpr std::size_t kVectorBytes = 32;

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

/// Types that lie on the wire as they are summed.
template <ElementType kElement>
struct Plain {
  static constexpr ElementType kType = kElement;
  static constexpr std::size_t kWireBytes = element_bytes(kElement);
  static constexpr std::size_t kAccumulatorBytes = kWireBytes;
  static constexpr std::size_t kLanes = kVectorBytes / kWireBytes;
  static __m256i widen(const std::byte* wire) { return load_vector(wire); }
  static __m256i load(const std::byte* accumulator) { return load_vector(accumulator); }
  static void store(std::byte* accumulator, __m256i v) { store_vector(accumulator, v); }
  static void narrow(std::byte* wire, __m256i v) { store_vector(wire, v); }
};

__m256 add_float(__m256 a, __m256 b) {
  const __m256 sum = _mm256_add_ps(a, b);
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  return _mm256_blendv_ps(sum, nan, _mm256_cmp_ps(sum, sum, _CMP_UNORD_Q));
}

struct Float32 : Plain<ElementType::kFloat32> {
  static __m256i add(__m256i a, __m256i b) {
    return _mm256_castps_si256(add_float(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
  }
};

struct Float64 : Plain<ElementType::kFloat64> {
  static __m256i add(__m256i a, __m256i b) {
    const __m256d sum = _mm256_add_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b));
    const __m256d nan = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff8000000000000));
    return _mm256_castpd_si256(_mm256_blendv_pd(sum, nan, _mm256_cmp_pd(sum, sum, _CMP_UNORD_Q)));
  }
};

struct Int32 : Plain<ElementType::kInt32> {
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
};

struct Int64 : Plain<ElementType::kInt64> {
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi64(a, b); }
};

/// Types of two bytes that are summed as fp32.
template <ElementType kElement>
struct Narrow {
  static constexpr ElementType kType = kElement;
  static constexpr std::size_t kWireBytes = 2;
  static constexpr std::size_t kAccumulatorBytes = 4;
  static constexpr std::size_t kLanes = kVectorBytes / kAccumulatorBytes;
  static __m256 load(const std::byte* accumulator) {
    return _mm256_castsi256_ps(load_vector(accumulator));
  }
  static void store(std::byte* accumulator, __m256 v) {
    store_vector(accumulator, _mm256_castps_si256(v));
  }
  static __m256 add(__m256 a, __m256 b) { return add_float(a, b); }
};

struct Float16 : Narrow<ElementType::kFloat16> {
  static __m256 widen(const std::byte* wire) { return _mm256_cvtph_ps(load_lower(wire)); }
  static void narrow(std::byte* wire, __m256 v) {
    store_lower(wire, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct Bfloat16 : Narrow<ElementType::kBfloat16> {
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

/// The loops; what is left over after the last whole vector goes to the scalar kernels. `Ops` has
/// kType, kLanes, kWireBytes, kAccumulatorBytes; and over one vector widen(wire) and
/// load(accumulator) to a register, store(accumulator, register), narrow(wire, register),
/// add(register, register).
template <typename Ops>
struct VectorKernels {
  static std::size_t whole(std::size_t count) noexcept { return count - count % Ops::kLanes; }

  static void set(std::byte* accumulator, const std::byte* wire, std::size_t count) noexcept {
    const std::size_t end = whole(count);
    for (std::size_t i = 0; i < end; i += Ops::kLanes) {
      Ops::store(accumulator + i * Ops::kAccumulatorBytes, Ops::widen(wire + i * Ops::kWireBytes));
    }
    scalar_kernels_for(Ops::kType)
        .set(accumulator + end * Ops::kAccumulatorBytes, wire + end * Ops::kWireBytes, count - end);
  }

  static void accumulate(std::byte* accumulator, const std::byte* wire,
                         std::size_t count) noexcept {
    const std::size_t end = whole(count);
    for (std::size_t i = 0; i < end; i += Ops::kLanes) {
      std::byte* at = accumulator + i * Ops::kAccumulatorBytes;
      Ops::store(at, Ops::add(Ops::load(at), Ops::widen(wire + i * Ops::kWireBytes)));
    }
    scalar_kernels_for(Ops::kType)
        .accumulate(accumulator + end * Ops::kAccumulatorBytes, wire + end * Ops::kWireBytes,
                    count - end);
  }

  static void finish(std::byte* wire, const std::byte* accumulator, std::size_t count) noexcept {
    const std::size_t end = whole(count);
    for (std::size_t i = 0; i < end; i += Ops::kLanes) {
      Ops::narrow(wire + i * Ops::kWireBytes, Ops::load(accumulator + i * Ops::kAccumulatorBytes));
    }
    scalar_kernels_for(Ops::kType)
        .finish(wire + end * Ops::kWireBytes, accumulator + end * Ops::kAccumulatorBytes,
                count - end);
  }

  static constexpr Kernels kTable{set, accumulate, finish};
};

}  // namespace

const Kernels& avx2_kernels_for(ElementType type) noexcept {
  switch (type) {
    case ElementType::kFloat32:
      return VectorKernels<Float32>::kTable;
    case ElementType::kFloat64:
      return VectorKernels<Float64>::kTable;
    case ElementType::kFloat16:
      return VectorKernels<Float16>::kTable;
    case ElementType::kBfloat16:
      return VectorKernels<Bfloat16>::kTable;
    case ElementType::kInt32:
      return VectorKernels<Int32>::kTable;
    case ElementType::kInt64:
      return VectorKernels<Int64>::kTable;
  }
  return scalar_kernels_for(type);
}

}  // namespace gradplane::reduce
