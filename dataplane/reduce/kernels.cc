// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/reduce/kernels.h"

#include <array>
#include <cstring>

#include "dataplane/reduce/variants.h"

namespace gradplane::reduce {
namespace {

constexpr std::size_t kMaxVariants = 3;

#ifdef GRADPLANE_REDUCE_X86
bool is_avx2_here() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}

/// Intel's processors up to Cascade Lake lower the clock of a whole core while it computes with 512
/// bits, which slows the rest of the poll loop. So a processor must also have VBMI2, which came
/// with Ice Lake and with AMD's Zen 4: these keep their clock, or nearly so. On Zen 5 each kernel
/// was measured to be at least as fast as its AVX2 variant (docs/performance/fast-path.md).
bool is_avx512_fast_here() noexcept {
  return is_avx2_here() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi2");
}
#endif

struct Supported {
  std::array<const Variant*, kMaxVariants> variants{};
  std::size_t count = 0;

  Supported() noexcept {
    add(kScalar);
#ifdef GRADPLANE_REDUCE_X86
    __builtin_cpu_init();
    if (is_avx2_here()) add(kAvx2);
    if (is_avx512_fast_here()) add(kAvx512);
#endif
#ifdef GRADPLANE_REDUCE_NEON
    add(kNeon);  // every aarch64 processor has it
#endif
  }

  void add(const Variant& variant) noexcept {
    variants[count++] = &variant;
  }
};

template <std::size_t kBytes>
void copy(std::byte* to, const std::byte* from, std::size_t count) noexcept {
  std::memcpy(to, from, count * kBytes);
}
template <std::size_t kBytes>
void copy_second(std::byte* to, const std::byte*, const std::byte* from,
                 std::size_t count) noexcept {
  std::memcpy(to, from, count * kBytes);
}
template <std::size_t kBytes>
constexpr Kernels kCopying{copy<kBytes>, copy<kBytes>, copy_second<kBytes>, copy<kBytes>};

const Supported& supported() noexcept {
  static const Supported chosen;
  return chosen;
}

const Variant& fastest() noexcept {
  return *supported().variants[supported().count - 1];
}

}  // namespace

const Kernels& Variant::kernels_for(ElementType type) const noexcept {
  switch (type) {
    case ElementType::kFloat32:
      return fp32;
    case ElementType::kFloat64:
      return fp64;
    case ElementType::kFloat16:
      return fp16;
    case ElementType::kBfloat16:
      return bf16;
    case ElementType::kInt32:
      return int32;
    case ElementType::kInt64:
      return int64;
  }
  return int64;
}

const Kernels& Variant::kernels_for(WireType type) const noexcept {
  switch (type) {
    case WireType::kElements:
      return fp32;
    case WireType::kBfloat16:
      return bf16;
    case WireType::kFloat16:
      return fp16;
    case WireType::kInt8:
      return int8;
  }
  return fp32;
}

const Kernels& kernels_for(ElementType type) noexcept {
  return fastest().kernels_for(type);
}

const Kernels& kernels_for(WireType type) noexcept {
  return fastest().kernels_for(type);
}

std::uint32_t largest_magnitude(const std::byte* elements, std::size_t count) noexcept {
  return fastest().largest_magnitude(elements, count);
}

const Kernels& copying_kernels_for(ElementType type) noexcept {
  switch (element_bytes(type)) {
    case 2:
      return kCopying<2>;
    case 4:
      return kCopying<4>;
    default:
      return kCopying<8>;
  }
}

std::span<const Variant* const> supported_variants() noexcept {
  return std::span(supported().variants).first(supported().count);
}

}  // namespace gradplane::reduce
