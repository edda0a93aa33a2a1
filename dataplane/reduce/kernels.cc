// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/reduce/kernels.h"

#include <array>
#include <cstring>

#include "dataplane/reduce/variants.h"

namespace gradplane::reduce {
namespace {

constexpr std::size_t kMaxVariants = 2;

struct Supported {
  std::array<Variant, kMaxVariants> variants{};
  std::size_t count = 0;
  std::array<const Kernels*, kElementTypes.size() + 1> fastest{};  // by ElementType; 0 is unused

  Supported() noexcept {
    add({"scalar", scalar_kernels_for});
#ifdef GRADPLANE_REDUCE_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
      add({"avx2", avx2_kernels_for});
    }
#endif
    for (const ElementType type : kElementTypes) {
      fastest[static_cast<std::size_t>(type)] = &variants[count - 1].kernels_for(type);
    }
  }

  void add(Variant variant) noexcept {
    variants[count++] = variant;
  }
};

template <std::size_t kBytes>
void copy(std::byte* to, const std::byte* from, std::size_t count) noexcept {
  std::memcpy(to, from, count * kBytes);
}
template <std::size_t kBytes>
constexpr Kernels kCopying{copy<kBytes>, copy<kBytes>, copy<kBytes>};

const Supported& supported() noexcept {
  static const Supported chosen;
  return chosen;
}

}  // namespace

const Kernels& kernels_for(ElementType type) noexcept {
  return *supported().fastest[static_cast<std::size_t>(type)];
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

std::span<const Variant> supported_variants() noexcept {
  return std::span(supported().variants).first(supported().count);
}

}  // namespace gradplane::reduce
